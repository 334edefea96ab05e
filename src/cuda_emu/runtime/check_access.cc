// Every load and store of a kernel: is it device memory, shared memory, a local variable; in bounds, aligned, written?
#include <sys/mman.h>

#ifdef __APPLE__
#include <dlfcn.h>
#include <mach-o/loader.h>
#else
#include <link.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "../include/cuda_emu/atomics.h"
#include "arena.h"
#include "check.h"
#include "checks.h"
#include "errors.h"
#include "faults.h"
#include "options.h"
#include "shared_memory.h"
#include "worker.h"

namespace cuda_emu {

namespace {

// ---- the module whose kernel runs: its globals, __constant__ variables and literals may be used

struct Module {
  uintptr_t begin = 0, end = 0, base = 0;

  bool Contains(const void* pointer) const {
    const auto p = reinterpret_cast<uintptr_t>(pointer);
    return p >= begin && p < end;
  }
};
Module module_of_kernel;

#ifdef __APPLE__

void FindModule(const void* code) {
  Dl_info found;
  if (module_of_kernel.Contains(code) || dladdr(code, &found) == 0) return;
  const auto* header = static_cast<const mach_header_64*>(found.dli_fbase);
  const auto* command = reinterpret_cast<const load_command*>(header + 1);
  Module module{~uintptr_t{0}, 0, reinterpret_cast<uintptr_t>(header)};
  for (uint32_t i = 0; i < header->ncmds; i++) {  // a library's first segment, which holds its header, is at address 0
    const auto* segment = reinterpret_cast<const segment_command_64*>(command);
    if (command->cmd == LC_SEGMENT_64) {
      const uintptr_t begin = module.base + segment->vmaddr;
      module.begin = std::min(module.begin, begin);
      module.end = std::max(module.end, begin + segment->vmsize);
    }
    command = reinterpret_cast<const load_command*>(reinterpret_cast<const char*>(command) + command->cmdsize);
  }
  module_of_kernel = module;
}

#else

Module Extent(const dl_phdr_info& info) {
  Module module{~uintptr_t{0}, 0, info.dlpi_addr};
  for (int i = 0; i < info.dlpi_phnum; i++) {
    if (info.dlpi_phdr[i].p_type != PT_LOAD) continue;
    const uintptr_t begin = info.dlpi_addr + info.dlpi_phdr[i].p_vaddr;
    module.begin = std::min(module.begin, begin);
    module.end = std::max(module.end, begin + info.dlpi_phdr[i].p_memsz);
  }
  return module;
}

void FindModule(const void* code) {
  if (module_of_kernel.Contains(code)) return;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* wanted) {
        const Module module = Extent(*info);
        if (!module.Contains(wanted)) return 0;
        module_of_kernel = module;
        return 1;
      },
      const_cast<void*>(code));
}

#endif

// ---- shadows: for each byte whether it was written, for each word who touched it

template <class T>
T* NewShadow(size_t n) {
  return reinterpret_cast<T*>(Reserve(n * sizeof(T), true));
}

size_t Words(size_t bytes) {
  return (bytes + 3) / 4;
}

ShadowCell* shared_cells;
uint8_t* shared_written;

uint8_t* SharedWritten(const char* address) {
  return shared_written + (address - this_worker->shared_begin);
}

class CheckBuild : public Checks {
 public:
  bool OneWorker() const override { return true; }
  bool GuardLarge() const override { return true; }
  bool SeeTimeOuts() const override { return true; }

  void Allocated(Allocation& allocation) override {
    allocation.cells = NewShadow<ShadowCell>(Words(allocation.size));
    allocation.written = NewShadow<uint8_t>(allocation.size);
    // the host may write to these at any time, unseen
    if (allocation.kind != MemoryKind::kDevice) std::memset(allocation.written, 1, allocation.size);
  }

  void Freed(Allocation& allocation) override {
    munmap(allocation.cells, Words(allocation.size) * sizeof(ShadowCell));
    munmap(allocation.written, allocation.size);
    allocation.cells = nullptr;
    allocation.written = nullptr;
  }

  void HostWrote(Allocation& allocation, size_t offset, size_t bytes) override {
    std::memset(allocation.written + offset, 1, bytes);
  }

  void Copied(Allocation& to, size_t to_offset, Allocation& from, size_t from_offset, size_t bytes) override {
    std::memmove(to.written + to_offset, from.written + from_offset, bytes);
  }

  void GridStarts(const Grid& grid) override {
    if (shared_cells == nullptr) {
      shared_cells = NewShadow<ShadowCell>(Words(kSharedArenaBytes));
      shared_written = NewShadow<uint8_t>(kSharedArenaBytes);
    }
    FindModule(reinterpret_cast<const void*>(grid.run_threads));
    ForgetRaces();
    ProfileGridStarts(grid);
  }

  void GridEnds(const Grid&) override { ProfileGridEnds(); }

  // shared memory is new for every block
  void BlockStarts() override {
    const Worker& worker = *this_worker;
    for (unsigned i = 0; i < worker.n_variables; i++) SharedDeclared(worker.variables[i]);
    std::memset(SharedWritten(worker.dynamic_shared), 0, worker.grid->config.shared_bytes);
  }

  void SharedDeclared(const SharedVariable& variable) override {
    std::memset(SharedWritten(variable.address), 0, variable.bytes());
  }

  void BlockEnds() override { ProfileBlockEnds(); }
  void ProfileEnds() override { PrintProfile(); }
};
CheckBuild check_build;
[[maybe_unused]] const bool installed = (checks = &check_build, true);

// ---- the checks

bool AllWritten(const uint8_t* written, unsigned bytes) {
  return std::all_of(written, written + bytes, [](uint8_t one) { return one != 0; });
}

std::string Sized(const Access& access) {
  return std::string(access.Verb()) + " of " + Count(access.bytes, "byte");
}

bool IsMisaligned(const Access& access) {
  const unsigned n = access.bytes;
  return (n == 2 || n == 4 || n == 8 || n == 16) && reinterpret_cast<uintptr_t>(access.address) % n != 0;
}

void CheckGlobal(const Access& access) {
  Allocation* allocation = FindAllocation(access.address);
  if (allocation == nullptr || !allocation->live || !allocation->Contains(access.address, access.bytes)) {
    Fail(cudaErrorIllegalAddress, OutsideText(access.address, access.bytes, access.Verb()), {access.pc});
  }
  if (IsMisaligned(access)) {
    Fail(cudaErrorMisalignedAddress,
         "misaligned " + Sized(access) + " at " + ElementText(*allocation, access.address) +
             ": the address must be a multiple of " + std::to_string(access.bytes),
         {access.pc});
  }
  const size_t offset = static_cast<size_t>(access.address - allocation->base);
  if (access.write) {
    std::memset(allocation->written + offset, 1, access.bytes);
  } else if (options.uninit && !AllWritten(allocation->written + offset, access.bytes)) {
    ReportForNow(cudaErrorIllegalAddress,
                 "uninitialised device memory: read of " + ElementText(*allocation, access.address) +
                     ", which nothing has written since cudaMalloc",
                 {access.pc});
  }
  if (options.races && !kernel_locked) LookForRace(allocation->cells, offset, access, true, GlobalName);
  if (Profiling()) NoteForProfile(access, false);
}

const SharedVariable* VariableAt(const char* address, unsigned bytes) {
  const Worker& worker = *this_worker;
  for (unsigned i = 0; i < worker.n_variables; i++) {
    const SharedVariable& variable = worker.variables[i];
    if (address >= variable.address && address + bytes <= variable.address + variable.bytes()) return &variable;
  }
  return nullptr;
}

bool IsDynamic(const char* address, unsigned bytes) {
  const Worker& worker = *this_worker;
  const size_t size = worker.grid->config.shared_bytes;
  return size > 0 && address >= worker.dynamic_shared && address + bytes <= worker.dynamic_shared + size;
}

std::string SharedName(const char* address) {
  const SharedVariable* variable = VariableAt(address, 1);
  if (variable != nullptr) {
    return SharedElementText(*variable, address) + " (`__shared__ " + variable->declaration + "`)";
  }
  return "dynamic shared memory, byte " + std::to_string(address - this_worker->dynamic_shared);
}

[[noreturn]] void FailOutsideShared(const Access& access) {
  const Worker& worker = *this_worker;
  const char* address = access.address;
  std::string text = "out-of-bounds " + Sized(access);
  const SharedVariable* before = nullptr;  // the last variable that begins at or before the address
  for (unsigned i = 0; i < worker.n_variables; i++) {
    if (worker.variables[i].address - 64 <= address) before = &worker.variables[i];
  }
  if (address >= worker.dynamic_shared - 2048 || before == nullptr) {
    const size_t asked = worker.grid->config.shared_bytes;
    text += " at byte " + std::to_string(address - worker.dynamic_shared) + " of dynamic shared memory; ";
    text += asked == 0 ? "the launch asked for none of it" : "the launch asked for " + Count(asked, "byte");
    text += " (the third value between <<< and >>>, in bytes)";
  } else {
    const ptrdiff_t offset = address - before->address;
    text += " at " +
            (offset < 0 ? "byte " + std::to_string(offset) + " of `" + before->name + "`"
                        : SharedElementText(*before, address)) +
            ", but the variable is `__shared__ " + before->declaration + "`, " + Count(before->bytes(), "byte") +
            " long";
  }
  Fail(cudaErrorIllegalAddress, text, {access.pc});
}

void CheckShared(const Access& access) {
  const char* address = access.address;
  if (!IsDynamic(address, access.bytes) && VariableAt(address, access.bytes) == nullptr) FailOutsideShared(access);
  uint8_t* written = SharedWritten(address);
  if (access.write) {
    std::memset(written, 1, access.bytes);
  } else if (options.uninit && !AllWritten(written, access.bytes)) {
    ReportForNow(cudaErrorIllegalAddress,
                 "uninitialised shared memory: read of " + SharedName(address) +
                     ", which no thread of the block has written yet (is a __syncthreads() missing before the read?)",
                 {access.pc});
  }
  const size_t offset = static_cast<size_t>(address - this_worker->shared_begin);
  if (options.races) LookForRace(shared_cells, offset, access, false, SharedName);
  if (Profiling()) NoteForProfile(access, true);
}

template <class T>
bool IsIn(const T& variable, const char* p) {
  const auto* begin = reinterpret_cast<const char*>(&variable);
  return p >= begin && p < begin + sizeof(T);
}

void CheckOther(const Access& access) {
  const Worker& worker = *this_worker;
  const char* p = access.address;
  if (p >= worker.stacks_begin && p < worker.stacks_end) {
    const Fiber& fiber = *worker.running;
    if (p >= fiber.stack && p < fiber.stack + fiber.stack_bytes) return;
    Fail(cudaErrorIllegalAddress, std::string(access.Verb()) + " of another thread's local variable", {access.pc});
  }
  const auto* arguments = static_cast<const char*>(worker.grid->arguments);
  const auto* body = static_cast<const char*>(worker.grid->body);
  if (p >= arguments && p < arguments + worker.grid->argument_bytes) return;
  if (p >= body && p < body + 256) return;  // the launch's own lambda
  if (module_of_kernel.Contains(p)) return;
  if (reinterpret_cast<uintptr_t>(p) < kPage) {
    const std::string where = " at address " + Hex(p) + PointerText(p);
    Fail(cudaErrorIllegalAddress, "null pointer: " + Sized(access) + where, {access.pc});
  }
  Fail(cudaErrorIllegalAddress,
       "host memory in a kernel: " + Sized(access) + " at address " + Hex(p) + PointerText(p) +
           "; a kernel can use device memory only (an array passed without cudaMalloc and cudaMemcpy?)",
       {access.pc});
}

void CheckInKernel(const Access& access) {
  const char* p = access.address;
  const Worker& worker = *this_worker;
  if (IsIn(threadIdx, p) || IsIn(blockIdx, p) || IsIn(blockDim, p) || IsIn(gridDim, p)) return;
  if (InArena(p)) {
    CheckGlobal(access);
  } else if (p >= worker.shared_begin && p < worker.shared_end + kPage) {
    CheckShared(access);
  } else {
    CheckOther(access);
  }
}

__attribute__((noinline)) void CheckOnHost(const Access& access) {
  const Allocation* allocation = FindNeighbour(access.address);
  if (allocation != nullptr && allocation->live && allocation->kind != MemoryKind::kDevice) return;
  SayHostTouchesDevice(": " + Sized(access), access.address, access.pc);
  std::abort();
}

}  // namespace

uint32_t ShortPc(const void* pc) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pc) - module_of_kernel.base);
}

const void* LongPc(uint32_t pc) {
  return reinterpret_cast<const void*>(module_of_kernel.base + pc);
}

std::string GlobalName(const char* address) {
  const Allocation* allocation = FindAllocation(address);
  return allocation == nullptr ? Hex(address) : ElementText(*allocation, address);
}

void Check(const Access& access) {
  const Worker* worker = this_worker;
  if (worker == nullptr || !worker->in_kernel || worker->running == nullptr) {
    if (InArena(access.address)) CheckOnHost(access);
    return;
  }
  CheckInKernel(access);
  if (worker->timed_out) FailTimedOut(access.pc);
}

void NoteAtomic(const void* address, size_t bytes, const void* pc) {
  if (InKernel()) Check({static_cast<const char*>(address), static_cast<unsigned>(bytes), true, true, pc});
}

}  // namespace cuda_emu
