// Runs CUDA C++ on the CPU: what <cuda_runtime.h> declares, for a C++ compiler.  docs/cuda_emulator.md says more.
#ifndef CUDA_EMU_H_
#define CUDA_EMU_H_

#include "cuda_emu/api.h"
#include "cuda_emu/atomics.h"
#include "cuda_emu/device_assert.h"
#include "cuda_emu/keywords.h"
#include "cuda_emu/launch.h"
#include "cuda_emu/maths.h"
#include "cuda_emu/synchronize.h"
#include "cuda_emu/vector_types.h"

#endif  // CUDA_EMU_H_
