//===- CountingAllocator.cpp - counts operator new ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/exec/CountingAllocator.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <execinfo.h>
#include <new>

using reckon::test::Allocations;

static thread_local bool counting = false;
static thread_local Allocations counted;

Allocations reckon::test::countAllocations(bool enable) {
  void *frame[1];
  backtrace(frame, 1); // loads what it needs, which allocates
  Allocations before = counted;
  counted = {};
  counting = enable;
  return before;
}

/// Whether oneDNN is on the stack, or else only we are.
static bool calledByOneDnn() {
  void *frames[64];
  int n = backtrace(frames, 64);
  for (int i = 0; i < n; ++i) {
    Dl_info info;
    if (dladdr(frames[i], &info) && info.dli_fname &&
        std::strstr(info.dli_fname, "libdnnl"))
      return true;
  }
  return false;
}

static void *countedAllocate(std::size_t size, std::size_t alignment) {
  if (counting) {
    counting = false;
    ++(calledByOneDnn() ? counted.oneDnn : counted.own);
    counting = true;
  }
  void *memory = nullptr;
  if (posix_memalign(&memory, alignment < 16 ? 16 : alignment,
                     size ? size : 1) != 0)
    throw std::bad_alloc();
  return memory;
}

void *operator new(std::size_t size) { return countedAllocate(size, 16); }
void *operator new[](std::size_t size) { return countedAllocate(size, 16); }
void *operator new(std::size_t size, std::align_val_t alignment) {
  return countedAllocate(size, static_cast<std::size_t>(alignment));
}
void *operator new[](std::size_t size, std::align_val_t alignment) {
  return countedAllocate(size, static_cast<std::size_t>(alignment));
}
// The standard library's own end in those above; a sanitizer's do not.
void *operator new(std::size_t size, const std::nothrow_t &) noexcept {
  return countedAllocate(size, 16);
}
void *operator new[](std::size_t size, const std::nothrow_t &) noexcept {
  return countedAllocate(size, 16);
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete[](void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void *memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void *memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void *memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void *memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void *memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
