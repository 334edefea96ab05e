// Takes the place of NVIDIA's header where a .cu file is compiled for the emulator.
#include "cuda_emu.h"
