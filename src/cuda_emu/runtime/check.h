// The check build.  Kernels are compiled with -fsanitize=thread, but linked with our own functions in the place of
// ThreadSanitizer's: the compiler calls them at every load and store, and we know what CUDA is.
#ifndef CUDA_EMU_CHECK_H_
#define CUDA_EMU_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace cuda_emu {

struct Grid;

/// A load or store of the running thread.
struct Access {
  const char* address;
  unsigned bytes;
  bool write;
  bool atomic;
  const void* pc;

  const char* Verb() const { return atomic ? "atomic update" : write ? "write" : "read"; }
};

/// Is it allowed?  Fails if not.  Of the host's accesses, refuses those to device memory.
void Check(const Access& access);

/// The element of a device array at this address; the address itself if there is none.
std::string GlobalName(const char* address);

// ---- data races

/// Who touched a word, when: later by the same launch, block, barrier epoch and warp epoch means at the same time.
struct Touch {
  uint32_t launch, block, barrier_epoch, pc;
  uint16_t thread, warp_epoch;
  uint8_t bytes;  // which of the four, as bits
  bool atomic;
};

/// The last write of a word, and the last reads by two different threads.
struct ShadowCell {
  Touch write, reads[2];
};

/// Where a word lies, in words: only asked when there is a race to report.
using NameOfWord = std::string (*)(const char* address);

/// Compare with what other threads have done to the same bytes, and note it.  `offset` counts from the first cell.
void LookForRace(ShadowCell* cells, size_t offset, const Access& access, bool global, NameOfWord name);
void ForgetRaces();

// ---- profile

bool Profiling();
void NoteForProfile(const Access& access, bool shared);
void ProfileBlockEnds();
void ProfileGridStarts(const Grid& grid);
void ProfileGridEnds();
void PrintProfile();

// ---- the module whose kernel runs

/// Addresses of code as 32 bits: what they are behind the beginning of the module.
uint32_t ShortPc(const void* pc);
const void* LongPc(uint32_t pc);

}  // namespace cuda_emu

#endif  // CUDA_EMU_CHECK_H_
