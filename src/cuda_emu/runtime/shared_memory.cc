#include "shared_memory.h"

#include <cstring>
#include <string>

#include "checks.h"
#include "errors.h"
#include "worker.h"

namespace cuda_emu {

namespace {

constexpr size_t kCanary = 64;  // bytes behind each variable that must stay as they are
constexpr int kUnwritten = 0xff;

char* Aligned(char* pointer) {
  return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(pointer) + 15) & ~uintptr_t{15});
}

void Poison(const SharedVariable& variable) {
  std::memset(variable.address, kUnwritten, variable.bytes() + kCanary);
}

void CheckRoom(Worker& worker, const SharedVariable& variable, const void* pc) {
  const std::string shown = std::string("`__shared__ ") + variable.declaration + "`";
  if (worker.n_variables == sizeof(worker.variables) / sizeof(worker.variables[0])) {
    Fail(cudaErrorInvalidConfiguration, "more than 32 __shared__ variables; " + shown + " is one too many", {pc});
  }
  worker.static_bytes += variable.bytes();
  if (worker.static_bytes > kStaticSharedBytes) {
    Fail(cudaErrorInvalidConfiguration,
         "too much shared memory: with " + shown + " the kernel's __shared__ variables need " +
             std::to_string(worker.static_bytes) + " bytes, and a block has " + std::to_string(kStaticSharedBytes),
         {pc});
  }
}

SharedVariable& Add(Worker& worker, SharedVariable variable) {
  char* end = worker.shared_begin;
  if (worker.n_variables > 0) {
    const SharedVariable& last = worker.variables[worker.n_variables - 1];
    end = last.address + last.bytes();
  }
  variable.address = Aligned(end + kCanary);
  return worker.variables[worker.n_variables++] = variable;
}

}  // namespace

void* DynamicShared() {
  return this_worker->dynamic_shared;
}

void* StaticShared(const SharedShape* shape, const char* name, const char* declaration) {
  Worker& worker = *this_worker;
  for (unsigned i = 0; i < worker.n_variables; i++) {
    if (worker.variables[i].shape == shape) return worker.variables[i].address;
  }
  const SharedVariable variable{shape, name, declaration, nullptr};
  CheckRoom(worker, variable, __builtin_return_address(0));
  const SharedVariable& added = Add(worker, variable);
  Poison(added);
  checks->SharedDeclared(added);
  return added.address;
}

std::string SharedElementText(const SharedVariable& variable, const char* address) {
  const SharedShape& shape = *variable.shape;
  size_t index = static_cast<size_t>(address - variable.address) / shape.element_bytes;
  if (shape.rank > 4) return std::string("`") + variable.name + "`";
  std::string text;
  for (uint32_t axis = shape.rank; axis-- > 0;) {  // the first index is not reduced: it shows how far outside it is
    text = "[" + std::to_string(axis > 0 ? index % shape.extents[axis] : index) + "]" + text;
    index /= shape.extents[axis];
  }
  return std::string("`") + variable.name + text + "`";
}

void PoisonShared() {
  Worker& worker = *this_worker;
  for (unsigned i = 0; i < worker.n_variables; i++) Poison(worker.variables[i]);
  std::memset(worker.dynamic_shared, kUnwritten, worker.grid->config.shared_bytes);
}

void CheckCanaries() {
  Worker& worker = *this_worker;
  for (unsigned i = 0; i < worker.n_variables; i++) {
    const SharedVariable& variable = worker.variables[i];
    const auto* canary = reinterpret_cast<const unsigned char*>(variable.address + variable.bytes());
    for (size_t k = 0; k < kCanary; k++) {
      if (canary[k] == kUnwritten) continue;
      Report(cudaErrorIllegalAddress,
             std::string("out-of-bounds write to shared memory: a thread of the block wrote ") + Count(k, "byte") +
                 " past the end of `__shared__ " + variable.declaration + "`",
             {});
      worker.failed = true;
      return;
    }
  }
}

}  // namespace cuda_emu
