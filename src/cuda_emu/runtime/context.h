// Switching stacks: what makes a thread of a CUDA block cost nanoseconds.
#ifndef CUDA_EMU_CONTEXT_H_
#define CUDA_EMU_CONTEXT_H_

/// Saves where we are under *save, and goes on where `to` was saved.
extern "C" void cuda_emu_switch(void** save, void* to);

namespace cuda_emu {

/// A place to switch to: `entry`, which must never return, on the stack that ends at `top`.
void* MakeContext(char* top, void (*entry)());

}  // namespace cuda_emu

#endif  // CUDA_EMU_CONTEXT_H_
