// What the .cu files of these tests share: functions by name, device arrays, checked calls.
#ifndef NEEDLE_TESTS_CUDA_EMULATOR_TESTING_H_
#define NEEDLE_TESTS_CUDA_EMULATOR_TESTING_H_

#include <cuda_runtime.h>

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

using Function = void (*)();

inline std::map<std::string, Function>& Functions() {
  static std::map<std::string, Function> functions;
  return functions;
}

struct Registered {
  Registered(const char* name, Function function) { Functions()[name] = function; }
};

/// A function that the tests call by name; it throws if something is wrong.
#define TEST_FUNCTION(name)                               \
  static void name();                                     \
  static const Registered name##_registered(#name, name); \
  static void name()

/// Null if the function returns, else the text of what it throws.
extern "C" __attribute__((visibility("default"))) const char* run(const char* name) {
  static std::string text;
  cudaGetLastError();  // what an earlier function left behind
  try {
    Functions().at(name)();
    return nullptr;
  } catch (const std::exception& error) {
    text = error.what();
    return text.c_str();
  }
}

inline void Check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

inline void Finish() {
  Check(cudaGetLastError());
  Check(cudaDeviceSynchronize());
}

inline void Expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("wrong: " + what);
}

/// A device array with a copy constructor's worth of comfort and no more.
template <class T = float>
struct Device {
  T* p = nullptr;
  size_t n;

  struct Unwritten {};
  Device(size_t n, Unwritten) : n(n) { Check(cudaMalloc(&p, n * sizeof(T))); }
  explicit Device(size_t n, T value = T(1)) : Device(std::vector<T>(n, value)) {}
  explicit Device(const std::vector<T>& values) : Device(values.size(), Unwritten()) {
    Check(cudaMemcpy(p, values.data(), n * sizeof(T), cudaMemcpyHostToDevice));
  }
  Device(const Device&) = delete;
  ~Device() { cudaFree(p); }

  std::vector<T> Get() const {
    std::vector<T> values(n);
    Check(cudaMemcpy(values.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }
};

#endif  // NEEDLE_TESTS_CUDA_EMULATOR_TESTING_H_
