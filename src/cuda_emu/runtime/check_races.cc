// The data race detector.  Two threads race if they touch the same bytes, one of them writes, and nothing puts one
// before the other: not __syncthreads(), not a meeting of their warp, not a launch, and they are not both atomic.
//
// Where the model does not know an order, it is silent: a meeting of some lanes counts as one of the whole warp,
// __threadfence() lets blocks hand data to each other, and a kernel that uses atomicCAS may hold locks.
#include <algorithm>
#include <string>

#include "check.h"
#include "checks.h"
#include "errors.h"
#include "options.h"
#include "worker.h"

namespace cuda_emu {

namespace {

bool reported;  // one race a launch is enough: others mostly follow from it

Touch TouchOf(const Access& access, uint8_t bytes) {
  const Block& block = this_worker->block;
  const unsigned thread = LinearThread();
  return {launch_number,
          block.linear,
          block.epoch,
          ShortPc(access.pc),
          static_cast<uint16_t>(thread),
          block.warp_epochs[thread / kWarpSize],
          bytes,
          access.atomic};
}

bool AtTheSameTime(const Touch& before, const Touch& now, bool global) {
  if (before.launch != now.launch) return false;
  if (before.block != now.block) return global && !kernel_fenced;  // each block has its own shared memory
  if (before.thread == now.thread || before.barrier_epoch != now.barrier_epoch) return false;
  return before.thread / kWarpSize != now.thread / kWarpSize || before.warp_epoch == now.warp_epoch;
}

bool Conflict(const Touch& before, const Touch& now, bool global) {
  return (before.bytes & now.bytes) && !(before.atomic && now.atomic) && AtTheSameTime(before, now, global);
}

bool SameMoment(const Touch& a, const Touch& b) {
  return a.launch == b.launch && a.block == b.block && a.thread == b.thread && a.barrier_epoch == b.barrier_epoch &&
         a.warp_epoch == b.warp_epoch;
}

std::string Who(const Touch& touch) {
  const std::string thread = "thread " + ThreadText(touch.thread);
  if (touch.block == this_worker->block.linear) return thread;
  return thread + " of block " + Text(IndexIn(gridDim, touch.block));
}

std::string Advice(const Touch& before, const Access& access, bool global) {
  if (before.block != this_worker->block.linear) {
    return "blocks run in any order; use an atomic, or a second launch";
  }
  if (before.atomic != access.atomic)
    return "one of them is atomic, the other is not, and no __syncthreads() between them";
  return global ? "no __syncthreads() between them, and they are not atomic" : "no __syncthreads() between them";
}

void ReportRace(const Touch& before, bool before_wrote, const Access& access, bool global, const std::string& name) {
  if (reported) return;
  reported = true;
  const Access other{nullptr, 0, before_wrote, before.atomic, nullptr};
  ReportInstead(cudaErrorLaunchFailure,
                "data race on " + name + ": " + access.Verb() + " by thread " + Text(threadIdx) + ", and " +
                    other.Verb() + " by " + Who(before) + " at %1: " + Advice(before, access, global),
                {access.pc, LongPc(before.pc)});
}

void NoteWrite(ShadowCell& cell, Touch now) {
  if (SameMoment(cell.write, now)) now.bytes |= cell.write.bytes;
  cell.write = now;
}

// The reads of two different threads are kept: a later write races with at least one of them.
void NoteRead(ShadowCell& cell, Touch now) {
  auto same_thread = [&](const Touch& read) {
    return read.launch == now.launch && read.block == now.block && read.thread == now.thread;
  };
  Touch* place = std::find_if(cell.reads, cell.reads + 2, same_thread);
  if (place == cell.reads + 2) {
    cell.reads[1] = cell.reads[0];
    place = cell.reads;
  } else if (SameMoment(*place, now)) {
    now.bytes |= place->bytes;
  }
  *place = now;
}

void LookAtWord(ShadowCell& cell, const Access& access, uint8_t bytes, const char* address, bool global,
                NameOfWord name) {
  const Touch now = TouchOf(access, bytes);
  if (Conflict(cell.write, now, global)) ReportRace(cell.write, true, access, global, name(address));
  if (!access.write) return NoteRead(cell, now);
  for (const Touch& read : cell.reads) {
    if (Conflict(read, now, global)) ReportRace(read, false, access, global, name(address));
  }
  NoteWrite(cell, now);
}

}  // namespace

void LookForRace(ShadowCell* cells, size_t offset, const Access& access, bool global, NameOfWord name) {
  const size_t end = offset + access.bytes;
  for (size_t begin = offset; begin < end;) {
    const size_t word = begin / 4, word_end = std::min(end, (word + 1) * 4);
    uint8_t bytes = 0;
    for (size_t k = begin; k < word_end; k++) bytes = static_cast<uint8_t>(bytes | 1 << (k & 3));
    LookAtWord(cells[word], access, bytes, access.address + (begin - offset), global, name);
    begin = word_end;
  }
}

void ForgetRaces() {
  reported = false;
}

}  // namespace cuda_emu
