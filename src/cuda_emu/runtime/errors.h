// Saying what went wrong: in which kernel, at which line, in which block and thread, and of which array.
#ifndef CUDA_EMU_ERRORS_H_
#define CUDA_EMU_ERRORS_H_

#include <cstdint>
#include <exception>
#include <string>

#include "../include/cuda_emu/api.h"

namespace cuda_emu {

struct Allocation;

// ---- errors of API calls

/// Remember `error` as the last one; `detail` becomes part of its text.  Returns `error`.
cudaError_t SetError(cudaError_t error, const std::string& detail = "");
cudaError_t LastError();
/// Whether a kernel has failed in a way after which a GPU would refuse all further work.
bool HasStuckError();

// ---- errors of a kernel.  The first one of a launch counts; the launch reports it when its threads have stopped.

/// The line is known as an address in the machine code, or as a place in the source.  "%1" in a text stands for
/// `other`.
struct Place {
  const void* pc = nullptr;
  const void* other_pc = nullptr;
  const Site* site = nullptr;
};

void BeginErrors();
void Report(cudaError_t error, const std::string& text, const Place& place);
/// A report that gives way to the next one which may replace it: a read of what was never written is, more often than
/// not, the first half of a data race.
void ReportForNow(cudaError_t error, const std::string& text, const Place& place);
void ReportInstead(cudaError_t error, const std::string& text, const Place& place);
/// Leave the kernel for good.
[[noreturn]] void LeaveKernel();
/// Report, and leave.
[[noreturn]] void Fail(cudaError_t error, const std::string& text, const Place& place);
/// An exception that left the kernel's code; the launch throws it again.
[[noreturn]] void FailWith(std::exception_ptr exception);
/// Throws, or remembers for cudaGetLastError(), what the launch has come to.
void FinishLaunch(const LaunchConfig& config);
/// The same for a launch that never began.
void RefuseLaunch(cudaError_t error, const LaunchConfig& config, const std::string& why);

// ---- words for reports

std::string Hex(const void* pointer);
std::string Hex(unsigned mask);
std::string Text(const uint3& index);     // "(3, 0, 0)"
std::string ThreadText(unsigned linear);  // the same of the thread of this number in its block
std::string Text(const Site& site);       // "__syncthreads() at file.cu:12"
std::string LineText(const Site& site);   // "file.cu:12"
std::string KernelName(const LaunchConfig& config);
std::string Count(size_t n, const char* noun);  // "1 thread", "2 threads"

/// "`a[3]`" if the kernel's argument `a` points into the allocation, else "element 3 of device array #7 ...".
std::string ElementText(const Allocation& allocation, const void* pointer);
/// "`a` has 256 elements of 4 bytes", or the same of "device array #7".
std::string ExtentText(const Allocation& allocation);
/// " (`a` points there)" if the kernel's argument `a` is a pointer to this address, or to a little before it.
std::string PointerText(const void* address);
/// What an address in device memory is, and why it may not be used: out of bounds, or freed.
std::string OutsideText(const void* pointer, size_t bytes, const char* verb);

}  // namespace cuda_emu

#endif  // CUDA_EMU_ERRORS_H_
