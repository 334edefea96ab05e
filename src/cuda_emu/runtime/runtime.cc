#include "internal.h"
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <dlfcn.h>
#include <functional>
#include <random>
#include <signal.h>
#include <sys/mman.h>
#include <thread>
#include <ucontext.h>

#ifdef __APPLE__
#define TLSDEF __thread
#else
#define TLSDEF __thread __attribute__((tls_model("initial-exec"), visibility("default")))
#endif
TLSDEF uint3 threadIdx;
TLSDEF uint3 blockIdx;
TLSDEF dim3 blockDim;
TLSDEF dim3 gridDim;

// ------------------------------------------------------- stack switching
#if defined(__x86_64__) && !defined(CUDA_EMU_UCONTEXT)
asm(R"(
.text
.globl cuda_emu_switch
.hidden cuda_emu_switch
.type cuda_emu_switch,@function
cuda_emu_switch:
  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
  popq %rcx                  # not ret: the return predictor would be wrong, the jump predictor is nearly always right
  jmp *%rcx
.size cuda_emu_switch,.-cuda_emu_switch
)");
static void* make_context(char* top, void (*fn)()) {
  uintptr_t* sp = (uintptr_t*)((uintptr_t)top & ~15ull);
  *--sp = 0;                       // return address of fn: none
  *--sp = (uintptr_t)fn;
  for (int i = 0; i < 6; i++) *--sp = 0;
  return sp;
}
#elif defined(__aarch64__) && !defined(CUDA_EMU_UCONTEXT)
#ifdef __APPLE__
#define SYM "_cuda_emu_switch"
#else
#define SYM "cuda_emu_switch"
#endif
asm(".text\n.globl " SYM "\n.p2align 2\n" SYM ":\n"
    "  stp x19, x20, [sp, #-160]!\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
    "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
    "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
    "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
    "  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n"
    "  ldp x29, x30, [sp, #80]\n  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n"
    "  ldp d14, d15, [sp, #144]\n  ldp x19, x20, [sp], #160\n  ret\n");
static void* make_context(char* top, void (*fn)()) {
  uintptr_t* sp = (uintptr_t*)((uintptr_t)top & ~15ull) - 20;
  memset(sp, 0, 160);
  sp[11] = (uintptr_t)fn;          // x30
  return sp;
}
#else   // slow but everywhere: two system calls a switch
extern "C" void cuda_emu_switch(void** save, void* to) {
  ucontext_t here; *save = &here;
  swapcontext(&here, (ucontext_t*)to);
}
static void* make_context(char* top, void (*fn)()) {
  ucontext_t* u = (ucontext_t*)(top - sizeof(ucontext_t) - 256);
  getcontext(u);
  char* lo = (char*)u - 48 * 1024;
  u->uc_stack.ss_sp = lo; u->uc_stack.ss_size = (char*)u - lo; u->uc_link = nullptr;
  makecontext(u, fn, 0);
  return u;
}
#endif

namespace cuda_emu {
Options opt;
__thread Worker* W;
std::atomic<uint32_t> launch_no{0};
bool fenced, locked;
void (*on_alloc)(Alloc&); void (*on_free)(Alloc&);
void (*on_host_write)(Alloc&, size_t, size_t);
void (*on_copy)(Alloc&, size_t, Alloc&, size_t, size_t);
void (*on_launch_start)(const void*); void (*on_block_start)(); void (*on_block_end)(); void (*on_launch_end)(const LaunchCfg&);

static const size_t PAGE = 4096;
static std::mutex api;
static size_t arena_bytes = size_t(64) << 30;
char *dev_lo, *dev_hi; static char* dev_next;
static uint32_t* owner;            // page -> allocation number + 1
static Alloc* allocs; static std::atomic<uint32_t> nallocs{0};
static const uint32_t MAX_ALLOCS = 1u << 24;
static size_t live_bytes;

// ------------------------------------------------------------------ errors
static cudaError_t last_error = cudaSuccess;
static std::string last_detail;
static std::mutex err_mu;
static cudaError_t launch_err; static std::string launch_msg;

static std::string hex(const void* p) { char b[32]; snprintf(b, sizeof b, "%p", p); return b; }
std::string thread_name(const uint3& t) {
  std::string s = "(" + std::to_string(t.x);
  s += ", " + std::to_string(t.y) + ", " + std::to_string(t.z) + ")";
  return s;
}
std::string thread_name(unsigned l) {
  unsigned bx = blockDim.x, by = blockDim.y;
  return thread_name(uint3{l % bx, l / bx % by, l / bx / by});
}
std::string where(const void* pc) {
  if (!pc) return "";
  Dl_info di;
  if (!dladdr(pc, &di) || !di.dli_fname) return "";
  char cmd[2048]; std::string out;
  Dl_info self; bool pie = true;
  (void)self;
  uintptr_t off = (uintptr_t)pc - (pie ? (uintptr_t)di.dli_fbase : 0);
  snprintf(cmd, sizeof cmd, "addr2line -e '%s' -s 0x%zx 2>/dev/null", di.dli_fname, (size_t)off - 1);
  if (FILE* f = popen(cmd, "r")) {
    char line[1024]; if (fgets(line, sizeof line, f)) out = line;
    pclose(f);
  }
  while (!out.empty() && (out.back() == '\n' || out.back() == ' ')) out.pop_back();
  size_t d = out.find(" (discriminator"); if (d != std::string::npos) out.resize(d);
  if (out.empty() || out[0] == '?') return "";
  return out;
}
static const void *launch_pc, *launch_pc2; static std::string launch_who;
void report(cudaError_t e, const std::string& msg, const void* pc, const void* pc2) {
  std::lock_guard<std::mutex> g(err_mu);
  if (launch_err) return;
  launch_err = e; launch_msg = msg; launch_pc = pc; launch_pc2 = pc2; launch_who.clear();
  if (W && W->in_kernel)
    launch_who = "\n  block " + thread_name(blockIdx) + ", thread " + thread_name(threadIdx) + "; grid " + thread_name(uint3{gridDim.x, gridDim.y, gridDim.z}) +
                 ", block size " + thread_name(uint3{blockDim.x, blockDim.y, blockDim.z});
}
static std::string full_report(const char* kernel, const std::string& at) {       // addresses become lines here, on a normal stack
  std::string m = launch_msg, src = where(launch_pc), src2 = where(launch_pc2);
  size_t k = m.find("%1"); if (k != std::string::npos) m.replace(k, 2, src2.empty() ? "?" : src2);
  m += std::string("\n  in kernel ") + kernel;
  if (!src.empty()) m += ", at " + src;
  return m + launch_who + "\n  (" + at + ")";
}
[[noreturn]] void fail(cudaError_t e, const std::string& msg, const void* pc) {
  report(e, msg, pc);
  if (!W || !W->in_kernel) { fprintf(stderr, "[cuda_emu] %s\n", launch_msg.c_str()); abort(); }
  W->failed = true;
  void* dead;
#ifdef CUDA_EMU_TSAN
  __tsan_switch_to_fiber(W->tsan_main, 1);
#endif
#ifdef CUDA_EMU_ASAN
  __sanitizer_start_switch_fiber(nullptr, W->main_stack, W->main_stack_size);
#endif
  cuda_emu_switch(&dead, W->main_sp);
  abort();
}

// --------------------------------------------------------- device memory
static void env_init() {
  auto get = [](const char* n) { return getenv(n); };
  if (auto s = get("NEEDLE_CUDA_EMU_WORKERS")) opt.workers = atoi(s);
  if (auto s = get("NEEDLE_CUDA_EMU_ORDER")) opt.order = !strcmp(s, "reverse") ? 1 : !strcmp(s, "random") ? 2 : 0;
  if (auto s = get("NEEDLE_CUDA_EMU_SEED")) opt.seed = (unsigned)atoi(s);
  if (auto s = get("NEEDLE_CUDA_EMU_GUARD")) opt.guard = atoi(s);
  if (auto s = get("NEEDLE_CUDA_EMU_STICKY")) opt.throws = !atoi(s);
  if (auto s = get("NEEDLE_CUDA_EMU_STRICT")) opt.strict = atoi(s);
  if (auto s = get("NEEDLE_CUDA_EMU_TIMEOUT")) opt.timeout = atof(s);
  if (auto s = get("NEEDLE_CUDA_EMU_STACK")) opt.stack = (size_t)atol(s) << 10;
  if (auto s = get("NEEDLE_CUDA_EMU_RACES")) opt.races = atoi(s);
  if (auto s = get("NEEDLE_CUDA_EMU_UNINIT")) opt.uninit = atoi(s);
  if (auto s = get("CUEMU_PROFILE")) opt.profile = atoi(s);
  if (!opt.workers) opt.workers = (int)std::thread::hardware_concurrency();
  if (opt.workers > 32) opt.workers = 32;
#if defined(CUDA_EMU_ASAN) || defined(CUDA_EMU_TSAN)
  opt.guard = false;
#endif
}
static void* reserve(size_t n, int prot) {
  void* p = mmap(nullptr, n, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}
static void install_handlers();
static void init() {
  static std::once_flag once;
  std::call_once(once, [] {
    env_init();
    while (arena_bytes >= (size_t(1) << 30) && !(dev_lo = (char*)reserve(arena_bytes, PROT_NONE))) arena_bytes /= 2;
    dev_hi = dev_lo + arena_bytes; dev_next = dev_lo + PAGE;
    owner = (uint32_t*)reserve(arena_bytes / PAGE * 4, PROT_READ | PROT_WRITE);
    allocs = (Alloc*)reserve(sizeof(Alloc) * MAX_ALLOCS, PROT_READ | PROT_WRITE);
    install_handlers();
  });
}
Alloc* find_alloc(const void* p) {
  if ((char*)p < dev_lo || (char*)p >= dev_hi) return nullptr;
  uint32_t o = owner[((char*)p - dev_lo) / PAGE];
  return o ? &allocs[o - 1] : nullptr;
}
std::string describe_device(const void* p, size_t) {
  const char* c = (const char*)p;
  Alloc* a = find_alloc(p);
  for (int d = 1; !a && d <= 64; d++) {         // look around: guard pages belong to nobody
    a = find_alloc(c - d * (ptrdiff_t)PAGE);
    if (!a) a = find_alloc(c + d * (ptrdiff_t)PAGE);
  }
  if (!a) return "address " + hex(p) + " is far from every device allocation";
  std::string s = "allocation #" + std::to_string(a->serial) + " of " + std::to_string(a->size) + " bytes (" +
                  std::to_string(a->size / 4) + " floats)";
  if (!a->live) s += ", which cudaFree has released";
  if (c >= a->base + a->size) s += "; the address is " + std::to_string(c - a->base - a->size) + " bytes past its end (float index " + std::to_string((c - a->base) / 4) + ")";
  else if (c < a->base) s += "; the address is " + std::to_string(a->base - c) + " bytes before its start (float index " + std::to_string((c - a->base) / 4) + ")";
  else s += "; the address is byte " + std::to_string(c - a->base) + " of it (float index " + std::to_string((c - a->base) / 4) + ")";
  return s;
}
static bool open_alloc(Alloc& a) {
  if (a.open.exchange(true)) return false;
  mprotect(dev_lo + a.page * PAGE, a.npages * PAGE, PROT_READ | PROT_WRITE);
  return true;
}
static void close_alloc(Alloc& a) {
  if (opt.guard && a.open.exchange(false)) mprotect(dev_lo + a.page * PAGE, a.npages * PAGE, PROT_NONE);
}
static Alloc* opened[65536]; static std::atomic<unsigned> nopened{0};

static cudaError_t set_error(cudaError_t e, const std::string& detail = "") {
  if (e) { last_error = e; last_detail = detail; if (!detail.empty()) fprintf(stderr, "[cuda_emu] %s: %s\n", cudaGetErrorString(e), detail.c_str()); }
  return e;
}
static bool sticky() { return last_error >= 700; }

cudaError_t malloc_device(void** out, size_t n) {
  init();
  std::lock_guard<std::mutex> g(api);
  if (sticky()) return last_error;
  if (n == 0) { *out = nullptr; return cudaSuccess; }
  size_t np = (n + 15 + PAGE - 1) / PAGE;
  if (dev_next + (np + 1) * PAGE > dev_hi || n > arena_bytes) return set_error(cudaErrorMemoryAllocation);
  uint32_t id = nallocs;
  if (id + 1 >= MAX_ALLOCS) return set_error(cudaErrorMemoryAllocation);
  Alloc& a = allocs[id];
  a.page = (dev_next - dev_lo) / PAGE; a.npages = np; a.size = n; a.serial = id + 1;
  char* lo = dev_next; dev_next += (np + 1) * PAGE;              // one guard page after
  a.base = (char*)((uintptr_t)(lo + np * PAGE - n) & ~uintptr_t(15));   // ends (nearly) at the guard page
  if (mprotect(lo, np * PAGE, PROT_READ | PROT_WRITE)) return set_error(cudaErrorMemoryAllocation, "the host is out of memory maps: too many live device arrays");
  a.open = true; a.live = true;
  for (size_t i = 0; i < np; i++) owner[a.page + i] = id + 1;
  memset(lo, 0xff, np * PAGE);                                    // NaNs: fresh device memory is not zero
  if (on_alloc) on_alloc(a);
  nallocs = id + 1; live_bytes += n;
  close_alloc(a);
  *out = a.base;
  return cudaSuccess;
}
static bool overflowed(Alloc& a) {
  open_alloc(a);
  for (char* p = a.base + a.size; p < dev_lo + (a.page + a.npages) * PAGE; p++) if ((unsigned char)*p != 0xff) return true;
  return false;
}
cudaError_t to_symbol(void* sym, size_t size, const void* src, size_t n, size_t off) {
  if (off + n > size) return set_error(cudaErrorInvalidValue, "cudaMemcpyToSymbol: " + std::to_string(off + n) + " bytes into a symbol of " + std::to_string(size));
  memcpy((char*)sym + off, src, n);
  return cudaSuccess;
}
static std::vector<std::pair<const void*, int>> smem_optin;
cudaError_t set_max_dyn_smem(const void* f, int v) {
  if (v > 227 * 1024) return set_error(cudaErrorInvalidValue, "at most 227 KB of dynamic shared memory can be had (sm_90)");
  smem_optin.push_back({f, v}); return cudaSuccess;
}

// --------------------------------------------------------------- scheduler
static const size_t SH_BYTES = 512 << 10;

static void fiber_entry();
static Fiber* get_fiber() {
  Worker& w = *W;
  Fiber* f = w.free_list;
  if (f) w.free_list = f->next;
  else {
    f = new Fiber{};
    size_t step = opt.stack + PAGE, i = w.nstacks++;
    if (i >= 1024) abort();
    f->lo = w.st_lo + i * step + PAGE;
    mprotect(f->lo, opt.stack, PROT_READ | PROT_WRITE);
    f->size = opt.stack;
    w.all.push_back(f);
#ifdef CUDA_EMU_TSAN
    f->tsan = __tsan_create_fiber(0);
    char nm[32]; snprintf(nm, sizeof nm, "CUDA thread slot %zu", i); __tsan_set_fiber_name(f->tsan, nm);
#endif
  }
  // stacks start at different offsets, or they would all fight for the same cache sets
  size_t i = (f->lo - w.st_lo) / (opt.stack + PAGE);
  f->sp = make_context(f->lo + f->size - 64 - (i % 29) * 128, fiber_entry);
  f->next = nullptr; f->park = P_NONE;
  return f;
}
// Leave the running stack for another one (null: the scheduler's own).
static void go(void** save, Fiber* to, bool dying = false) {
  Worker& w = *W;
#ifdef CUDA_EMU_ASAN
  Fiber* me = w.cur;
#endif
  w.cur = to;
  if (to && to->park != P_NONE) { threadIdx = to->tid; to->park = P_NONE; }
#ifdef CUDA_EMU_TSAN
  __tsan_switch_to_fiber(to ? to->tsan : w.tsan_main, 1);
#endif
#ifdef CUDA_EMU_ASAN
  void** fs = dying ? nullptr : me ? &me->fake : &w.fake_main;
  if (to) __sanitizer_start_switch_fiber(fs, to->lo, to->size);
  else __sanitizer_start_switch_fiber(fs, w.main_stack, w.main_stack_size);
#endif
  (void)dying;
  cuda_emu_switch(save, to ? to->sp : w.main_sp);
#ifdef CUDA_EMU_ASAN
  if (me) __sanitizer_finish_switch_fiber(me->fake, nullptr, nullptr);
  else __sanitizer_finish_switch_fiber(w.fake_main, nullptr, nullptr);
#endif
}
static inline Fiber* pop_ready() {
  Worker& w = *W; Fiber* f = w.ready_head;
  if (f) { w.ready_head = f->next; if (!w.ready_head) w.ready_tail = nullptr; }
  return f;
}
static inline void push_ready(Fiber* f) {
  Worker& w = *W; f->next = nullptr;
  if (w.ready_tail) w.ready_tail->next = f; else w.ready_head = f;
  w.ready_tail = f;
}
static Fiber* pick() {          // who runs next; null: nobody can
  Worker& w = *W;
  if (Fiber* f = pop_ready()) return f;
  if (w.b.next < w.b.nthreads) { w.b.in_use++; return get_fiber(); }
  return nullptr;
}
static void fiber_entry() {
#ifdef CUDA_EMU_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &W->cur->sp /*unused*/ ? nullptr : nullptr, nullptr);
#endif
  Worker* w = W;
#ifdef CUDA_EMU_TSAN
  __tsan_acquire(&w->b.idx);
#endif
  w->loop(&w->b, w->body);
  w = W;
  Fiber* me = w->cur;
  w->b.in_use--;
#ifdef CUDA_EMU_TSAN
  __tsan_release(&w->b.in_use);        // not the address that threads acquire when they start
#else
  me->next = w->free_list; w->free_list = me;
#endif
  void* dead;
  go(&dead, pick(), true);
  abort();
}
static inline unsigned linear() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
static inline void park(Park why, const Site& s) {
  Fiber* f = W->cur;
  f->tid = threadIdx; f->lin = linear(); f->park = why; f->site = s;
  go(&f->sp, pick());
}
static inline unsigned live() { Block& b = W->b; return b.nthreads - b.next + b.in_use; }

static void shuffle_list(Fiber*& head, Fiber*& tail) {
  std::vector<Fiber*> v; for (Fiber* f = head; f; f = f->next) v.push_back(f);
  static thread_local std::minstd_rand rng(opt.seed);
  if (opt.order == 1) std::reverse(v.begin(), v.end()); else std::shuffle(v.begin(), v.end(), rng);
  head = tail = nullptr;
  for (Fiber* f : v) { f->next = nullptr; if (tail) tail->next = f; else head = f; tail = f; }
}
static void release_barrier() {
  Worker& w = *W; Block& b = w.b;
  b.epoch++;
  for (int i = 0; i < 3; i++) b.red_out[i] = b.red[i];
  b.red[0] = 0; b.red[1] = 1; b.red[2] = 0; b.arrived = 0;
  if (opt.order && b.bar_head) shuffle_list(b.bar_head, b.bar_tail);
  if (b.bar_head) {
    if (w.ready_tail) w.ready_tail->next = b.bar_head; else w.ready_head = b.bar_head;
    w.ready_tail = b.bar_tail; b.bar_head = b.bar_tail = nullptr;
  }
}
static std::string site_name(const Site& s) {
  const char* f = strrchr(s.file, '/'); f = f ? f + 1 : s.file;
  return std::string(s.what) + " at " + f + ":" + std::to_string(s.line);
}
[[noreturn]] static void mixed_barrier(const Site& mine) {
  Block& b = W->b; std::string m;
  Fiber* other = nullptr; unsigned n = 0;
  for (Fiber* f = b.bar_head; f; f = f->next) if (f->site.line != mine.line) { if (!other) other = f; n++; }
  m = "divergent barrier: " + std::to_string(n) + " thread(s), e.g. " + thread_name(other->tid) + ", wait in " + site_name(other->site) + " while thread " +
      thread_name(threadIdx) + " and others wait in " + site_name(mine) + ".\n  Every thread of a block must reach the same __syncthreads()";
  FAIL(cudaErrorLaunchFailure, m);
}
static inline void arrive(const Site& s) {
  Block& b = W->b;
  if (b.arrived == 0) { b.bar_site = s; b.bar_mixed = false; }
  else if (s.line != b.bar_site.line || s.file != b.bar_site.file) b.bar_mixed = true;
  b.arrived++;
  if (b.arrived == live()) {
    if (opt.strict) {
      if (b.bar_mixed) mixed_barrier(s);
      if (b.arrived < b.nthreads) {
        FAIL(cudaErrorLaunchFailure, std::to_string(b.nthreads - b.arrived) + " of " + std::to_string(b.nthreads) + " threads of the block returned without reaching " + site_name(s) +
             ", on which the others wait.\n  Do not `return` before a barrier: guard the loads and stores with `if` instead");
      }
    }
#ifdef CUDA_EMU_TSAN
    __tsan_release(&b.red_out[b.epoch & 1]); __tsan_acquire(&b.red_out[b.epoch & 1]);
#endif
    release_barrier();
    return;
  }
  Fiber* f = W->cur; f->next = nullptr;
  if (b.bar_tail) b.bar_tail->next = f; else b.bar_head = f;
  b.bar_tail = f;
#ifdef CUDA_EMU_TSAN       // two addresses in turn: a fast thread's next release must not reach a slow one's acquire
  void* gen = &b.red_out[b.epoch & 1];
  __tsan_release(gen);
#endif
  park(P_BARRIER, s);
#ifdef CUDA_EMU_TSAN
  __tsan_acquire(gen);
#endif
}
#define NEED_KERNEL(s) if (!W || !W->in_kernel) { fprintf(stderr, "[cuda_emu] %s called outside a kernel\n", (s).what); abort(); }
void barrier(const Site& s) { NEED_KERNEL(s); arrive(s); }
int barrier_reduce(const Site& s, int p, int op) {
  NEED_KERNEL(s);
  Block& b = W->b; b.red[0] += p != 0; b.red[1] &= p != 0; b.red[2] |= p != 0;
  arrive(s);
  return W->b.red_out[op];
}
unsigned lane_id() { return linear() & 31; }
static unsigned lanes_of(unsigned warp) {      // lanes that exist
  unsigned n = W->b.nthreads - warp * 32; return n >= 32 ? ~0u : (1u << n) - 1;
}
static unsigned unfinished_lanes(unsigned warp) {
  Worker& w = *W; Block& b = w.b; unsigned m = 0;
  std::vector<bool> alive(32, false);
  auto mark = [&](unsigned lin) { if (lin / 32 == warp) m |= 1u << (lin & 31); };
  for (Fiber* f : w.all) if (f->park != P_NONE) mark(f->lin);
  if (w.cur) mark(linear());
  for (unsigned t = b.next; t < b.nthreads; t++) mark(b.order ? b.order[t] : t);
  return m;
}
unsigned active_mask() { return unfinished_lanes(linear() / 32); }

static void complete(WarpOp& o, unsigned warp) {
  Block& b = W->b; unsigned bal = 0;
  for (int i = 0; i < 32; i++) if (o.arrived >> i & 1 && o.val[i]) bal |= 1u << i;
  for (int i = 0; i < 32; i++) {
    if (!(o.arrived >> i & 1)) continue;
    uint64_t r = 0;
    if (o.op == OP_SHFL) {
      int s = o.src[i] & 31;
      if (o.arrived >> s & 1) r = o.val[s];
      else if (opt.strict) {
        std::string why = !(lanes_of(warp) >> s & 1) ? "which does not exist (the last warp of the block is not full)" : !(o.mask >> s & 1) ? "which the mask leaves out" : "whose thread has returned";
        o.used = false;
        FAIL(cudaErrorLaunchFailure, site_name(o.site) + ": lane " + std::to_string(i) + " of warp " + std::to_string(warp) + " reads lane " + std::to_string(s) + ", " + why + "; the value is undefined");
      }
    } else if (o.op == OP_BALLOT) r = bal;
    if (o.who[i]) { o.who[i]->result = r; push_ready(o.who[i]); }
    else W->cur->result = r;
  }
  b.warp[warp].epoch++;
  o.used = false;
}
uint64_t warp_collective(const Site& s, unsigned mask, uint64_t v, int src, int op) {
  NEED_KERNEL(s);
  Block& b = W->b; unsigned lin = linear(), lane = lin & 31, wi = lin / 32;
  Warp& wp = b.warp[wi];
  if (!(mask >> lane & 1)) FAIL(cudaErrorLaunchFailure, site_name(s) + ": lane " + std::to_string(lane) + " calls it with a mask (" + hex((void*)(uintptr_t)mask) + ") that leaves out the lane itself");
  WarpOp *o = nullptr, *fresh = nullptr;
  for (auto& c : wp.ops) {
    if (!c.used) { if (!fresh) fresh = &c; continue; }
    if (c.mask == mask) { o = &c; break; }
    if (c.mask & mask) FAIL(cudaErrorLaunchFailure, site_name(s) + ": lane " + std::to_string(lane) + " passes mask " + hex((void*)(uintptr_t)mask) + " while lanes of the same warp wait in " + site_name(c.site) + " with mask " + hex((void*)(uintptr_t)c.mask));
  }
  if (!o) {
    o = fresh; if (!o) FAIL(cudaErrorLaunchFailure, "too many different warp masks at once");
    o->used = true; o->mask = mask; o->arrived = 0; o->site = s; o->op = op;
  } else if (o->op != op || (o->site.line != s.line && opt.strict))
    FAIL(cudaErrorLaunchFailure, "warp divergence: lane " + std::to_string(lane) + " of warp " + std::to_string(wi) + " is in " + site_name(s) + " while other lanes of its mask are in " + site_name(o->site));
  o->arrived |= 1u << lane; o->val[lane] = v; o->src[lane] = src;
  unsigned need = mask & lanes_of(wi);
#ifdef CUDA_EMU_TSAN
  void* gen = &o->src[wp.epoch & 1];
  __tsan_release(gen);
#endif
  if (o->arrived == need) { o->who[lane] = nullptr; complete(*o, wi); }
  else { o->who[lane] = W->cur; park(P_WARP, s); }
#ifdef CUDA_EMU_TSAN
  __tsan_acquire(gen);
#endif
  return W->cur->result;
}
void yield_thread() {
  if (!W || !W->in_kernel) return;
  Worker& w = *W;
  if (!w.ready_head && w.b.next >= w.b.nthreads) return;
  Fiber* f = w.cur; f->tid = threadIdx; f->lin = linear(); f->park = P_READY;
  // let a not yet started thread go first
  Fiber* to = w.b.next < w.b.nthreads ? (w.b.in_use++, get_fiber()) : pop_ready();
  push_ready(f);
  go(&f->sp, to);
}
void note_lock() { locked = true; }
void fence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); fenced = true; }

// On the scheduler's stack, nobody can run, and threads still wait: find out why.
// Returns true if something could be released after all.
static bool stuck() {
  Worker& w = *W; Block& b = w.b; bool moved = false;
  unsigned nw = (b.nthreads + 31) / 32;
  for (unsigned i = 0; i < nw; i++)
    for (auto& o : b.warp[i].ops) if (o.used && o.arrived == (o.mask & unfinished_lanes(i))) {
      threadIdx = o.who[__builtin_ctz(o.arrived)]->tid; complete(o, i); moved = true;   // the missing lanes have returned
    }
  if (moved) return true;
  for (unsigned i = 0; i < nw; i++)
    for (auto& o : b.warp[i].ops) if (o.used) {
      unsigned miss = o.mask & unfinished_lanes(i) & ~o.arrived; int l = __builtin_ctz(miss);
      Fiber* g = nullptr; for (Fiber* f : w.all) if (f->park != P_NONE && f->lin == i * 32 + l) g = f;
      threadIdx = o.who[__builtin_ctz(o.arrived)]->tid;
      report(cudaErrorLaunchFailure, "deadlock: " + site_name(o.site) + " waits for lane " + std::to_string(l) + " of warp " + std::to_string(i) +
             (g ? ", which waits in " + site_name(g->site) : std::string(", which never comes")), nullptr);
      w.failed = true; return false;
    }
  if (b.arrived && b.arrived == live()) {
    if (opt.strict) {
      threadIdx = b.bar_head->tid;
      if (b.bar_mixed) {
        Fiber* o = b.bar_head; for (Fiber* f = b.bar_head; f; f = f->next) if (f->site.line != b.bar_head->site.line) o = f;
        report(cudaErrorLaunchFailure, "divergent barrier: thread " + thread_name(b.bar_head->tid) + " waits in " + site_name(b.bar_head->site) + ", thread " + thread_name(o->tid) + " in " + site_name(o->site) +
               ", and " + std::to_string(b.nthreads - b.arrived) + " thread(s) have returned", nullptr);
      } else
        report(cudaErrorLaunchFailure, std::to_string(b.nthreads - b.arrived) + " of " + std::to_string(b.nthreads) + " threads of the block returned without reaching " + site_name(b.bar_site) +
               ", on which the others wait.\n  Do not `return` before a barrier: guard the loads and stores with `if` instead", nullptr);
      w.failed = true; return false;
    }
    release_barrier(); return true;
  }
  report(cudaErrorLaunchFailure, "deadlock in the block", nullptr); w.failed = true; return false;
}

// ------------------------------------------------------------ shared memory
static const size_t RED = 64;
#ifdef CUDA_EMU_TSAN       // libtsan would take memset for an access of the running CUDA thread
static void poison(char* p, size_t n) { for (size_t i = 0; i < n; i++) *(volatile char*)(p + i) = (char)0xff; }
#else
static void poison(char* p, size_t n) { memset(p, 0xff, n); }
#endif
void* dynamic_shared() {
  Worker& w = *W; return w.dyn;
}
void* static_shared(const void* key, size_t n, const char* decl) {
  Worker& w = *W;
  for (int i = 0; i < w.nvars; i++) if (w.vars[i].key == key) return w.vars[i].p;
  if (w.nvars == 24) FAIL(cudaErrorLaunchFailure, "more than 24 __shared__ variables in one kernel");
  w.static_used += n;
  if (w.static_used > 48 * 1024) FAIL(cudaErrorInvalidConfiguration, "the kernel's __shared__ arrays need " + std::to_string(w.static_used) + " bytes; a block has at most 49152 (`__shared__ " + decl + "` is the one that does not fit)");
  char* p = w.nvars ? w.vars[w.nvars - 1].p + w.vars[w.nvars - 1].n : w.sh_lo;
  p = (char*)(((uintptr_t)p + RED + 15) & ~uintptr_t(15));
  poison(p, n + RED);
  w.vars[w.nvars++] = {key, p, n, decl};
  return p;
}
static void check_canaries() {
  Worker& w = *W;
  for (int i = 0; i < w.nvars; i++) {
    unsigned char* e = (unsigned char*)w.vars[i].p + w.vars[i].n;
    for (size_t k = 0; k < RED; k++) if (e[k] != 0xff) {
      report(cudaErrorIllegalAddress, std::string("something wrote past the end of `__shared__ ") + w.vars[i].decl + "` (" + std::to_string(k) + " bytes past it)", nullptr);
      w.failed = true; return;
    }
  }
}

// -------------------------------------------------------------- running blocks
static Worker* make_worker() {
  Worker* w = new Worker{};
  w->sh_lo = (char*)reserve(SH_BYTES + PAGE, PROT_NONE);
  mprotect(w->sh_lo, SH_BYTES, PROT_READ | PROT_WRITE);
  w->sh_hi = w->sh_lo + SH_BYTES;
  w->st_lo = (char*)reserve((opt.stack + PAGE) * 1024 + PAGE, PROT_NONE);
  w->st_hi = w->st_lo + (opt.stack + PAGE) * 1024 + PAGE;
  w->thread = pthread_self();
#ifdef CUDA_EMU_TSAN
  w->tsan_main = __tsan_get_current_fiber();
#endif
#ifdef CUDA_EMU_ASAN
  pthread_attr_t at; pthread_getattr_np(pthread_self(), &at); void* lo; size_t n; pthread_attr_getstack(&at, &lo, &n); pthread_attr_destroy(&at);
  w->main_stack = lo; w->main_stack_size = n;
#endif
  w->sigstack = (char*)malloc(64 << 10);
  return w;
}
static void run_block(unsigned lin) {
  Worker& w = *W; Block& b = w.b;
  b.lin = lin; b.next = 0; threadIdx = {0, 0, 0};
  blockIdx = b.idx = {lin % gridDim.x, lin / gridDim.x % gridDim.y, lin / gridDim.x / gridDim.y};
  b.in_use = 0; b.arrived = 0; b.bar_head = b.bar_tail = nullptr; b.epoch = 0;
  b.red[0] = 0; b.red[1] = 1; b.red[2] = 0;
  w.ready_head = w.ready_tail = nullptr; w.failed = w.busy = false;
  for (int i = 0; i < w.nvars; i++) poison(w.vars[i].p, w.vars[i].n + RED);      // NaNs
  if (w.cfg->smem) poison(w.dyn, w.cfg->smem);
  if (opt.order == 2) { static thread_local std::minstd_rand rng(opt.seed); std::shuffle(w.order.begin(), w.order.end(), rng); }
  if (on_block_start) on_block_start();
  w.in_kernel = true;
#ifdef CUDA_EMU_TSAN
  // a fiber that another one creates would be ordered after it: create all of them here
  w.free_list = nullptr; while (w.all.size() < b.nthreads) get_fiber();
  for (auto i = w.all.rbegin(); i != w.all.rend(); ++i) { (*i)->next = w.free_list; w.free_list = *i; }
  __tsan_release(&b.idx);
#endif
  for (;;) {
    Fiber* f = pick();
    if (f) { go(&w.main_sp, f); }
    else if (b.in_use && !stuck()) {}
    if (w.failed) break;
    if (!b.in_use && b.next >= b.nthreads) break;
  }
#ifdef CUDA_EMU_TSAN
  __tsan_acquire(&b.in_use);
#endif
  if (!w.failed) check_canaries();
  w.in_kernel = false;
  w.cur = nullptr;
  if (on_block_end) on_block_end();
  if (w.failed) {                       // forget all the fibers that hang in the middle of something
    w.free_list = nullptr;
    for (Fiber* g : w.all) { g->park = P_NONE; g->next = w.free_list; w.free_list = g; }
    for (auto& wp : b.warp) for (auto& o : wp.ops) o.used = false;
  }
}

struct Job {
  const LaunchCfg* cfg; LoopFn loop; const void* body; const void* args; size_t nargs;
  unsigned total; std::atomic<unsigned> next{0}; std::atomic<bool> stop{false}; std::atomic<int> left{0};
};
static long now_ms() { return (long)std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
static std::vector<Worker*> workers; static std::mutex workers_mu;

static void work(Job& j) {
  if (!W) { W = make_worker(); std::lock_guard<std::mutex> g(workers_mu); workers.push_back(W); }
  Worker& w = *W;
  stack_t ss{}, old{}; ss.ss_sp = w.sigstack; ss.ss_size = 64 << 10; sigaltstack(&ss, &old);
  w.cfg = j.cfg; w.loop = j.loop; w.body = j.body; w.args = (const char*)j.args; w.nargs = j.nargs;
  w.nvars = 0; w.static_used = 0;
  blockDim = j.cfg->block; gridDim = j.cfg->grid;
  w.b.nthreads = blockDim.x * blockDim.y * blockDim.z;
  w.b.order = nullptr; w.b.single = false;
#ifdef CUDA_EMU_TSAN
  w.b.single = true;
  w.order.resize(w.b.nthreads); for (unsigned i = 0; i < w.b.nthreads; i++) w.order[i] = (uint16_t)i;
  w.b.order = w.order.data();
#endif
  if (opt.order) {
    w.order.resize(w.b.nthreads);
    for (unsigned i = 0; i < w.b.nthreads; i++) w.order[i] = (uint16_t)(w.b.nthreads - 1 - i);
    w.b.order = w.order.data();
  }
  w.dyn = (char*)((uintptr_t)(w.sh_hi - j.cfg->smem) & ~uintptr_t(15));
  w.started_ms = now_ms();
  unsigned chunk = std::max(1u, j.total / (opt.workers * 16u));
  for (unsigned i; !j.stop && (i = j.next.fetch_add(chunk)) < j.total;)
    for (unsigned k = i; k < std::min(j.total, i + chunk) && !j.stop; k++) { run_block(k); if (w.failed) j.stop = true; }
  w.started_ms = 0;
  if (!(old.ss_flags & SS_DISABLE)) sigaltstack(&old, nullptr);
}

struct Pool {
  std::mutex mu; std::condition_variable cv, done; std::vector<std::thread> th; Job* job = nullptr; unsigned gen = 0;
  void ensure(int n) {
    while ((int)th.size() < n) th.emplace_back([this] {
      unsigned seen = 0;
      { std::lock_guard<std::mutex> g(mu); seen = gen ? gen - 1 : 0; }
      for (;;) {
        Job* j;
        { std::unique_lock<std::mutex> l(mu); cv.wait(l, [&] { return gen != seen; }); seen = gen; j = job; if (!j) continue; j->left++; }
        work(*j);
        { std::lock_guard<std::mutex> l(mu); j->left--; done.notify_all(); }
      }
    });
  }
};
static Pool* pool;
static void watchdog() {
  std::thread([] {
    for (;;) {
      usleep(200000);
      std::lock_guard<std::mutex> g(workers_mu);
      for (Worker* w : workers) { long s = w->started_ms; if (s && now_ms() - s > opt.timeout * 1000) pthread_kill(w->thread, SIGUSR2); }
    }
  }).detach();
}
static void after_fork() { pool = nullptr; W = nullptr; new (&workers) std::vector<Worker*>(); }

void run_grid(const LaunchCfg& c0, LoopFn loop, const void* body, const void* args, size_t nargs) {
  init();
  LaunchCfg c = c0;
  std::string name = c.kernel;                      // "(name)" -> "name"
  if (name.size() > 2 && name[0] == '(') name = name.substr(1, name.size() - 2);
  c.kernel = name.c_str();
  std::unique_lock<std::mutex> g(api);
  if (sticky()) return;
  const char* base = strrchr(c.file, '/'); base = base ? base + 1 : c.file;
  std::string at = std::string("launch of ") + name + " at " + base + ":" + std::to_string(c.line);
  cudaError_t bad = cudaSuccess; std::string why;
  size_t bt = (size_t)c.block.x * c.block.y * c.block.z;
  if (bt == 0 || (size_t)c.grid.x * c.grid.y * c.grid.z == 0) bad = cudaErrorInvalidConfiguration, why = "a grid or block dimension is 0";
  else if (bt > 1024) bad = cudaErrorInvalidConfiguration, why = std::to_string(bt) + " threads per block; at most 1024 are allowed";
  else if (c.block.z > 64) bad = cudaErrorInvalidConfiguration, why = "blockDim.z may be at most 64";
  else if (c.grid.x > 2147483647u || c.grid.y > 65535 || c.grid.z > 65535) bad = cudaErrorInvalidConfiguration, why = "gridDim.y and gridDim.z may be at most 65535";
  else if (c.smem > 227 * 1024 || (c.smem > 48 * 1024 && smem_optin.empty())) bad = cudaErrorInvalidValue, why = std::to_string(c.smem) + " bytes of dynamic shared memory; more than 49152 need cudaFuncSetAttribute, and 232448 is the most";
  if (bad) {
    if (opt.throws) throw std::runtime_error(std::string(cudaGetErrorString(bad)) + "\n[cuda_emu] " + at + ": " + why);
    set_error(bad, at + ": " + why); return;
  }
  static bool wd = (watchdog(), pthread_atfork(nullptr, nullptr, after_fork), true); (void)wd;
  install_handlers();
  launch_err = cudaSuccess; launch_msg.clear(); fenced = locked = false;
  launch_no++;
  if (on_launch_start) on_launch_start((const void*)loop);
  Job j; j.cfg = &c; j.loop = loop; j.body = body; j.args = args; j.nargs = nargs; j.total = c.grid.x * c.grid.y * c.grid.z;
  bool par = opt.workers > 1 && j.total > 1 && (size_t)j.total * bt >= 4096;
  if (par) {
    if (!pool) pool = new Pool;
    { std::lock_guard<std::mutex> l(pool->mu); pool->job = &j; pool->gen++; }
    pool->ensure(opt.workers - 1);
    pool->cv.notify_all();
  }
  work(j);
  if (par) { std::unique_lock<std::mutex> l(pool->mu); pool->job = nullptr; pool->done.wait(l, [&] { return j.left == 0; }); }
  if (on_launch_end) on_launch_end(c);
  if (opt.guard) { unsigned n = nopened.exchange(0); for (unsigned i = 0; i < n && i < 65536; i++) close_alloc(*opened[i]); }
  if (launch_err) {
    std::string m = full_report(c.kernel, at);
    if (opt.throws) { cudaError_t e = launch_err; g.unlock(); throw std::runtime_error(std::string(cudaGetErrorString(e)) + "\n[cuda_emu] " + m); }
    set_error(launch_err, m);
  }
}

// ------------------------------------------------------------------- signals
static struct sigaction old_segv, old_bus, old_fpe, old_ill;
static void chain(int sig, siginfo_t* si, void* uc) {
  struct sigaction* o = sig == SIGSEGV ? &old_segv : sig == SIGBUS ? &old_bus : sig == SIGFPE ? &old_fpe : &old_ill;
  if (o->sa_flags & SA_SIGINFO && o->sa_sigaction) { o->sa_sigaction(sig, si, uc); return; }
  if (o->sa_handler != SIG_DFL && o->sa_handler != SIG_IGN) { o->sa_handler(sig); return; }
  signal(sig, SIG_DFL);           // return and fault again, for good
}
static void handler(int sig, siginfo_t* si, void* ucv) {
  ucontext_t* uc = (ucontext_t*)ucv;
#if defined(__x86_64__) && defined(__linux__)
  const void* pc = (const void*)(uc->uc_mcontext.gregs[REG_RIP] + 1);
#elif defined(__aarch64__) && defined(__linux__)
  const void* pc = (const void*)(uc->uc_mcontext.pc + 1);
#else
  const void* pc = nullptr; (void)uc;
#endif
  int err = errno;
  const char* p = (const char*)si->si_addr;
  bool in = W && W->in_kernel;
  bool was = in && W->busy; if (in) W->busy = true;
  if (sig == SIGUSR2 && !in) return;
  Alloc* a = (sig == SIGSEGV || sig == SIGBUS) ? find_alloc(p) : nullptr;
  if (in && a && a->live) {       // the kernel's first touch of this array: let it in (or another worker just does)
    if (open_alloc(*a)) { unsigned i = nopened++; if (i < 65536) opened[i] = a; }
    W->busy = was; errno = err; return;
  }
  if (!in) {
    if (sig != SIGUSR2 && p >= dev_lo && p < dev_hi && dev_lo) {
      std::string at = where(pc);
      fprintf(stderr, "\n[cuda_emu] host code touches device memory at %p%s%s: %s.\n[cuda_emu] A device pointer can only be used inside a kernel; use cudaMemcpy.\n",
              (const void*)p, at.empty() ? "" : " in ", at.c_str(), describe_device(p, 1).c_str());
    }
    chain(sig, si, ucv); return;
  }
  Worker& w = *W;
  sigset_t m; sigemptyset(&m); sigaddset(&m, sig); pthread_sigmask(SIG_UNBLOCK, &m, nullptr);
  if (sig == SIGUSR2) FAIL(cudaErrorLaunchTimeout, "the kernel ran for more than " + std::to_string((int)opt.timeout) + " s (NEEDLE_CUDA_EMU_TIMEOUT): an endless loop?", pc);
  if (sig == SIGFPE) FAIL(cudaErrorLaunchFailure, "integer division by zero (a GPU would return garbage)", pc);
  if (sig == SIGILL) FAIL(cudaErrorLaunchFailure, "trap", pc);
  if (p >= dev_lo && p < dev_hi) FAIL(cudaErrorIllegalAddress, "out-of-bounds access: " + describe_device(p, 1), pc);
  if (p >= w.sh_hi && p < w.sh_hi + PAGE)
    FAIL(cudaErrorIllegalAddress, w.cfg->smem ? "access past the end of dynamic shared memory: the launch asked for " + std::to_string(w.cfg->smem) + " bytes (third <<<>>> argument), the access is at byte " + std::to_string(p - w.dyn)
                                             : std::string("the kernel uses extern __shared__ memory, but the launch asked for 0 bytes of it (third <<<>>> argument)"), pc);
  if (p >= w.st_lo && p < w.st_hi) FAIL(cudaErrorIllegalAddress, "a thread used more than " + std::to_string(opt.stack >> 10) + " KB of stack (NEEDLE_CUDA_EMU_STACK sets the KB)", pc);
  if (p < (char*)PAGE) FAIL(cudaErrorIllegalAddress, "null pointer access (address " + hex(p) + ")", pc);
  FAIL(cudaErrorIllegalAddress, "access to address " + hex(p) + ", which is no device memory", pc);
}
static void install_handlers() {
#if !defined(CUDA_EMU_ASAN) && !defined(CUDA_EMU_TSAN)
  struct sigaction sa{}, cur{}; sa.sa_sigaction = handler; sa.sa_flags = SA_SIGINFO | SA_ONSTACK; sigemptyset(&sa.sa_mask);
  sigaction(SIGSEGV, nullptr, &cur);
  if (cur.sa_sigaction == handler) return;
  sigaction(SIGSEGV, &sa, &old_segv); sigaction(SIGBUS, &sa, &old_bus); sigaction(SIGFPE, &sa, &old_fpe); sigaction(SIGILL, &sa, &old_ill);
  struct sigaction dummy; sigaction(SIGUSR2, &sa, &dummy);
#endif
}
void device_assert(const char* e, const char* f, unsigned l) {
  if (!W || !W->in_kernel) return;
  const char* b = strrchr(f, '/');
  FAIL(cudaErrorAssert, std::string(b ? b + 1 : f) + ":" + std::to_string(l) + ": assertion `" + e + "` failed");
}
#ifndef CUDA_EMU_CHECK
void note_atomic(const void*, size_t) {}
#endif
}  // namespace cuda_emu

// ------------------------------------------------------------------ the API
using namespace cuda_emu;
extern "C" {
const char* cudaGetErrorString(cudaError_t e) {
  switch (e) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInvalidMemcpyDirection: return "invalid copy direction for memcpy";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    case cudaErrorLaunchTimeout: return "the launch timed out and was terminated";
    case cudaErrorAssert: return "device-side assert triggered";
    case cudaErrorMisalignedAddress: return "misaligned address";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    default: return "unknown error";
  }
}
const char* cudaGetErrorName(cudaError_t e) { return cudaGetErrorString(e); }
cudaError_t cudaGetLastError() { cudaError_t e = last_error; if (e < 700) last_error = cudaSuccess; return e; }
cudaError_t cudaPeekAtLastError() { return last_error; }
cudaError_t cudaDeviceSynchronize() { return sticky() ? last_error : cudaSuccess; }
cudaError_t cudaDeviceReset() { last_error = cudaSuccess; return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* n) { *n = 1; return cudaSuccess; }
cudaError_t cudaGetDevice(int* d) { *d = 0; return cudaSuccess; }
cudaError_t cudaSetDevice(int d) { return d == 0 ? cudaSuccess : cudaErrorInvalidDevice; }
cudaError_t cudaMemGetInfo(size_t* f, size_t* t) { init(); *t = size_t(8) << 30; *f = *t - live_bytes; return cudaSuccess; }
cudaError_t cudaFree(void* p) {
  if (!p) return cudaSuccess;
  init();
  std::lock_guard<std::mutex> g(api);
  Alloc* a = find_alloc(p);
  if (!a || a->base != p) return set_error(cudaErrorInvalidValue, "cudaFree of a pointer that cudaMalloc never returned");
  if (!a->live) return set_error(cudaErrorInvalidValue, "cudaFree of the same pointer twice: " + describe_device(p, 0));
  if (overflowed(*a)) fprintf(stderr, "[cuda_emu] something wrote past the end of %s\n", describe_device(p, 0).c_str());
  if (on_free) on_free(*a);
  a->live = false; live_bytes -= a->size; a->open = false;
  char* lo = dev_lo + a->page * PAGE;              // addresses are never used again: use after free is always caught
  mmap(lo, a->npages * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return cudaSuccess;
}
static cudaError_t check_range(const char* what, const void* p, size_t n, bool want_dev, Alloc** out) {
  bool dev = (char*)p >= dev_lo && (char*)p < dev_hi;
  *out = nullptr;
  if (want_dev != dev) return set_error(cudaErrorInvalidValue, std::string(what) + " is " + (dev ? "device" : "host") + " memory, but the copy direction says " + (want_dev ? "device" : "host"));
  if (!dev) return cudaSuccess;
  Alloc* a = find_alloc(p);
  if (!a || !a->live || (char*)p < a->base || (char*)p + n > a->base + a->size)
    return set_error(cudaErrorInvalidValue, std::string(what) + ", " + std::to_string(n) + " bytes, is outside of " + describe_device(p, n));
  *out = a; return cudaSuccess;
}
cudaError_t cudaMemcpy(void* d, const void* s, size_t n, cudaMemcpyKind k) {
  init();
  std::lock_guard<std::mutex> g(api);
  if (sticky()) return last_error;
  if (!n) return cudaSuccess;
  bool dd = k == cudaMemcpyHostToDevice || k == cudaMemcpyDeviceToDevice, sd = k == cudaMemcpyDeviceToHost || k == cudaMemcpyDeviceToDevice;
  if (k == cudaMemcpyDefault) dd = (char*)d >= dev_lo && (char*)d < dev_hi, sd = (char*)s >= dev_lo && (char*)s < dev_hi;
  Alloc *da, *sa;
  if (cudaError_t e = check_range("cudaMemcpy: the destination", d, n, dd, &da)) return e;
  if (cudaError_t e = check_range("cudaMemcpy: the source", s, n, sd, &sa)) return e;
  if (da) open_alloc(*da);
  if (sa) open_alloc(*sa);
  memmove(d, s, n);
  if (da && sa && on_copy) on_copy(*da, (char*)d - da->base, *sa, (char*)s - sa->base, n);
  else if (da && on_host_write) on_host_write(*da, (char*)d - da->base, n);
  if (da) close_alloc(*da);
  if (sa) close_alloc(*sa);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* d, int v, size_t n) {
  init();
  std::lock_guard<std::mutex> g(api);
  if (sticky()) return last_error;
  Alloc* a;
  if (!n) return cudaSuccess;
  if (cudaError_t e = check_range("cudaMemset: the destination", d, n, true, &a)) return e;
  open_alloc(*a); memset(d, v, n);
  if (on_host_write) on_host_write(*a, (char*)d - a->base, n);
  close_alloc(*a);
  return cudaSuccess;
}
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  memset(p, 0, sizeof *p); strcpy(p->name, "cuda_emu (CPU)"); p->totalGlobalMem = size_t(8) << 30; p->sharedMemPerBlock = 49152; p->sharedMemPerBlockOptin = 232448;
  p->warpSize = 32; p->maxThreadsPerBlock = 1024; p->multiProcessorCount = opt.workers; p->major = 9; p->minor = 0; p->regsPerBlock = 65536;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024; p->maxThreadsDim[2] = 64; p->maxGridSize[0] = 2147483647; p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  return cudaSuccess;
}
struct CUevent_st { double t; };
static double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
cudaError_t cudaEventCreate(cudaEvent_t* e) { *e = (CUevent_st*)malloc(sizeof(CUevent_st)); (*e)->t = 0; return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t) { e->t = now_s(); return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) { *ms = (float)((b->t - a->t) * 1e3); return cudaSuccess; }
