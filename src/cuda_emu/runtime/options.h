// What the environment says.
#ifndef CUDA_EMU_OPTIONS_H_
#define CUDA_EMU_OPTIONS_H_

#include <cstddef>
#include <string>

namespace cuda_emu {

enum class Order { kForward, kReverse, kRandom };

struct Options {
  int workers = 0;                // _WORKERS: threads of the CPU; 0: as many as there are
  Order order = Order::kForward;  // _ORDER: of the threads of a block, and of the blocks
  unsigned seed = 1;              // _SEED: of the random order
  bool guard = true;              // _GUARD: the host may not touch device memory
  bool sticky = false;            // _STICKY: report errors as a GPU does, at the next API call
  bool strict = true;             // _STRICT: what the newest hardware forgives is an error
  double timeout = 20;            // _TIMEOUT: seconds a kernel may run
  size_t stack_bytes = 64 << 10;  // _STACK: kilobytes of stack a thread has
  bool races = true;              // _RACES: check build: look for data races
  bool uninit = true;             // _UNINIT: check build: refuse reads of what was never written
  std::string profile;            // CUEMU_PROFILE: check build: 1, or the name of a file for its numbers
};

extern Options options;

/// Read NEEDLE_CUDA_EMU_* and CUEMU_PROFILE.
void ReadEnvironment();

}  // namespace cuda_emu

extern "C" {
/// Set one option while the process runs: cuda_emu_set_option("ORDER", "reverse").  False: no such option or value.
__attribute__((visibility("default"))) bool cuda_emu_set_option(const char* name, const char* value);
}

#endif  // CUDA_EMU_OPTIONS_H_
