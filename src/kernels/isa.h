// Instruction sets: a file in simd/ is one source that is compiled once for each of them, in a namespace of that name,
// and at run time the best that the processor has is called.  So one binary runs on any machine.
#ifndef NEEDLE_KERNELS_ISA_H_
#define NEEDLE_KERNELS_ISA_H_

#include <string>
#include <vector>

namespace needle {

/// From narrow to wide.  kBaseline is what every processor of this architecture has: SSE2 on x86-64, NEON on arm64.
enum class Isa { kBaseline, kAvx2, kAvx512 };

/// Those that this build and this processor have, the widest first.
std::vector<Isa> AvailableIsas();

/// The one in use: the widest, unless NEEDLE_ISA or SetIsa asked for another.
Isa IsaInUse();
void SetIsa(const std::string& name);

/// "baseline", "avx2", "avx512".
const char* Name(Isa isa);

// Declare a function for each instruction set: NEEDLE_FOR_EACH_ISA(void Exp(const float* in, float* out, int64_t n);)
// Call the one for this machine: NEEDLE_DISPATCH(Exp)(in, out, n)
// clang-format off
#ifdef NEEDLE_HAVE_X86_KERNELS
#define NEEDLE_FOR_EACH_ISA(...)     \
  namespace baseline { __VA_ARGS__ } \
  namespace avx2 { __VA_ARGS__ }     \
  namespace avx512 { __VA_ARGS__ }
#define NEEDLE_DISPATCH(function)                 \
  (IsaInUse() == Isa::kAvx512 ? &avx512::function \
   : IsaInUse() == Isa::kAvx2 ? &avx2::function   \
                              : &baseline::function)
#else
#define NEEDLE_FOR_EACH_ISA(...) \
  namespace baseline { __VA_ARGS__ }
#define NEEDLE_DISPATCH(function) (&baseline::function)
#endif
// clang-format on

}  // namespace needle

#endif  // NEEDLE_KERNELS_ISA_H_
