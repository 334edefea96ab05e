#include "errors.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>

#include "arena.h"
#include "context.h"
#include "options.h"
#include "source_lines.h"
#include "worker.h"

namespace cuda_emu {

namespace {

cudaError_t last_error = cudaSuccess;
std::string last_detail;
cudaError_t last_detail_of = cudaSuccess;

// What the running launch has come to.
struct Outcome {
  cudaError_t error = cudaSuccess;
  std::string text, who;
  Place place;
  Site site;  // a copy: the one in `place` lies on a thread's stack
  std::exception_ptr exception;
  bool may_be_replaced = false;
};
Outcome outcome;
std::mutex outcome_mutex;

const char* BaseName(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

std::string LaunchText(const LaunchConfig& config) {
  return "launched at " + LineText(config.site) + " with grid " + Text(config.grid) + " and block " +
         Text(config.block);
}

// The whole report.  Addresses become lines here, on a normal stack.
std::string FullText(const LaunchConfig& config) {
  std::string text = outcome.text;
  const size_t mark = text.find("%1");
  if (mark != std::string::npos) {
    const std::string other = SourceLine(outcome.place.other_pc);
    text.replace(mark, 2, other.empty() ? "a line that is not known" : other);
  }
  const std::string line = outcome.place.site != nullptr ? LineText(outcome.site) : SourceLine(outcome.place.pc);
  text += "\n  in kernel " + KernelName(config) + (line.empty() ? "" : " at " + line) + outcome.who;
  return text + "\n  " + LaunchText(config) + "\n  a GPU would say: " + cudaGetErrorName(outcome.error);
}

void ThrowOrRemember(cudaError_t error, const std::string& text) {
  if (!options.sticky) throw std::runtime_error(text);
  SetError(error, text);
}

// The name that the kernel gives to its argument at this position: "a, out" is what the rewriter has noted.
std::string ParameterName(const char* names, uint32_t position) {
  for (uint32_t i = 0; i < position && names != nullptr; i++) {
    names = std::strchr(names, ',');
    if (names != nullptr) names++;
  }
  if (names == nullptr) return "";
  const char* end = std::strchr(names, ',');
  return end == nullptr ? names : std::string(names, end);
}

struct View {
  std::string name;  // of the kernel's argument that points into an allocation
  size_t element_size = 4;
};

View ViewOf(const Allocation& allocation) {
  const Grid* grid = running_grid;
  for (size_t i = 0; grid != nullptr && i < grid->n_pointers; i++) {
    const PointerArgument& argument = grid->pointers[i];
    if (!allocation.Contains(argument.pointer, 0)) continue;
    const size_t size = argument.element_size == 0 ? 1 : argument.element_size;
    return {ParameterName(grid->config.parameters, argument.position), size};
  }
  return {};
}

}  // namespace

// ---- API calls

cudaError_t SetError(cudaError_t error, const std::string& detail) {
  last_error = last_detail_of = error;
  last_detail = detail;
  return error;
}

cudaError_t LastError() {
  return last_error;
}

bool HasStuckError() {
  return last_error >= cudaErrorIllegalAddress;
}

// ---- kernels

void BeginErrors() {
  outcome = Outcome();
}

void Report(cudaError_t error, const std::string& text, const Place& place) {
  std::lock_guard<std::mutex> lock(outcome_mutex);
  if (outcome.error != cudaSuccess) return;
  outcome.error = error;
  outcome.text = text;
  outcome.place = place;
  if (place.site != nullptr) outcome.site = *place.site;
  outcome.who = ", block " + Text(blockIdx) + ", thread " + Text(threadIdx);
}

void ReportForNow(cudaError_t error, const std::string& text, const Place& place) {
  if (outcome.error != cudaSuccess) return;
  Report(error, text, place);
  outcome.may_be_replaced = true;
}

void ReportInstead(cudaError_t error, const std::string& text, const Place& place) {
  if (outcome.may_be_replaced) BeginErrors();
  Report(error, text, place);
}

void LeaveKernel() {
  this_worker->failed = true;
  void* never_resumed;
  cuda_emu_switch(&never_resumed, this_worker->scheduler_sp);
  std::abort();
}

void Fail(cudaError_t error, const std::string& text, const Place& place) {
  if (!InKernel()) {
    std::fprintf(stderr, "[cuda_emu] %s\n", text.c_str());
    std::abort();
  }
  Report(error, text, place);
  LeaveKernel();
}

void FailWith(std::exception_ptr exception) {
  Report(cudaErrorLaunchFailure, "", {});
  {
    std::lock_guard<std::mutex> lock(outcome_mutex);
    if (!outcome.exception) outcome.exception = exception;
  }
  exception = nullptr;
  LeaveKernel();
}

void FinishLaunch(const LaunchConfig& config) {
  if (outcome.error == cudaSuccess) return;
  if (outcome.exception) std::rethrow_exception(outcome.exception);
  ThrowOrRemember(outcome.error, FullText(config));
}

void RefuseLaunch(cudaError_t error, const LaunchConfig& config, const std::string& why) {
  ThrowOrRemember(error, "launch of " + KernelName(config) + " at " + LineText(config.site) + ": " + why +
                             "\n  a GPU would say: " + cudaGetErrorName(error));
}

// ---- words

std::string Hex(const void* pointer) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%zx", reinterpret_cast<size_t>(pointer));
  return text;
}

std::string Hex(unsigned mask) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%08x", mask);
  return text;
}

std::string Text(const uint3& index) {
  return "(" + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " + std::to_string(index.z) + ")";
}

std::string ThreadText(unsigned linear) {
  return Text(IndexIn(blockDim, linear));
}

std::string LineText(const Site& site) {
  return std::string(BaseName(site.file)) + ":" + std::to_string(site.line);
}

std::string Text(const Site& site) {
  return std::string(site.what) + " at " + LineText(site);
}

std::string KernelName(const LaunchConfig& config) {
  const std::string name = config.kernel;
  return name.size() > 2 && name[0] == '(' ? name.substr(1, name.size() - 2) : name;
}

std::string Count(size_t n, const char* noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

std::string ElementText(const Allocation& allocation, const void* pointer) {
  const View view = ViewOf(allocation);
  const ptrdiff_t bytes = static_cast<const char*>(pointer) - allocation.base;
  const ptrdiff_t size = static_cast<ptrdiff_t>(view.element_size);
  const ptrdiff_t index = bytes >= 0 ? bytes / size : -((-bytes + size - 1) / size);
  if (!view.name.empty()) return "`" + view.name + "[" + std::to_string(index) + "]`";
  return "element " + std::to_string(index) + " (of " + std::to_string(size) + " bytes each) of device array #" +
         std::to_string(allocation.serial);
}

std::string ExtentText(const Allocation& allocation) {
  const View view = ViewOf(allocation);
  const std::string name =
      view.name.empty() ? "device array #" + std::to_string(allocation.serial) : "`" + view.name + "`";
  return name + " has " + Count(allocation.size / view.element_size, "element") + " of " +
         Count(view.element_size, "byte") + (allocation.live ? "" : ", and cudaFree has released it");
}

std::string PointerText(const void* address) {
  constexpr uintptr_t kLittle = 1 << 20;
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  const PointerArgument* nearest = nullptr;
  for (size_t i = 0; running_grid != nullptr && i < running_grid->n_pointers; i++) {
    const PointerArgument& argument = running_grid->pointers[i];
    const auto start = reinterpret_cast<uintptr_t>(argument.pointer);
    if (start > wanted || wanted - start > kLittle) continue;
    if (nearest == nullptr || nearest->pointer < argument.pointer) nearest = &argument;
  }
  if (nearest == nullptr) return "";
  const std::string name = ParameterName(running_grid->config.parameters, nearest->position);
  return name.empty() ? "" : " (`" + name + "` points there)";
}

std::string OutsideText(const void* pointer, size_t bytes, const char* verb) {
  Allocation* allocation = FindNeighbour(pointer);
  if (allocation == nullptr) {
    return std::string("out-of-bounds ") + verb + " at address " + Hex(pointer) +
           ", which is far from every device array";
  }
  const std::string size = bytes == 0 ? "" : " of " + Count(bytes, "byte");
  if (!allocation->live && allocation->Contains(pointer, 0)) {
    return std::string("use after free: ") + verb + size + " at " + ElementText(*allocation, pointer) + "; " +
           ExtentText(*allocation);
  }
  return std::string("out-of-bounds ") + verb + size + " at " + ElementText(*allocation, pointer) + ", but " +
         ExtentText(*allocation);
}

}  // namespace cuda_emu

using namespace cuda_emu;

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define CUDA_EMU_NAME(name) \
  case name:                \
    return #name
    CUDA_EMU_NAME(cudaSuccess);
    CUDA_EMU_NAME(cudaErrorInvalidValue);
    CUDA_EMU_NAME(cudaErrorMemoryAllocation);
    CUDA_EMU_NAME(cudaErrorInvalidConfiguration);
    CUDA_EMU_NAME(cudaErrorInvalidPitchValue);
    CUDA_EMU_NAME(cudaErrorInvalidSymbol);
    CUDA_EMU_NAME(cudaErrorInvalidMemcpyDirection);
    CUDA_EMU_NAME(cudaErrorInsufficientDriver);
    CUDA_EMU_NAME(cudaErrorNoDevice);
    CUDA_EMU_NAME(cudaErrorInvalidDevice);
    CUDA_EMU_NAME(cudaErrorInvalidResourceHandle);
    CUDA_EMU_NAME(cudaErrorNotReady);
    CUDA_EMU_NAME(cudaErrorIllegalAddress);
    CUDA_EMU_NAME(cudaErrorLaunchOutOfResources);
    CUDA_EMU_NAME(cudaErrorLaunchTimeout);
    CUDA_EMU_NAME(cudaErrorAssert);
    CUDA_EMU_NAME(cudaErrorMisalignedAddress);
    CUDA_EMU_NAME(cudaErrorLaunchFailure);
    CUDA_EMU_NAME(cudaErrorNotSupported);
#undef CUDA_EMU_NAME
    default:
      return "cudaErrorUnknown";
  }
}

static const char* Meaning(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInvalidMemcpyDirection:
      return "invalid copy direction for memcpy";
    case cudaErrorInvalidPitchValue:
      return "invalid pitch argument";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorLaunchTimeout:
      return "the launch timed out and was terminated";
    case cudaErrorAssert:
      return "device-side assert triggered";
    case cudaErrorMisalignedAddress:
      return "misaligned address";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    default:
      return "unknown error";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  static thread_local std::string text;
  text = Meaning(error);
  if (error != cudaSuccess && error == last_detail_of && !last_detail.empty()) text += ": " + last_detail;
  return text.c_str();
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  if (!HasStuckError()) last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() {
  return last_error;
}

cudaError_t cudaDeviceSynchronize() {
  return HasStuckError() ? last_error : cudaSuccess;
}

cudaError_t cudaDeviceReset() {
  last_error = cudaSuccess;
  ForgetAttributes();
  return cudaSuccess;
}
