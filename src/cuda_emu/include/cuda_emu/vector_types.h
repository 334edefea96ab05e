// dim3, and the small vectors: float4, int2, ... with make_float4(), ...  Their alignments are those of CUDA.
#ifndef CUDA_EMU_VECTOR_TYPES_H_
#define CUDA_EMU_VECTOR_TYPES_H_

#define CUDA_EMU_VECTOR1(Name, T)      \
  struct Name##1 {                     \
    T x;                               \
  };                                   \
  inline Name##1 make_##Name##1(T x) { \
    return {x};                        \
  }
#define CUDA_EMU_VECTOR2(Name, T)           \
  struct alignas(2 * sizeof(T)) Name##2 {   \
    T x, y;                                 \
  };                                        \
  inline Name##2 make_##Name##2(T x, T y) { \
    return {x, y};                          \
  }
#define CUDA_EMU_VECTOR3(Name, T)                \
  struct Name##3 {                               \
    T x, y, z;                                   \
  };                                             \
  inline Name##3 make_##Name##3(T x, T y, T z) { \
    return {x, y, z};                            \
  }
// four of 8 bytes are aligned to 16 only: no instruction loads 32 bytes at once
#define CUDA_EMU_VECTOR4(Name, T)                              \
  struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) Name##4 { \
    T x, y, z, w;                                              \
  };                                                           \
  inline Name##4 make_##Name##4(T x, T y, T z, T w) {          \
    return {x, y, z, w};                                       \
  }
#define CUDA_EMU_VECTORS(Name, T) \
  CUDA_EMU_VECTOR1(Name, T)       \
  CUDA_EMU_VECTOR2(Name, T)       \
  CUDA_EMU_VECTOR3(Name, T)       \
  CUDA_EMU_VECTOR4(Name, T)

CUDA_EMU_VECTORS(char, signed char)
CUDA_EMU_VECTORS(uchar, unsigned char)
CUDA_EMU_VECTORS(short, short)
CUDA_EMU_VECTORS(ushort, unsigned short)
CUDA_EMU_VECTORS(int, int)
CUDA_EMU_VECTORS(uint, unsigned)
CUDA_EMU_VECTORS(long, long)
CUDA_EMU_VECTORS(ulong, unsigned long)
CUDA_EMU_VECTORS(longlong, long long)
CUDA_EMU_VECTORS(ulonglong, unsigned long long)
CUDA_EMU_VECTORS(float, float)
CUDA_EMU_VECTORS(double, double)

/// The extent of a grid or a block; what is left out is 1.
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

#endif  // CUDA_EMU_VECTOR_TYPES_H_
