// Shared memory of the running block.
#ifndef CUDA_EMU_SHARED_MEMORY_H_
#define CUDA_EMU_SHARED_MEMORY_H_

#include <string>

namespace cuda_emu {

struct SharedVariable;

/// Fill it with NaNs: what no thread has written is not zero.
void PoisonShared();
/// Report a write past the end of a variable.
void CheckCanaries();

/// "`tile[3][0]`"
std::string SharedElementText(const SharedVariable& variable, const char* address);

}  // namespace cuda_emu

#endif  // CUDA_EMU_SHARED_MEMORY_H_
