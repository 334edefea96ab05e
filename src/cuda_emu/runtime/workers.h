// The threads of the CPU that share the blocks of a grid.
#ifndef CUDA_EMU_WORKERS_H_
#define CUDA_EMU_WORKERS_H_

namespace cuda_emu {

struct Grid;

/// Run all blocks, here and, if it is worth while, on other threads of the CPU too.
void RunBlocks(const Grid& grid);

/// Send the clock's signal to every worker that has been at work on the same grid for longer than this.
void InterruptWorkersAfter(double seconds);
bool AnyWorkerBusy();

/// In the child of a fork only the thread that forked is left.
void ForgetOtherWorkers();

}  // namespace cuda_emu

#endif  // CUDA_EMU_WORKERS_H_
