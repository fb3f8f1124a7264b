//===- Fibre.cpp - one stack to switch to and from ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/emulated/Fibre.h"

#include "runtime/base/Status.h"

#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __x86_64__
// Saves the callee-saved registers and the floating-point modes of the System V
// ABI on the current stack, stores its pointer, and goes on from another one.
asm(R"(
.text
.globl reckonSwitchStack
.hidden reckonSwitchStack
.type reckonSwitchStack, @function
reckonSwitchStack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  subq $8, %rsp
  stmxcsr (%rsp)
  fnstcw 4(%rsp)
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  ldmxcsr (%rsp)
  fldcw 4(%rsp)
  addq $8, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  retq
.size reckonSwitchStack, .-reckonSwitchStack
)");
extern "C" void reckonSwitchStack(void **from, void *to);
#endif

namespace reckon::cuda::emulated {

Fibre::Fibre() {
  // The lowest page faults instead of letting a deep call overwrite a
  // neighbour's stack.
  size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  mappingBytes_ = stackBytes + page;
  mapping_ = mmap(nullptr, mappingBytes_, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  RECKON_CHECK(mapping_ != MAP_FAILED);
  RECKON_CHECK(mprotect(mapping_, page, PROT_NONE) == 0);
}

Fibre::~Fibre() { munmap(mapping_, mappingBytes_); }

void Fibre::enter(Fibre *self) {
  while (true) {
    self->body_(self->argument_);
    self->finished_ = true;
    self->pause();
  }
}

#ifdef __x86_64__

namespace {
// The first switch to a stack "returns" here with the fibre in a register.
asm(R"(
.text
.globl reckonFibreEntry
.hidden reckonFibreEntry
.type reckonFibreEntry, @function
reckonFibreEntry:
  movq %r12, %rdi
  callq *%r13
  ud2
.size reckonFibreEntry, .-reckonFibreEntry
)");
} // namespace
extern "C" void reckonFibreEntry();

void Fibre::enterStack() {
  char *top = static_cast<char *>(mapping_) + mappingBytes_;
  auto *frame = reinterpret_cast<uint64_t *>(top) - 10;
  uint32_t mxcsr = 0;
  uint16_t control = 0;
  asm volatile("stmxcsr %0" : "=m"(mxcsr));
  asm volatile("fnstcw %0" : "=m"(control));
  frame[0] = mxcsr | static_cast<uint64_t>(control) << 32;
  frame[1] = frame[2] = 0;                                 // r15, r14
  frame[3] = reinterpret_cast<uint64_t>(&Fibre::enter);    // r13
  frame[4] = reinterpret_cast<uint64_t>(this);             // r12
  frame[5] = frame[6] = 0;                                 // rbx, rbp
  frame[7] = reinterpret_cast<uint64_t>(reckonFibreEntry); // return address
  own_ = frame;
}

void Fibre::start(Body body, void *argument) {
  RECKON_CHECK(finished_);
  body_ = body;
  argument_ = argument;
  finished_ = false;
  if (!own_)
    enterStack();
  resume();
}

void Fibre::resume() { reckonSwitchStack(&caller_, own_); }
void Fibre::pause() { reckonSwitchStack(&own_, caller_); }

#else

void Fibre::enterParts(unsigned high, unsigned low) {
  enter(reinterpret_cast<Fibre *>(static_cast<uintptr_t>(high) << 32 | low));
}

void Fibre::enterStack() {
  getcontext(&own_);
  own_.uc_stack.ss_sp = mapping_;
  own_.uc_stack.ss_size = mappingBytes_;
  own_.uc_link = nullptr;
  auto bits = reinterpret_cast<uintptr_t>(this);
  makecontext(&own_, reinterpret_cast<void (*)()>(&Fibre::enterParts), 2,
              static_cast<unsigned>(bits >> 32), static_cast<unsigned>(bits));
}

void Fibre::start(Body body, void *argument) {
  RECKON_CHECK(finished_);
  bool first = !body_;
  body_ = body;
  argument_ = argument;
  finished_ = false;
  if (first)
    enterStack();
  resume();
}

void Fibre::resume() { swapcontext(&caller_, &own_); }
void Fibre::pause() { swapcontext(&own_, &caller_); }

#endif

} // namespace reckon::cuda::emulated
