// The words that CUDA adds to C++.  On the CPU, code for the device and code for the host are the same code.
#ifndef CUDA_EMU_KEYWORDS_H_
#define CUDA_EMU_KEYWORDS_H_

#define __CUDA_EMU__ 1
#define CUDART_VERSION 12000
#define CUDA_VERSION CUDART_VERSION

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))

// What modules call in the runtime, which is a library of its own.
#define CUDA_EMU_API __attribute__((visibility("default")))

// Code of the emulator that is compiled into kernels and must not be taken for theirs by the check build.
#if defined(__SANITIZE_THREAD__)
#define CUDA_EMU_UNCHECKED __attribute__((no_sanitize("thread")))
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CUDA_EMU_UNCHECKED __attribute__((no_sanitize("thread")))
#endif
#endif
#ifndef CUDA_EMU_UNCHECKED
#define CUDA_EMU_UNCHECKED
#endif

#endif  // CUDA_EMU_KEYWORDS_H_
