// The six element types, by number and by name.
#ifndef NEEDLE_KERNELS_DTYPE_H_
#define NEEDLE_KERNELS_DTYPE_H_

#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

// what both the CPU's and CUDA's kernels call; a C++ compiler never sees the words
#ifdef __CUDACC__
#define NEEDLE_HOST_DEVICE __host__ __device__
#else
#define NEEDLE_HOST_DEVICE
#endif

namespace needle {

/// One byte, true unless 0: unlike C++'s bool it may hold any byte that memory from elsewhere may hold.
struct Bool {
  Bool() = default;
  NEEDLE_HOST_DEVICE Bool(bool value) : byte(value) {}  // NOLINT: a Bool is to read like a bool
  NEEDLE_HOST_DEVICE operator bool() const { return byte != 0; }
  uint8_t byte;
};

//      number    type     name
#define NEEDLE_DTYPES(X)         \
  X(kFloat32, float, "float32")  \
  X(kFloat64, double, "float64") \
  X(kInt32, int32_t, "int32")    \
  X(kInt64, int64_t, "int64")    \
  X(kUint8, uint8_t, "uint8")    \
  X(kBool, Bool, "bool")

enum class DType : uint8_t {
#define NEEDLE_NUMBER(number, T, name) number,
  NEEDLE_DTYPES(NEEDLE_NUMBER)
#undef NEEDLE_NUMBER
};

/// A TypeError in Python.
struct TypeError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What a visitor is called with: `using T = typename decltype(type)::type`.
template <typename T>
struct Type {
  using type = T;
};

/// Call visitor(Type<T>{}) for the C++ type T of a dtype.
template <typename Visitor>
auto Visit(DType dtype, Visitor&& visitor) {
  switch (dtype) {
#define NEEDLE_CASE(number, T, name) \
  case DType::number:                \
    return visitor(Type<T>{});
    NEEDLE_DTYPES(NEEDLE_CASE)
#undef NEEDLE_CASE
  }
  throw TypeError("unknown dtype");
}

template <typename T>
constexpr bool kIsFloat = std::is_floating_point_v<T>;
template <typename T>
constexpr bool kIsBool = std::is_same_v<T, Bool>;
template <typename T>
constexpr bool kIsInteger = std::is_integral_v<T>;

// which types a kernel is defined for
struct AnyType {
  template <typename T>
  static constexpr bool kAccepts = true;
  static constexpr const char* kWanted = "any dtype";
};
struct NumberType {
  template <typename T>
  static constexpr bool kAccepts = !kIsBool<T>;
  static constexpr const char* kWanted = "a number dtype";
};
struct FloatType {
  template <typename T>
  static constexpr bool kAccepts = kIsFloat<T>;
  static constexpr const char* kWanted = "float32 or float64";
};

inline const char* Name(DType dtype) {
  switch (dtype) {
#define NEEDLE_CASE(number, T, name) \
  case DType::number:                \
    return name;
    NEEDLE_DTYPES(NEEDLE_CASE)
#undef NEEDLE_CASE
  }
  return "unknown";
}

inline int64_t ItemSize(DType dtype) {
  return Visit(dtype, [](auto type) { return static_cast<int64_t>(sizeof(typename decltype(type)::type)); });
}

/// The number of a name; a ValueError for any other text.
inline DType DTypeFromName(const std::string& wanted) {
#define NEEDLE_NAME(number, T, name) \
  if (wanted == name) return DType::number;
  NEEDLE_DTYPES(NEEDLE_NAME)
#undef NEEDLE_NAME
  throw std::invalid_argument("dtype '" + wanted + "', wanted float32, float64, int32, int64, uint8 or bool");
}

/// As Visit, for the types that a kernel is defined for; a TypeError that names the kernel for the others.
template <typename Types, typename Visitor>
void VisitOnly(const char* who, DType dtype, Visitor&& visitor) {
  Visit(dtype, [&](auto type) {
    if constexpr (Types::template kAccepts<typename decltype(type)::type>) {
      visitor(type);
    } else {
      throw TypeError(std::string(who) + ": dtype " + Name(dtype) + ", wanted " + Types::kWanted);
    }
  });
}

}  // namespace needle

#endif  // NEEDLE_KERNELS_DTYPE_H_
