// From addresses in the machine code to lines of the source.
#ifndef CUDA_EMU_SOURCE_LINES_H_
#define CUDA_EMU_SOURCE_LINES_H_

#include <string>
#include <vector>

namespace cuda_emu {

/// "file.cu:12" for each return address, all in the same module; empty where no debugging information tells.
std::vector<std::string> SourceLines(const std::vector<const void*>& return_addresses);

inline std::string SourceLine(const void* return_address) {
  return return_address == nullptr ? "" : SourceLines({return_address})[0];
}

}  // namespace cuda_emu

#endif  // CUDA_EMU_SOURCE_LINES_H_
