//===- Fibre.h - one stack to switch to and from --------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_EMULATED_FIBRE_H
#define RECKON_RUNTIME_CUDA_EMULATED_FIBRE_H

#include <cstddef>
#include <memory>

#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace reckon::cuda::emulated {

/// A stack that runs a function until it calls pause(). A fibre whose function
/// has returned can be started again on the same stack; one that is paused for
/// good is simply dropped, without unwinding.
class Fibre {
public:
  Fibre();
  ~Fibre();
  Fibre(const Fibre &) = delete;
  Fibre &operator=(const Fibre &) = delete;

  using Body = void (*)(void *argument);

  /// Runs body(argument) until its first pause or its end.
  void start(Body body, void *argument);
  /// Goes on after the last pause.
  void resume();
  bool finished() const { return finished_; }

  /// Back to whoever started or resumed this fibre. Called on it.
  void pause();

  static constexpr size_t stackBytes = 64 << 10;

private:
  [[noreturn]] static void enter(Fibre *self);
  void enterStack();

  void *mapping_ = nullptr;
  size_t mappingBytes_ = 0;
  Body body_ = nullptr;
  void *argument_ = nullptr;
  bool finished_ = true;
#ifdef __x86_64__
  void *own_ = nullptr;    // stack pointer while paused
  void *caller_ = nullptr; // stack pointer of whoever runs it
#else
  ucontext_t own_;
  ucontext_t caller_;
  static void enterParts(unsigned high, unsigned low);
#endif
};

} // namespace reckon::cuda::emulated

#endif // RECKON_RUNTIME_CUDA_EMULATED_FIBRE_H
