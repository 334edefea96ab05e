#include "isa.h"

#include <atomic>
#include <cstdlib>

#include "../checks.h"

namespace needle {
namespace {

Isa Named(const std::string& name) {
  std::string known;
  for (Isa isa : AvailableIsas()) {
    if (name == Name(isa)) return isa;
    known += std::string(known.empty() ? "" : ", ") + Name(isa);
  }
  Refuse("NEEDLE_ISA", "'" + name + "', this machine has " + known);
}

Isa FirstIsa() {
  const char* wanted = std::getenv("NEEDLE_ISA");
  return wanted && *wanted ? Named(wanted) : AvailableIsas().front();
}

std::atomic<Isa>& InUse() {
  static std::atomic<Isa> isa{FirstIsa()};
  return isa;
}

}  // namespace

std::vector<Isa> AvailableIsas() {
  std::vector<Isa> available;
#ifdef NEEDLE_HAVE_X86_KERNELS
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2 && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw")) {
    available.push_back(Isa::kAvx512);
  }
  if (avx2) available.push_back(Isa::kAvx2);
#endif
  available.push_back(Isa::kBaseline);
  return available;
}

Isa IsaInUse() {
  return InUse().load(std::memory_order_relaxed);
}

void SetIsa(const std::string& name) {
  InUse() = Named(name);
}

const char* Name(Isa isa) {
  return isa == Isa::kAvx512 ? "avx512" : isa == Isa::kAvx2 ? "avx2" : "baseline";
}

}  // namespace needle
