// The check build: the kernels are compiled with -fsanitize=thread, but linked with the
// functions below instead of libtsan.  GCC and Clang then call us on every load and store,
// and we know what CUDA is: allocations, blocks, barriers, warps, shared memory.
#include "internal.h"
#include <algorithm>
#include <link.h>
#include <map>
#include <set>
#include <sys/mman.h>
#include <unordered_map>

namespace cuda_emu {
static uintptr_t mod_lo, mod_hi;          // this module's own segments: globals, __constant__ and literals live there
static uintptr_t pc_base;
static Cell* sh_cells; static uint8_t* sh_init; static const size_t SH_BYTES = 512 << 10;
static unsigned nraces;

// ---- profile of global and shared accesses (CUDA_EMU_PROFILE=1)
struct Prof { uint64_t requests = 0, sectors = 0, ideal = 0, waves = 0; bool shared = false; };
static std::map<uint32_t, Prof> prof;
struct WarpReq { uint32_t n = 0; uint8_t size = 0; uint64_t addr[32]; };
static std::unordered_map<uint64_t, WarpReq> pending;      // (pc, warp, occurrence)
static std::unordered_map<uint64_t, uint32_t> counts;      // (pc, thread) -> occurrences so far

static uintptr_t wanted;
static void on_launch_start_(const void* in_module) {      // the launched kernel's module, by an address in it
  wanted = (uintptr_t)in_module;
  if (wanted >= mod_lo && wanted < mod_hi) return;
  dl_iterate_phdr([](struct dl_phdr_info* i, size_t, void*) {
    uintptr_t lo = ~0ull, hi = 0;
    for (int k = 0; k < i->dlpi_phnum; k++) if (i->dlpi_phdr[k].p_type == PT_LOAD) {
      uintptr_t a = i->dlpi_addr + i->dlpi_phdr[k].p_vaddr; lo = std::min(lo, a); hi = std::max(hi, a + i->dlpi_phdr[k].p_memsz); }
    if (wanted >= lo && wanted < hi) { mod_lo = lo; mod_hi = hi; pc_base = i->dlpi_addr; }
    return 0;
  }, nullptr);
}
static void init_check() {
  static bool done = false; if (done) return; done = true;
  sh_cells = (Cell*)mmap(nullptr, SH_BYTES / 4 * sizeof(Cell), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  sh_init = (uint8_t*)mmap(nullptr, SH_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}
static void set_init(uint8_t* bits, size_t off, size_t n, uint8_t v) { memset(bits + off, v, n); }
static void on_alloc_(Alloc& a) {
  init_check();
  size_t cells = (a.size + 3) / 4 * sizeof(Cell);
  a.cells = (Cell*)mmap(nullptr, cells, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  a.init = (uint8_t*)mmap(nullptr, a.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}
static void on_free_(Alloc& a) { munmap(a.cells, (a.size + 3) / 4 * sizeof(Cell)); munmap(a.init, a.size); a.cells = nullptr; a.init = nullptr; }
static void on_host_write_(Alloc& a, size_t off, size_t n) { set_init(a.init, off, n, 1); }
static void on_copy_(Alloc& d, size_t doff, Alloc& s, size_t soff, size_t n) { memmove(d.init + doff, s.init + soff, n); }
static void on_block_start_() {
  Worker& w = *W;
  init_check();
  // shared memory is new for every block
  for (int i = 0; i < w.nvars; i++) memset(sh_init + (w.vars[i].p - w.sh_lo), 0, w.vars[i].n);
  if (w.cfg->smem) memset(sh_init + (w.dyn - w.sh_lo), 0, w.cfg->smem);
  for (auto& wp : w.b.warp) wp.epoch = 0;
}
static void flush_profile() {
  for (auto& [key, r] : pending) {
    Prof& p = prof[(uint32_t)(key >> 32)];
    p.requests++;
    if (p.shared) {                                    // bank conflicts: distinct words in one bank
      std::map<unsigned, std::set<uint64_t>> bank; size_t worst = 1;
      for (unsigned i = 0; i < r.n; i++) for (unsigned k = 0; k < std::max(1u, r.size / 4u); k++) { uint64_t wd = r.addr[i] / 4 + k; bank[wd % 32].insert(wd); }
      for (auto& b : bank) worst = std::max(worst, b.second.size());
      p.waves += worst; p.ideal += std::max(1u, r.n * r.size / 128u);
    } else {
      std::set<uint64_t> s; for (unsigned i = 0; i < r.n; i++) { s.insert(r.addr[i] / 32); s.insert((r.addr[i] + r.size - 1) / 32); }
      p.sectors += s.size(); p.ideal += std::max<size_t>(1, (r.n * r.size + 31) / 32);
    }
  }
  pending.clear(); counts.clear();
}
static void on_block_end_() { if (opt.profile) flush_profile(); }
static void on_launch_end_(const LaunchCfg& c) {
  if (opt.profile && !prof.empty()) {
    fprintf(stderr, "[cuda_emu] memory profile of %s\n", c.kernel);
    for (auto& [pc, p] : prof) {
      std::string at = where((void*)(pc_base + pc));
      if (p.shared) fprintf(stderr, "  %-24s shared  %9zu warp requests, %.2f times the fewest passes (bank conflicts: 1 is best)\n", at.c_str(), (size_t)p.requests, (double)p.waves / p.ideal);
      else fprintf(stderr, "  %-24s global  %9zu warp requests, %5.1f sectors of 32 B each (%.0f%% of the bytes fetched are used)\n", at.c_str(), (size_t)p.requests, (double)p.sectors / p.requests, std::min(100., 100. * p.ideal / p.sectors));
    }
    prof.clear();
  }
  nraces = 0;
}
struct Setup { Setup() {
  on_alloc = on_alloc_; on_free = on_free_; on_host_write = on_host_write_; on_copy = on_copy_;
  on_block_start = on_block_start_; on_block_end = on_block_end_; on_launch_end = on_launch_end_; on_launch_start = on_launch_start_;
  if (!getenv("NEEDLE_CUDA_EMU_WORKERS")) setenv("NEEDLE_CUDA_EMU_WORKERS", "1", 0);     // one block at a time: reports repeat exactly
} } setup;

static std::string size_name(unsigned n) { return std::to_string(n) + "-byte "; }
static std::string lane_str(const Acc& a, bool global) {
  std::string s = "thread " + thread_name((unsigned)a.tid);
  if (global && a.block != W->b.lin) { unsigned g = gridDim.x; s += " of block " + thread_name(uint3{a.block % g, a.block / g % gridDim.y, a.block / g / gridDim.y}); }
  return s;
}
static const char* short_at(const std::string& s) { return s.empty() ? "?" : s.c_str(); }

static void race(const Acc& old, bool old_write, bool write, bool atomic, size_t wd, const char* base, const void* pc, bool global) {
  uint32_t mine = (uint32_t)((uintptr_t)pc - pc_base);
  if (nraces) return;
  nraces++;
  Worker& w = *W; std::string what;
  if (global) { Alloc* a = find_alloc(base); what = "element " + std::to_string(wd) + " (as float) of device allocation #" + std::to_string(a ? a->serial : 0); }
  else {
    what = "dynamic shared memory, byte " + std::to_string(base - w.dyn);
    for (int i = 0; i < w.nvars; i++) if (base >= w.vars[i].p && base < w.vars[i].p + w.vars[i].n) what = std::string("`__shared__ ") + w.vars[i].decl + "`, word " + std::to_string((base - w.vars[i].p) / 4);
  }
  (void)mine;
  auto verb = [](bool w, bool a) { return std::string(a ? "atomic update" : w ? "write" : "read"); };
  report(cudaErrorLaunchFailure, "data race on " + what + "\n  " + verb(write, atomic) + " by thread " + thread_name(threadIdx) + ", and " +
         verb(old_write, old.flags & F_ATOMIC) + " by " + lane_str(old, global) + " at %1: " +
         (global && old.block != W->b.lin ? "blocks are not ordered; use an atomic, or another launch" : "no __syncthreads() between them"), pc, (void*)(pc_base + old.pc));
}
// The happens-before order of CUDA, as far as we model it: program order, __syncthreads, warp-wide
// collectives, kernel launches.
static inline bool concurrent(const Acc& a, uint32_t launch, uint32_t block, unsigned me, uint32_t bep, const Warp& wp, bool global) {
  if (a.launch != launch) return false;
  if (a.block != block) return global && !fenced;          // shared memory is new for every block
  if (a.tid == me) return false;
  if (a.bepoch != bep) return false;
  return !(a.tid / 32 == me / 32 && a.wepoch != wp.epoch);
}
static void shadow(Cell* cells, size_t off, unsigned n, bool write, bool atomic, const void* pc, bool global, const char* base) {
  Block& b = W->b;
  unsigned me = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  uint32_t L = launch_no; Warp& wp = b.warp[me / 32];
  uint32_t pco = (uint32_t)((uintptr_t)pc - pc_base);
  for (size_t end = off + n; off < end;) {
    size_t wd = off / 4, e = std::min(end, (wd + 1) * 4);
    uint8_t mask = 0; for (size_t k = off; k < e; k++) mask |= 1 << (k & 3);
    Cell& c = cells[wd];
    bool w_conc = (c.w.mask & mask) && concurrent(c.w, L, b.lin, me, b.epoch, wp, global);
    if (w_conc && !(atomic && (c.w.flags & F_ATOMIC))) race(c.w, true, write, atomic, wd, base, pc, global);
    Acc now = {L, b.lin, b.epoch, pco, (uint16_t)me, wp.epoch, mask, (uint8_t)(atomic ? F_ATOMIC : 0)};
    auto mine = [&](const Acc& a) { return a.launch == L && a.block == b.lin && a.tid == me && a.bepoch == b.epoch && a.wepoch == wp.epoch; };
    if (write) {
      for (const Acc* r : {&c.r, &c.r2})
        if ((r->mask & mask) && concurrent(*r, L, b.lin, me, b.epoch, wp, global) && !(atomic && (r->flags & F_ATOMIC))) { race(*r, false, write, atomic, wd, base, pc, global); break; }
      if (mine(c.w)) now.mask |= c.w.mask;
      c.w = now;
    } else {
      Acc* r = c.r.launch == L && c.r.block == b.lin && c.r.tid == me ? &c.r : c.r2.launch == L && c.r2.block == b.lin && c.r2.tid == me ? &c.r2 : nullptr;
      if (!r) { c.r2 = c.r; r = &c.r; } else if (mine(*r)) now.mask |= r->mask;
      *r = now;
    }
    off = e; base += 4;
  }
}
static void profile(const char* p, unsigned n, const void* pc, bool shared_mem) {
  unsigned me = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  uint64_t pco = (uint32_t)((uintptr_t)pc - pc_base);
  uint32_t k = counts[pco << 16 | me]++;
  WarpReq& r = pending[pco << 32 | (uint64_t)(me / 32) << 26 | (k & 0x3ffffff)];
  prof[(uint32_t)pco].shared = shared_mem;
  r.size = n; if (r.n < 32) r.addr[r.n++] = (uint64_t)p;
}

__attribute__((noinline)) static void host_deref(const void* p, unsigned n, bool write, const void* pc) {
  std::string at = where(pc);
  fprintf(stderr, "\n[cuda_emu] host code %s device memory, %s: %s.\n[cuda_emu] A device pointer can only be used inside a kernel; use cudaMemcpy.\n", write ? "writes" : "reads", short_at(at), describe_device(p, n).c_str());
  abort();
}
__attribute__((noinline)) static void access(const void* pv, unsigned n, bool write, bool atomic, const void* pc) {
  const char* p = (const char*)pv; Worker& w = *W;
  const char* verb = write ? "write" : "read";
  auto in = [p](const auto& v) { return p >= (const char*)&v && p < (const char*)(&v + 1); };
  if (in(threadIdx) || in(blockIdx) || in(blockDim) || in(gridDim)) return;
  if (p >= dev_lo && p < dev_hi) {
    Alloc* a = find_alloc(p);
    if (!a || !a->live || p < a->base || p + n > a->base + a->size)
      FAIL(cudaErrorIllegalAddress, std::string("out-of-bounds ") + size_name(n) + verb + ": " + describe_device(p, n), pc);
    if (n > 1 && ((uintptr_t)p & (std::min(n, 16u) - 1)) && (n == 2 || n == 4 || n == 8 || n == 16)) FAIL(cudaErrorMisalignedAddress, "misaligned " + size_name(n) + verb + ": " + describe_device(p, n), pc);
    size_t off = p - a->base;
    if (opt.uninit) {
      if (write) memset(a->init + off, 1, n);
      else for (unsigned i = 0; i < n; i++) if (!a->init[off + i]) FAIL(cudaErrorIllegalAddress, "read of device memory that nothing has written yet: " + describe_device(p, n), pc);
    }
    if (opt.races && !locked) shadow(a->cells, off, n, write, atomic, pc, true, p);
    if (opt.profile) profile(p, n, pc, false);
    return;
  }
  if (p >= w.sh_lo && p < w.sh_hi + 4096) {
    const char* name = nullptr; size_t end = 0;
    if (p >= w.dyn && w.cfg->smem && p + n <= w.dyn + w.cfg->smem) name = "dynamic shared memory";
    else for (int i = 0; i < w.nvars; i++) if (p >= w.vars[i].p && p + n <= w.vars[i].p + w.vars[i].n) name = w.vars[i].decl;
    if (!name) {
      if (p >= w.dyn - 2048) FAIL(cudaErrorIllegalAddress, std::string("out-of-bounds ") + size_name(n) + verb + " of dynamic shared memory at byte " + std::to_string(p - w.dyn) + "; the launch asked for " + std::to_string(w.cfg->smem) + " bytes (third <<<>>> argument)", pc);
      for (int i = 0; i < w.nvars; i++) { end = w.vars[i].n; if (p < w.vars[i].p + end + 64 || i == w.nvars - 1)
        FAIL(cudaErrorIllegalAddress, std::string("out-of-bounds ") + size_name(n) + verb + " of `__shared__ " + w.vars[i].decl + "` (" + std::to_string(end) + " bytes) at byte " + std::to_string(p - w.vars[i].p), pc); }
      FAIL(cudaErrorIllegalAddress, "out-of-bounds access to shared memory", pc);
    }
    size_t off = p - w.sh_lo;
    if (opt.uninit) {
      if (write) memset(sh_init + off, 1, n);
      else for (unsigned i = 0; i < n; i++) if (!sh_init[off + i]) FAIL(cudaErrorIllegalAddress, std::string("read of shared memory that no thread of the block has written yet (a __syncthreads() missing before the read?): `__shared__ ") + name + "`", pc);
    }
    if (opt.races) shadow(sh_cells, off, n, write, atomic, pc, false, p);
    if (opt.profile) profile(p, n, pc, true);
    return;
  }
  if (p >= w.st_lo && p < w.st_hi) {
    if (w.cur && (p < w.cur->lo || p >= w.cur->lo + w.cur->size)) FAIL(cudaErrorIllegalAddress, std::string(verb) + " of another thread's local variable", pc);
    return;
  }
  if (p >= w.args && p < w.args + w.nargs) return;
  if (p >= (const char*)w.body && p < (const char*)w.body + 256) return;
  if ((uintptr_t)p >= mod_lo && (uintptr_t)p < mod_hi) return;
  char b[64]; snprintf(b, sizeof b, "%p", (const void*)p);
  if ((uintptr_t)p < 4096) FAIL(cudaErrorIllegalAddress, std::string("null pointer ") + verb + " (address " + b + ")", pc);
  FAIL(cudaErrorIllegalAddress, std::string(verb) + " of host memory at " + b + ": a kernel can only use device memory (was an array passed without cudaMalloc/cudaMemcpy?)", pc);
}
static inline void hook(const void* p, unsigned n, bool write, const void* pc) {
  if (W && W->in_kernel && W->cur) {
    if (W->busy) return;
    W->busy = true; access(p, n, write, false, pc); W->busy = false;
    return;
  }
  if ((char*)p >= dev_lo && (char*)p < dev_hi && dev_lo) host_deref(p, n, write, pc);
}
void note_atomic(const void* p, size_t n) {
  if (!(W && W->in_kernel && W->cur) || W->busy) return;
  W->busy = true; access(p, (unsigned)n, true, true, __builtin_return_address(0)); W->busy = false;
}
}  // namespace cuda_emu

#define RA __builtin_return_address(0)
#define HID __attribute__((visibility("default")))
extern "C" {
#define RW(N) \
  HID void __tsan_read##N(void* p) { cuda_emu::hook(p, N, false, RA); } \
  HID void __tsan_write##N(void* p) { cuda_emu::hook(p, N, true, RA); } \
  HID void __tsan_unaligned_read##N(void* p) { cuda_emu::hook(p, N, false, RA); } \
  HID void __tsan_unaligned_write##N(void* p) { cuda_emu::hook(p, N, true, RA); } \
  HID void __tsan_volatile_read##N(void* p) { cuda_emu::hook(p, N, false, RA); } \
  HID void __tsan_volatile_write##N(void* p) { cuda_emu::hook(p, N, true, RA); }
RW(1) RW(2) RW(4) RW(8) RW(16)
HID void __tsan_read_range(void* p, size_t n) { for (size_t i = 0; i < n; i += 4) cuda_emu::hook((char*)p + i, n - i < 4 ? n - i : 4, false, RA); }
HID void __tsan_write_range(void* p, size_t n) { for (size_t i = 0; i < n; i += 4) cuda_emu::hook((char*)p + i, n - i < 4 ? n - i : 4, true, RA); }
static void range(const void* p, size_t n, bool w, const void* pc) { for (size_t i = 0; i < n; i += 4) cuda_emu::hook((const char*)p + i, n - i < 4 ? n - i : 4, w, pc); }
HID void* __tsan_memcpy(void* d, const void* s, size_t n) { range(s, n, false, RA); range(d, n, true, RA); return memcpy(d, s, n); }     // Clang's
HID void* __tsan_memmove(void* d, const void* s, size_t n) { range(s, n, false, RA); range(d, n, true, RA); return memmove(d, s, n); }
HID void* __tsan_memset(void* d, int v, size_t n) { range(d, n, true, RA); return memset(d, v, n); }
HID void __ubsan_handle_alignment_assumption_abort(void*, uintptr_t, uintptr_t, uintptr_t) {}
HID void __tsan_init() {}
HID void __tsan_func_entry(void*) {}
HID void __tsan_func_exit() {}
HID void __tsan_vptr_update(void**, void*) {}
HID void __tsan_vptr_read(void**) {}
#define AT(B, T) \
  HID T __tsan_atomic##B##_load(const volatile T* p, int) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); } \
  HID void __tsan_atomic##B##_store(volatile T* p, T v, int) { __atomic_store_n(p, v, __ATOMIC_SEQ_CST); } \
  HID T __tsan_atomic##B##_exchange(volatile T* p, T v, int) { return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST); } \
  HID T __tsan_atomic##B##_fetch_add(volatile T* p, T v, int) { return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST); } \
  HID T __tsan_atomic##B##_fetch_sub(volatile T* p, T v, int) { return __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST); } \
  HID T __tsan_atomic##B##_fetch_and(volatile T* p, T v, int) { return __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST); } \
  HID T __tsan_atomic##B##_fetch_or(volatile T* p, T v, int) { return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST); } \
  HID T __tsan_atomic##B##_fetch_xor(volatile T* p, T v, int) { return __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST); } \
  HID int __tsan_atomic##B##_compare_exchange_strong(volatile T* p, T* c, T v, int, int) { return __atomic_compare_exchange_n(p, c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); } \
  HID int __tsan_atomic##B##_compare_exchange_weak(volatile T* p, T* c, T v, int, int) { return __atomic_compare_exchange_n(p, c, v, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); } \
  HID T __tsan_atomic##B##_compare_exchange_val(volatile T* p, T c, T v, int, int) { __atomic_compare_exchange_n(p, &c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); return c; }
AT(8, uint8_t) AT(16, uint16_t) AT(32, uint32_t) AT(64, uint64_t)
HID void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
HID void __tsan_atomic_signal_fence(int) {}

// ---- -fsanitize=bounds,alignment
struct SrcLoc { const char* file; uint32_t line, col; };
struct TypeDesc { uint16_t kind, info; char name[1]; };
static std::string loc(const SrcLoc& l) { const char* f = strrchr(l.file, '/'); return std::string(f ? f + 1 : l.file) + ":" + std::to_string(l.line) + ":" + std::to_string(l.col); }
struct OOB { SrcLoc l; const TypeDesc* array; const TypeDesc* index; };
HID void __ubsan_handle_out_of_bounds_abort(OOB* d, uintptr_t i) {
  FAIL(cudaErrorIllegalAddress, loc(d->l) + ": index " + std::to_string((long long)(int)i) + " is out of bounds for the type " + d->array->name);
}
HID void __ubsan_handle_out_of_bounds(OOB* d, uintptr_t i) { __ubsan_handle_out_of_bounds_abort(d, i); }
struct Mismatch { SrcLoc l; const TypeDesc* type; unsigned char log_align, kind; };
HID void __ubsan_handle_type_mismatch_v1_abort(Mismatch* d, uintptr_t p) {
  if (!(cuda_emu::W && cuda_emu::W->in_kernel)) return;
  FAIL(cudaErrorMisalignedAddress, loc(d->l) + ": misaligned access: the type " + d->type->name + " needs an address that is a multiple of " + std::to_string(1u << d->log_align) + "; this is " + cuda_emu::describe_device((void*)p, 1));
}
HID void __ubsan_handle_type_mismatch_v1(Mismatch* d, uintptr_t p) { __ubsan_handle_type_mismatch_v1_abort(d, p); }
}
