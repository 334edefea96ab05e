// What the check build adds to the runtime.  In the fast build nothing is added: `checks` is an object that does
// nothing.
#ifndef CUDA_EMU_CHECKS_H_
#define CUDA_EMU_CHECKS_H_

#include <cstddef>

namespace cuda_emu {

struct Allocation;
struct Grid;
struct SharedVariable;

class Checks {
 public:
  virtual ~Checks() = default;
  virtual bool OneWorker() const { return false; }    // one block at a time, so that reports repeat exactly
  virtual bool GuardLarge() const { return false; }   // keep the host from large arrays too, whatever it costs
  virtual bool SeeTimeOuts() const { return false; }  // checks leave a kernel that has timed out, at a known line
  virtual void Allocated(Allocation&) {}
  virtual void Freed(Allocation&) {}
  virtual void HostWrote(Allocation&, size_t /*offset*/, size_t /*bytes*/) {}
  virtual void Copied(Allocation& /*to*/, size_t, Allocation& /*from*/, size_t, size_t /*bytes*/) {}
  virtual void GridStarts(const Grid&) {}
  virtual void GridEnds(const Grid&) {}
  virtual void BlockStarts() {}
  virtual void SharedDeclared(const SharedVariable&) {}  // the first thread has come to it
  virtual void BlockEnds() {}
  virtual void ProfileEnds() {}
};

extern Checks* checks;

// What the running kernel has done that makes some races impossible to tell from right code.
extern bool kernel_fenced;  // __threadfence: its blocks may hand data to each other
extern bool kernel_locked;  // atomicCAS: it may hold locks

}  // namespace cuda_emu

#endif  // CUDA_EMU_CHECKS_H_
