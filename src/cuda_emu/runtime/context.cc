#include "context.h"

#include <cstdint>
#include <cstring>

// A switch saves the registers that a function must preserve, and exchanges the stack pointer.  All others may be lost
// at any call, so the compiler has saved what it needs of them.

// macOS puts a _ before C's names, and its assembler knows no .type and .size.
#ifdef __APPLE__
#define CUDA_EMU_SYMBOL "_cuda_emu_switch"
#define CUDA_EMU_BEGIN ".text\n.globl " CUDA_EMU_SYMBOL "\n.private_extern " CUDA_EMU_SYMBOL "\n"
#define CUDA_EMU_END ""
#else
#define CUDA_EMU_SYMBOL "cuda_emu_switch"
#define CUDA_EMU_BEGIN \
  ".text\n.globl " CUDA_EMU_SYMBOL "\n.hidden " CUDA_EMU_SYMBOL "\n.type " CUDA_EMU_SYMBOL ", %function\n"
#define CUDA_EMU_END ".size " CUDA_EMU_SYMBOL ", .-" CUDA_EMU_SYMBOL "\n"
#endif

#if defined(__x86_64__) && !defined(CUDA_EMU_UCONTEXT)

// It ends by `pop; jmp`, not by `ret`: the processor guesses the target of a `ret` from the calls that it has seen, and
// here would always be wrong.
asm(CUDA_EMU_BEGIN CUDA_EMU_SYMBOL
    ":"
    R"(
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmp *%rcx
)" CUDA_EMU_END);

void* cuda_emu::MakeContext(char* top, void (*entry)()) {
  auto* stack = reinterpret_cast<uintptr_t*>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t{15});
  *--stack = 0;  // the return address of `entry`: there is none
  *--stack = reinterpret_cast<uintptr_t>(entry);
  for (int saved = 0; saved < 6; saved++) *--stack = 0;
  return stack;
}

#elif defined(__aarch64__) && !defined(CUDA_EMU_UCONTEXT)

asm(CUDA_EMU_BEGIN ".p2align 2\n" CUDA_EMU_SYMBOL
                   ":"
                   R"(
  stp x19, x20, [sp, #-160]!
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  ldp x19, x20, [sp], #160
  ret
)" CUDA_EMU_END);

void* cuda_emu::MakeContext(char* top, void (*entry)()) {
  auto* stack = reinterpret_cast<uintptr_t*>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t{15}) - 20;
  std::memset(stack, 0, 160);
  stack[11] = reinterpret_cast<uintptr_t>(entry);  // x30, where `ret` goes
  return stack;
}

#else  // works everywhere, and takes two system calls a switch

#include <ucontext.h>

void cuda_emu_switch(void** save, void* to) {
  ucontext_t here;
  *save = &here;
  swapcontext(&here, static_cast<ucontext_t*>(to));
}

void* cuda_emu::MakeContext(char* top, void (*entry)()) {
  constexpr size_t kStack = 48 << 10;
  auto* context = reinterpret_cast<ucontext_t*>(reinterpret_cast<uintptr_t>(top - sizeof(ucontext_t)) & ~uintptr_t{63});
  getcontext(context);
  context->uc_stack.ss_sp = reinterpret_cast<char*>(context) - kStack;
  context->uc_stack.ss_size = kStack;
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
  return context;
}

#endif
