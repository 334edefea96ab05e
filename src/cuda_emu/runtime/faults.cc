#include "faults.h"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "../include/cuda_emu/device_assert.h"
#include "arena.h"
#include "checks.h"
#include "errors.h"
#include "options.h"
#include "source_lines.h"
#include "worker.h"

namespace cuda_emu {

namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGURG};  // SIGURG is our clock's: stray ones do no harm
constexpr int kNSignals = sizeof(kSignals) / sizeof(kSignals[0]);

struct sigaction former[kNSignals];  // who was there when we came last
struct sigaction first[kNSignals];   // who was there before we ever came
bool have_first;

int IndexOf(int signal_number) {
  int i = 0;
  while (kSignals[i] != signal_number) i++;
  return i;
}

// Two runtimes in one process (fast and check) may each stand behind the other; then the circle ends at `first`.
__thread int depth;

void PassOn(int signal_number, siginfo_t* info, void* context) {
  const int i = IndexOf(signal_number);
  const struct sigaction& next = depth == 0 ? former[i] : first[i];
  depth++;
  if ((next.sa_flags & SA_SIGINFO) && next.sa_sigaction != nullptr) {
    next.sa_sigaction(signal_number, info, context);
  } else if (next.sa_handler != SIG_DFL && next.sa_handler != SIG_IGN) {
    next.sa_handler(signal_number);
  } else if (signal_number != SIGURG) {
    signal(signal_number, SIG_DFL);  // return, and fault again, for good
  }
  depth--;
}

// Just behind the instruction that was interrupted, as a return address would be.
const void* AddressBehind(void* context_pointer) {
  [[maybe_unused]] auto* context = static_cast<ucontext_t*>(context_pointer);
#if defined(__linux__) && defined(__x86_64__)
  return reinterpret_cast<const void*>(context->uc_mcontext.gregs[REG_RIP] + 1);
#elif defined(__linux__) && defined(__aarch64__)
  return reinterpret_cast<const void*>(context->uc_mcontext.pc + 1);
#elif defined(__APPLE__) && defined(__x86_64__)
  return reinterpret_cast<const void*>(context->uc_mcontext->__ss.__rip + 1);
#elif defined(__APPLE__) && defined(__aarch64__)
  return reinterpret_cast<const void*>(context->uc_mcontext->__ss.__pc + 1);
#else
  return nullptr;
#endif
}

std::string DynamicSharedText(const char* p) {
  const Worker& worker = *this_worker;
  const size_t asked = worker.grid->config.shared_bytes;
  if (asked == 0) {
    return "the kernel uses extern __shared__ memory, but the launch asked for none: give the bytes as the third value "
           "between <<< and >>>";
  }
  return "out-of-bounds access to dynamic shared memory at byte " + std::to_string(p - worker.dynamic_shared) +
         "; the launch asked for " + std::to_string(asked) + " bytes (the third value between <<< and >>>)";
}

[[noreturn]] void FailFault(const char* p, const void* pc) {
  const Worker& worker = *this_worker;
  const Place place = {pc};
  if (InArena(p)) Fail(cudaErrorIllegalAddress, OutsideText(p, 0, "access"), place);
  if (p >= worker.shared_end && p < worker.shared_end + kPage) {
    Fail(cudaErrorIllegalAddress, DynamicSharedText(p), place);
  }
  if (p >= worker.stacks_begin && p < worker.stacks_end) {
    Fail(cudaErrorIllegalAddress,
         "stack overflow: a thread used more than " + std::to_string(options.stack_bytes >> 10) +
             " KB (endless recursion? NEEDLE_CUDA_EMU_STACK sets the KB)",
         place);
  }
  if (p < reinterpret_cast<const char*>(kPage)) {
    Fail(cudaErrorIllegalAddress, "null pointer: access to address " + Hex(p), place);
  }
  Fail(cudaErrorIllegalAddress, "access to address " + Hex(p) + ", which is not in device memory", place);
}

void HandleInKernel(int signal_number, const char* p, const void* pc) {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, signal_number);
  pthread_sigmask(SIG_UNBLOCK, &mask, nullptr);  // this handler will not return
  if (signal_number == SIGURG) FailTimedOut(pc);
  if (signal_number == SIGFPE) {
    Fail(cudaErrorLaunchFailure, "integer division by zero (a GPU would go on with a meaningless number)", {pc});
  }
  if (signal_number == SIGILL) Fail(cudaErrorLaunchFailure, "illegal instruction", {pc});
  FailFault(p, pc);
}

bool IsFirstTouch(int signal_number, const char* p) {
  if (signal_number != SIGSEGV && signal_number != SIGBUS) return false;
  Allocation* allocation = FindAllocation(p);
  if (allocation == nullptr || !allocation->live) return false;
  OpenForKernel(*allocation);  // or another worker is just doing so: then try again
  return true;
}

void Handle(int signal_number, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const auto* p = static_cast<const char*>(info->si_addr);
  if (!InKernel()) {
    if (signal_number != SIGURG && InArena(p)) {
      SayHostTouchesDevice(" at address " + Hex(p), p, AddressBehind(context));
    }
    PassOn(signal_number, info, context);
  } else if (signal_number == SIGURG && checks->SeeTimeOuts() && !this_worker->timed_out) {
    this_worker->timed_out = true;  // the next check will see it; if none comes, the clock's next signal will
  } else if (!IsFirstTouch(signal_number, p)) {
    HandleInKernel(signal_number, p, AddressBehind(context));
  }
  errno = saved_errno;
}

}  // namespace

void WatchForFaults() {
  struct sigaction current;
  sigaction(SIGSEGV, nullptr, &current);
  if (current.sa_sigaction == Handle) return;
  struct sigaction ours{};
  ours.sa_sigaction = Handle;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  for (int i = 0; i < kNSignals; i++) {
    sigaction(kSignals[i], nullptr, &current);
    if (current.sa_sigaction == Handle) continue;
    former[i] = current;
    if (!have_first) first[i] = current;
    sigaction(kSignals[i], &ours, nullptr);
  }
  have_first = true;
}

void SayHostTouchesDevice(const std::string& how, const void* pointer, const void* pc) {
  const std::string line = SourceLine(pc);
  const Allocation* allocation = FindNeighbour(pointer);
  std::fprintf(stderr,
               "\n[cuda_emu] code of the host touches device memory%s%s%s (%s).\n"
               "[cuda_emu] A device pointer is of use only in a kernel: copy with cudaMemcpy. The process ends here.\n",
               how.c_str(), line.empty() ? "" : " at ", line.c_str(),
               allocation == nullptr ? "no array" : ExtentText(*allocation).c_str());
}

void FailTimedOut(const void* pc) {
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "%g", options.timeout);
  Fail(cudaErrorLaunchTimeout,
       std::string("the kernel ran for more than ") + seconds +
           " seconds and was stopped: an endless loop? (NEEDLE_CUDA_EMU_TIMEOUT sets the seconds)",
       {pc});
}

void Trap() {
  Fail(cudaErrorLaunchFailure, "__trap()", {__builtin_return_address(0)});
}

void FailedAssertion(const char* expression, const char* file, unsigned line) {
  if (!InKernel()) return;
  const Site site = {file, static_cast<int>(line), "assert"};
  Fail(cudaErrorAssert, std::string("assertion failed: ") + expression, {nullptr, nullptr, &site});
}

}  // namespace cuda_emu
