// The thread that stops kernels which run too long.  It sleeps as long as nothing is launched.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "faults.h"
#include "options.h"
#include "workers.h"

namespace cuda_emu {

namespace {

struct Clock {
  std::mutex mutex;
  std::condition_variable wake;
  std::atomic<bool> awake{false};
};
Clock* clock_of_process;  // never destroyed: its thread may outlive the destructors of globals

void Watch(Clock* clock) {
  constexpr int kIdleTicks = 20;
  for (;;) {
    int idle = 0;
    while (idle < kIdleTicks) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      InterruptWorkersAfter(options.timeout);
      idle = AnyWorkerBusy() ? 0 : idle + 1;
    }
    std::unique_lock<std::mutex> lock(clock->mutex);
    clock->awake = false;
    clock->wake.wait(lock, [clock] { return clock->awake.load(); });
  }
}

}  // namespace

void WatchTheClock() {
  if (clock_of_process == nullptr) {
    clock_of_process = new Clock;
    clock_of_process->awake = true;
    std::thread(Watch, clock_of_process).detach();
  } else if (!clock_of_process->awake) {
    std::lock_guard<std::mutex> lock(clock_of_process->mutex);
    clock_of_process->awake = true;
    clock_of_process->wake.notify_one();
  }
}

void ForgetTheClock() {
  clock_of_process = nullptr;
}

}  // namespace cuda_emu
