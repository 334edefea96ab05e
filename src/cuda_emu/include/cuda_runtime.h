// cuda_emu: run CUDA C++ on the CPU.  This file takes the place of NVIDIA's
// <cuda_runtime.h> when a .cu file is compiled by g++/clang++ with -x c++.
#pragma once
#include "cuda_emu.h"
