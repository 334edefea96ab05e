// A runtime without checks: what check_*.cc do not replace.
#include "../include/cuda_emu/atomics.h"
#include "checks.h"

namespace cuda_emu {

namespace {
Checks no_checks;
}

Checks* checks = &no_checks;
bool kernel_fenced, kernel_locked;

void Fence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  kernel_fenced = true;
}

void NoteLock() {
  kernel_locked = true;
}

}  // namespace cuda_emu
