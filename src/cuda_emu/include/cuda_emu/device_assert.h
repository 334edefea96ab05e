// assert() in a kernel ends the launch with a report, not the process.
#ifndef CUDA_EMU_DEVICE_ASSERT_H_
#define CUDA_EMU_DEVICE_ASSERT_H_

#include <cassert>
#include <cstdio>
#include <cstdlib>

#include "keywords.h"

namespace cuda_emu {
/// Leaves the running kernel for good; returns if there is none.
CUDA_EMU_API void FailedAssertion(const char* expression, const char* file, unsigned line);
CUDA_EMU_API void Trap();
}  // namespace cuda_emu

// Hidden, and in a header, so that each module has its own: otherwise the C library's would be found first.
#if defined(__GLIBC__)
extern "C" inline __attribute__((visibility("hidden"), noreturn)) void __assert_fail(const char* expression,
                                                                                     const char* file, unsigned line,
                                                                                     const char* function) noexcept {
  ::cuda_emu::FailedAssertion(expression, file, line);
  std::fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, expression);
  std::abort();
}
#endif

inline void __trap() {
  ::cuda_emu::Trap();
}

#endif  // CUDA_EMU_DEVICE_ASSERT_H_
