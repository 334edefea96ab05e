// Launching: from kernel<<<grid, block>>>(arguments) to a loop over the threads of each block.
#ifndef CUDA_EMU_LAUNCH_H_
#define CUDA_EMU_LAUNCH_H_

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "keywords.h"
#include "vector_types.h"

// initial-exec: reading threadIdx costs one instruction, not a call
#if defined(__APPLE__)
#define CUDA_EMU_THREAD_LOCAL CUDA_EMU_API __thread
#else
#define CUDA_EMU_THREAD_LOCAL CUDA_EMU_API __thread __attribute__((tls_model("initial-exec")))
#endif
extern CUDA_EMU_THREAD_LOCAL uint3 threadIdx;
extern CUDA_EMU_THREAD_LOCAL uint3 blockIdx;
extern CUDA_EMU_THREAD_LOCAL dim3 blockDim;
extern CUDA_EMU_THREAD_LOCAL dim3 gridDim;
static constexpr int warpSize = 32;

struct CUstream_st;
typedef CUstream_st* cudaStream_t;

namespace cuda_emu {

/// Where a barrier, a shuffle or a launch stands in the source.
struct Site {
  const char* file;
  int line;
  const char* what;
};

/// A pointer that a kernel got: so that a report can say `a[1000]` and not only an address.
struct PointerArgument {
  const void* pointer;
  uint32_t element_size;  // 0: of unknown type
  uint32_t position;      // among all arguments, from 0
};

/// All that stands between <<< and >>>, and where.
struct LaunchConfig {
  const char* kernel;      // as written, in parentheses
  const char* parameters;  // their names, separated by commas; empty if unknown
  Site site;
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
};

/// The threads of a block that have not started yet.
struct ThreadQueue {
  unsigned next;          // how many have started
  unsigned size;          // how many there are
  const uint16_t* order;  // null: 0, 1, 2, ...
};

/// What the runtime needs to run one grid.
struct Grid {
  LaunchConfig config;
  void (*run_threads)(ThreadQueue*, const void* body);
  const void* body;
  const void* arguments;
  size_t argument_bytes;
  const PointerArgument* pointers;
  size_t n_pointers;
};

/// Run a grid to its end.  Throws std::runtime_error with a diagnosis if a thread goes wrong.
CUDA_EMU_API void RunGrid(const Grid& grid);

/// Where the `linear`-th block of a grid, or thread of a block, is: x goes fastest.
template <class Integer>
CUDA_EMU_UNCHECKED inline uint3 IndexIn(const dim3& extent, Integer linear) {
  return {static_cast<unsigned>(linear % extent.x), static_cast<unsigned>(linear / extent.x % extent.y),
          static_cast<unsigned>(linear / extent.x / extent.y)};
}

/// The number of the running thread in its block.
CUDA_EMU_UNCHECKED inline unsigned LinearThread() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

/// Starts one thread after the other on the current stack.  A thread that must wait (at a barrier, in a shuffle) parks
/// this stack, and the scheduler goes on with the next thread on a fresh one.  So a kernel that never waits is a plain
/// loop, any other becomes fibers, and nothing has to be known beforehand.
template <class Body>
CUDA_EMU_UNCHECKED void RunThreads(ThreadQueue* queue, const void* pointer) {
  const Body body = *static_cast<const Body*>(pointer);  // a copy: so the arguments stay in registers
  if (queue->order == nullptr && blockDim.y * blockDim.z == 1) {
    for (unsigned t; (t = queue->next) < queue->size;) {
      queue->next = t + 1;
      threadIdx.x = t;
      body();
    }
    return;
  }
  for (unsigned t; (t = queue->next) < queue->size;) {
    queue->next = t + 1;
    threadIdx = IndexIn(blockDim, queue->order == nullptr ? t : queue->order[t]);
    body();
  }
}

template <class T>
constexpr uint32_t ElementSize() {
  if constexpr (std::is_void_v<T> || std::is_function_v<T>) {
    return 0;
  } else {
    return sizeof(T);
  }
}

/// Fills `pointers` with those of the arguments that are pointers, and returns how many there are.
template <class... Args>
size_t CollectPointers(const std::tuple<Args...>& arguments, PointerArgument* pointers) {
  size_t count = 0;
  uint32_t position = 0;
  auto visit = [&](const auto& argument) {
    using T = std::decay_t<decltype(argument)>;
    if constexpr (std::is_pointer_v<T>) {
      // a cast of C's: it takes off volatile too, and pointers to functions are welcome
      pointers[count++] = {(const void*)argument, ElementSize<std::remove_pointer_t<T>>(), position};
    }
    position++;
  };
  std::apply([&](const auto&... each) { (visit(each), ...); }, arguments);
  return count;
}

/// kernel<<<...>>> before its arguments.
template <class Kernel>
struct Launcher {
  LaunchConfig config;
  Kernel kernel;

  template <class... Args>
  void operator()(Args&&... args) const {
    static_assert((std::is_trivially_copyable_v<std::decay_t<Args>> && ...),
                  "a kernel's arguments are copied byte by byte to the GPU: pass pointers, numbers and plain structs, "
                  "not std::vector, std::string and the like");
    std::tuple<std::decay_t<Args>...> arguments(std::forward<Args>(args)...);
    PointerArgument pointers[sizeof...(Args) + 1];
    const size_t n_pointers = CollectPointers(arguments, pointers);
    auto body = [arguments, kernel = this->kernel] { std::apply(kernel, arguments); };
    RunGrid({config, &RunThreads<decltype(body)>, &body, &arguments, sizeof(arguments), pointers, n_pointers});
  }
};

/// The same where the types of the kernel's parameters are known: arguments become what it takes here, on the host, as
/// they do for a GPU.  So NULL may stand for a pointer, and an object that converts to one.
template <class Kernel, class... Parameters>
struct ConvertingLauncher {
  Launcher<Kernel> launcher;

  void operator()(Parameters... arguments) const { launcher(arguments...); }
};

template <class Kernel, class... Parameters>
ConvertingLauncher<Kernel, Parameters...> ConvertFor(void (*)(Parameters...), Launcher<Kernel> launcher) {
  return {launcher};
}

template <class Kernel>
Launcher<Kernel> LaunchAt(const char* name, const char* parameters, Site site, Kernel kernel, dim3 grid, dim3 block,
                          size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  return {{name, parameters, site, grid, block, shared_bytes, stream}, kernel};
}

// ---- shared memory

CUDA_EMU_API void* DynamicShared();
/// What is known of a __shared__ variable.  Its address tells the variable from all others.
struct SharedShape {
  uint32_t bytes, element_bytes;
  uint32_t rank;
  uint32_t extents[4];
};

template <class Array>
constexpr SharedShape ShapeOf() {
  using Element = std::remove_all_extents_t<Array>;
  return {sizeof(Array),
          sizeof(Element),
          std::rank_v<Array>,
          {std::extent_v<Array, 0>, std::extent_v<Array, 1>, std::extent_v<Array, 2>, std::extent_v<Array, 3>}};
}

CUDA_EMU_API void* StaticShared(const SharedShape* shape, const char* name, const char* declaration);

/// The one S of the running block; S holds a single member, of type Array.
template <class S, class Array>
inline S& Shared(const char* name, const char* declaration) {
  static constexpr SharedShape shape = ShapeOf<Array>();
  return *static_cast<S*>(StaticShared(&shape, name, declaration));
}

}  // namespace cuda_emu

// rewrite.py turns  k<T><<<grid, block>>>(a)  into  CUDA_EMU_LAUNCH((k<T>), "names", grid, block)(a)
#define CUDA_EMU_STRIP(...) __VA_ARGS__
#define CUDA_EMU_LAUNCH(k, parameters, ...)           \
  ::cuda_emu::LaunchAt(                               \
      #k, parameters, {__FILE__, __LINE__, "launch"}, \
      [=](auto&... cuda_emu_arguments) { CUDA_EMU_STRIP k(cuda_emu_arguments...); }, __VA_ARGS__)
// the same for a kernel that is one function: no template, and no other function has its name
#define CUDA_EMU_LAUNCH_ONE(k, parameters, ...) \
  ::cuda_emu::ConvertFor(CUDA_EMU_STRIP k, CUDA_EMU_LAUNCH(k, parameters, __VA_ARGS__))

#endif  // CUDA_EMU_LAUNCH_H_
