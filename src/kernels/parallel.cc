// Threads that share processors politely.  OpenMP's threads, GCC's at least, wait for milliseconds in a loop that never
// gives way, and divide the work before they know who will come: where NumPy's threads or another program's want the
// same processors, 20 microseconds of work take 8 milliseconds.  Here whoever waits soon gives way; the caller does
// itself what no thread has begun; and threads that have nothing to do go to sleep.
#include "parallel.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#ifdef __linux__
#include <sched.h>
#endif

#include "../checks.h"

namespace needle {
namespace {

constexpr int64_t kMostThreads = 1024;

// ---- how many -------------------------------------------------------------------------------------------------------

int Processors() {
#ifdef __linux__
  cpu_set_t allowed;  // for this program
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return CPU_COUNT(&allowed);
#endif
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

int DefaultThreads() {
  for (const char* name : {"NEEDLE_NUM_THREADS", "OMP_NUM_THREADS"}) {
    const char* text = std::getenv(name);
    const int64_t wanted = text ? std::strtol(text, nullptr, 10) : 0;
    if (wanted > 0) return static_cast<int>(std::min(wanted, kMostThreads));
  }
  return Processors();
}

std::atomic<int>& Threads() {
  static std::atomic<int> threads{DefaultThreads()};
  return threads;
}

// ---- waiting --------------------------------------------------------------------------------------------------------

// How often to look, of which the first in a row, a few microseconds long, and then giving way in between.
constexpr int64_t kLooks = 100;
constexpr int64_t kWakeful = 4000;  // some milliseconds without work: most gaps between kernels are shorter

/// Tell the processor that this is a waiting loop.
void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Look whether what another thread does is ready, at most so often; soon giving way, as that thread may wait for this
/// very processor.
template <typename Ready>
bool WaitFor(const Ready& ready, int64_t turns) {
  for (int64_t turn = 0; turn < turns; turn++) {
    if (ready()) return true;
    turn < kLooks ? Pause() : std::this_thread::yield();
  }
  return ready();
}

// ---- threads --------------------------------------------------------------------------------------------------------

/// What is to be done, on the stack of the caller, who stays until nobody works on it.
struct Task {
  PieceBody body;
  const void* context;
  int64_t count, members;
  std::atomic<int64_t> done{0};  // by others than the caller
  std::atomic<bool> failed{false};
  std::exception_ptr thrown{};  // what body threw first: an exception must not leave its thread

  void Run(int64_t member);
};

thread_local Task* current = nullptr;  // what this thread works on; one that does is not given threads

void Task::Run(int64_t member) {
  const int64_t length = count / members, longer = count % members;  // the first `longer` pieces have one item more
  const int64_t begin = member * length + std::min(member, longer);
  current = this;
  try {
    body(context, begin, begin + length + (member < longer));
  } catch (...) {
    if (!failed.exchange(true)) thrown = std::current_exception();
  }
  current = nullptr;
}

/// A thread of its own, which takes the tasks that it is given, unless they are taken back before.
class Worker {
 public:
  explicit Worker(int64_t number) : number_(number) {
    std::thread([this] { WorkForEver(); }).detach();
  }

  void Give(Task* task) {
    task_ = task;
    if (asleep_) Wake();
  }

  /// Whether the task was still there.
  bool TakeBack() { return task_.exchange(nullptr) != nullptr; }

 private:
  [[noreturn]] void WorkForEver() {
    for (;;) {
      if (WaitFor([this] { return task_.load() != nullptr; }, kWakeful)) {
        Task* task = task_.exchange(nullptr);
        if (!task) continue;
        task->Run(number_);
        task->done++;  // from here on the task may be gone
      } else {
        Sleep();
      }
    }
  }

  void Sleep() {
    std::unique_lock<std::mutex> lock(mutex_);
    asleep_ = true;  // whoever gives a task sees this, or we see the task
    woken_.wait(lock, [this] { return !asleep_ || task_.load() != nullptr; });
    asleep_ = false;
  }

  void Wake() {
    const std::lock_guard<std::mutex> lock(mutex_);
    asleep_ = false;
    woken_.notify_one();
  }

  const int64_t number_;
  alignas(64) std::atomic<Task*> task_{nullptr};  // a cache line that only two threads write to
  std::atomic<bool> asleep_{false};
  std::mutex mutex_;
  std::condition_variable woken_;
};

class Pool {
 public:
  /// Whether the threads were free, and all is done.
  bool Run(int64_t count, int64_t members, PieceBody body, const void* context) {
    std::unique_lock<std::mutex> lock(in_use_, std::try_to_lock);
    if (!lock || !Grow(members - 1)) return false;
    Task task{body, context, count, members};
    for (int64_t i = 1; i < members; i++) worker(i).Give(&task);
    task.Run(0);
    int64_t others = 0;
    for (int64_t i = 1; i < members; i++) {
      worker(i).TakeBack() ? task.Run(i) : void(others++);
    }
    WaitFor([&] { return task.done == others; }, INT64_MAX);
    if (task.thrown) std::rethrow_exception(task.thrown);
    return true;
  }

 private:
  Worker& worker(int64_t number) { return *workers_[static_cast<size_t>(number - 1)]; }

  bool Grow(int64_t workers) {
    try {
      workers_.reserve(static_cast<size_t>(workers));  // a worker that has begun cannot be given up again
      while (static_cast<int64_t>(workers_.size()) < workers) {
        workers_.push_back(std::make_unique<Worker>(static_cast<int64_t>(workers_.size()) + 1));
      }
    } catch (const std::system_error&) {  // the system has no threads to give
      return false;
    }
    return true;
  }

  std::mutex in_use_;  // by one caller; others meanwhile work alone
  std::vector<std::unique_ptr<Worker>> workers_;
};

// never deleted: its threads wait in it until the program ends
std::atomic<Pool*>& ThePool() {
  static std::atomic<Pool*> pool{new Pool};
  return pool;
}

// a forked child has none of its parent's threads, and had better not multiply them
const int at_fork = pthread_atfork(nullptr, nullptr, [] {
  ThePool() = new Pool;
  Threads() = 1;
});

}  // namespace

void RunPieces(int64_t count, int64_t grain, PieceBody body, const void* context) {
  if (count <= 0) return;
  const int64_t members = std::min<int64_t>(NumThreads(), count / std::max<int64_t>(grain, 1));
  if (members > 1 && !current && ThePool().load()->Run(count, members, body, context)) return;
  body(context, 0, count);
}

int NumThreads() {
  return Threads();
}

void SetNumThreads(int64_t threads) {
  if (threads < 1 || threads > kMostThreads) {
    Refuse("set_num_threads", std::to_string(threads) + ", wanted 1 to " + std::to_string(kMostThreads));
  }
  Threads() = static_cast<int>(threads);
}

}  // namespace needle
