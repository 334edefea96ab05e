// Signals: a fault in a kernel becomes a report, the first touch of a device array opens it, and a kernel that runs too
// long is stopped.
#ifndef CUDA_EMU_FAULTS_H_
#define CUDA_EMU_FAULTS_H_

#include <string>

namespace cuda_emu {

/// Have our handler called for faults, before those that are installed.  Somebody may have come after us (Python's
/// faulthandler does), so every launch asks again; when nothing has changed it costs one system call.
void WatchForFaults();

/// Stop kernels after options.timeout seconds.
void WatchTheClock();
/// In the child of a fork there is no clock watcher any more.
void ForgetTheClock();

/// Say that code of the host has touched device memory; `how` comes behind these words.
void SayHostTouchesDevice(const std::string& how, const void* pointer, const void* pc);

/// Leave the kernel: it has run for too long.
[[noreturn]] void FailTimedOut(const void* pc);

}  // namespace cuda_emu

#endif  // CUDA_EMU_FAULTS_H_
