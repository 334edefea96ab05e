#include "workers.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "options.h"
#include "worker.h"

namespace cuda_emu {

namespace {

constexpr uint64_t kThreadsWorthSharing = 4096;

long NowMs() {
  return static_cast<long>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::milliseconds(1));
}

// One grid, and how far it is.
struct Job {
  const Grid& grid;
  const uint64_t n_blocks;
  const uint64_t chunk;
  const uint64_t stride;  // in random order: block i is i * stride modulo n_blocks
  std::atomic<uint64_t> next{0};
  std::atomic<bool> stop{false};
  int helpers = 0;  // at work now; guarded by the pool's mutex

  explicit Job(const Grid& grid)
      : grid(grid),
        n_blocks(uint64_t{grid.config.grid.x} * grid.config.grid.y * grid.config.grid.z),
        chunk(std::max<uint64_t>(1, n_blocks / (16 * std::max(1, options.workers)))),
        stride(Stride(n_blocks)) {}

  static uint64_t Stride(uint64_t n) {
    uint64_t stride = n / 2 + n / 9 + options.seed;
    while (std::gcd(stride, n) != 1) stride++;
    return stride % std::max<uint64_t>(n, 1);
  }

  uint64_t BlockAt(uint64_t i) const {
    if (options.order == Order::kReverse) return n_blocks - 1 - i;
    if (options.order == Order::kRandom)
      return static_cast<uint64_t>(static_cast<unsigned __int128>(i) * stride % n_blocks);
    return i;
  }
};

std::mutex workers_mutex;
// never destroyed: the watching thread may look into it after the destructors of globals
std::vector<Worker*>& workers = *new std::vector<Worker*>;

Worker* Registered(Worker* worker) {
  std::lock_guard<std::mutex> lock(workers_mutex);
  workers.push_back(worker);
  return worker;
}

// The order in which the threads of a block start; none for forward.
void PrepareOrder(Worker& worker) {
  ThreadQueue& queue = worker.block.queue;
  queue.order = nullptr;
  if (options.order == Order::kForward) return;
  worker.order.resize(queue.size);
  for (unsigned i = 0; i < queue.size; i++) worker.order[i] = static_cast<uint16_t>(queue.size - 1 - i);
  queue.order = worker.order.data();
}

void Prepare(Worker& worker, const Grid& grid) {
  const LaunchConfig& config = grid.config;
  blockDim = config.block;
  gridDim = config.grid;
  worker.grid = &grid;
  worker.thread = pthread_self();
  worker.random.seed(options.seed);
  worker.n_variables = 0;
  worker.static_bytes = 0;
  worker.dynamic_shared =
      reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(worker.shared_end - config.shared_bytes) & ~uintptr_t{15});
  worker.block.queue.size = blockDim.x * blockDim.y * blockDim.z;
  PrepareOrder(worker);
}

// A handler that runs when a fiber's stack is full needs a stack of its own.
class SignalStack {
 public:
  explicit SignalStack(char* memory) {
    stack_t ours{};
    ours.ss_sp = memory;
    ours.ss_size = kSignalStackBytes;
    sigaltstack(&ours, &former_);
  }
  ~SignalStack() {
    if (former_.ss_flags & SS_ONSTACK) former_.ss_flags = 0;
    sigaltstack(&former_, nullptr);
  }

 private:
  stack_t former_{};
};

void WorkOn(Job& job, Worker* worker) {
  this_worker = worker;
  SignalStack signal_stack(worker->signal_stack);
  Prepare(*worker, job.grid);
  worker->started_ms = NowMs();
  for (uint64_t i; !job.stop && (i = job.next.fetch_add(job.chunk)) < job.n_blocks;) {
    for (uint64_t k = i; k < std::min(job.n_blocks, i + job.chunk) && !job.stop; k++) {
      const uint64_t b = job.BlockAt(k);
      RunBlock(static_cast<uint32_t>(b), IndexIn(job.grid.config.grid, b));
      if (worker->failed) job.stop = true;
    }
  }
  worker->started_ms = 0;
  this_worker = nullptr;
}

// Threads that wait for jobs.  Never destroyed: they may outlive the destructors of globals.
class Pool {
 public:
  void Offer(Job* job, int n_helpers) {
    std::lock_guard<std::mutex> lock(mutex_);
    job_ = job;
    generation_++;
    for (; n_threads_ < n_helpers; n_threads_++) std::thread([this, seen = generation_ - 1] { Help(seen); }).detach();
    work_.notify_all();
  }

  void WaitFor(Job* job) {
    std::unique_lock<std::mutex> lock(mutex_);
    job_ = nullptr;
    done_.wait(lock, [job] { return job->helpers == 0; });
  }

 private:
  void Help(unsigned seen) {
    sigset_t mask;
    sigfillset(&mask);
    for (int signal_number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGURG}) sigdelset(&mask, signal_number);
    pthread_sigmask(SIG_SETMASK, &mask, nullptr);  // all other signals are for Python's own thread
    Worker* worker = Registered(NewWorker());
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      work_.wait(lock, [&] { return generation_ != seen; });
      seen = generation_;
      Job* job = job_;
      if (job == nullptr) continue;  // it was over before we woke
      job->helpers++;
      lock.unlock();
      WorkOn(*job, worker);
      lock.lock();
      job->helpers--;
      done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable work_, done_;
  Job* job_ = nullptr;
  unsigned generation_ = 0;
  int n_threads_ = 0;
};

Pool* pool;
Worker* main_worker;  // of whichever thread launches: launches take turns

}  // namespace

void RunBlocks(const Grid& grid) {
  if (main_worker == nullptr) main_worker = Registered(NewWorker());
  Job job(grid);
  const uint64_t block_size = uint64_t{grid.config.block.x} * grid.config.block.y * grid.config.block.z;
  const bool shared = options.workers > 1 && job.n_blocks > 1 && job.n_blocks * block_size >= kThreadsWorthSharing;
  if (shared) {
    if (pool == nullptr) pool = new Pool;
    pool->Offer(&job, options.workers - 1);
  }
  WorkOn(job, main_worker);
  if (shared) pool->WaitFor(&job);
}

void InterruptWorkersAfter(double seconds) {
  std::lock_guard<std::mutex> lock(workers_mutex);
  for (const Worker* worker : workers) {
    const long started = worker->started_ms;
    if (started != 0 && static_cast<double>(NowMs() - started) > seconds * 1000) pthread_kill(worker->thread, SIGURG);
  }
}

bool AnyWorkerBusy() {
  std::lock_guard<std::mutex> lock(workers_mutex);
  return std::any_of(workers.begin(), workers.end(), [](const Worker* worker) { return worker->started_ms != 0; });
}

void ForgetOtherWorkers() {
  pool = nullptr;
  workers.clear();
  if (main_worker != nullptr) workers.push_back(main_worker);
}

}  // namespace cuda_emu
