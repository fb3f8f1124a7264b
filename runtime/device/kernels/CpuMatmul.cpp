//===- CpuMatmul.cpp - matrix products by oneDNN, behind one file ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Debian 12 has oneDNN 2.6, whose operation descriptors version 3 dropped; no
// other file knows. Scratch memory is the device's workspace. Execution goes
// through the C interface with argument arrays made beforehand: the C++ one
// builds a map on each call. (Inside, oneDNN still makes a small map of the
// arguments for each execution.)
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/CpuMatmul.h"
#include "runtime/device/kernels/BlockedMatmul.h"

#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <oneapi/dnnl/dnnl_debug.h>
#include <string>

namespace reckon::device {

namespace {

Error dnnlError(const char *what, const MatmulShape &shape) {
  return makeError(
      ExitCode::Environment,
      "expected oneDNN to run a matrix product of " + std::to_string(shape.m) +
          " x " + std::to_string(shape.k) + " x " + std::to_string(shape.n) +
          ", got \"" + what + "\"; check the installed libdnnl2");
}

class DnnlMatmul final : public Matmul {
public:
  DnnlMatmul(const MatmulShape &shape, const dnnl::engine &engine,
             const dnnl::stream &stream, Workspace &workspace)
      : shape_(shape), stream_(stream), workspace_(workspace) {
    using namespace dnnl;
    auto layout = [](int64_t rows, int64_t columns, DType dtype,
                     bool transposed) {
      return memory::desc({rows, columns},
                          dtype == DType::BF16 ? memory::data_type::bf16
                                               : memory::data_type::f32,
                          transposed ? memory::dims{1, rows}
                                     : memory::dims{columns, 1});
    };
    memory::desc a = layout(shape.m, shape.k, shape.from, shape.transposeA);
    memory::desc b = layout(shape.k, shape.n, shape.from, shape.transposeB);
    memory::desc c = layout(shape.m, shape.n, shape.to, false);
    primitive_attr attributes;
    attributes.set_scratchpad_mode(scratchpad_mode::user);
    if (shape.accumulate) {
      post_ops after;
      after.append_sum(1.0f);
      attributes.set_post_ops(after);
    }
    matmul::primitive_desc description(matmul::desc(a, b, c), attributes,
                                       engine);
    primitive_ = matmul(description);
    memory::desc scratch = description.scratchpad_desc();
    workspace_.reserve(static_cast<int64_t>(scratch.get_size()));
    hasScratch_ = scratch.get_size() > 0;
    a_ = memory(a, engine, nullptr);
    b_ = memory(b, engine, nullptr);
    c_ = memory(c, engine, nullptr);
    scratch_ = memory(scratch, engine, nullptr);
    arguments_[0] = {DNNL_ARG_SRC, a_.get()};
    arguments_[1] = {DNNL_ARG_WEIGHTS, b_.get()};
    arguments_[2] = {DNNL_ARG_DST, c_.get()};
    arguments_[3] = {DNNL_ARG_SCRATCHPAD, scratch_.get()};
  }

  Status run(const void *a, const void *b, void *c, float factor) override {
    RECKON_CHECK(factor == 1.0f);
    auto bind = [](dnnl::memory &memory, const void *data) {
      return dnnl_memory_set_data_handle(memory.get(),
                                         const_cast<void *>(data));
    };
    dnnl_status_t status = bind(a_, a);
    if (status == dnnl_success)
      status = bind(b_, b);
    if (status == dnnl_success)
      status = bind(c_, c);
    if (status == dnnl_success && hasScratch_)
      status = bind(scratch_, workspace_.data());
    if (status == dnnl_success)
      status = dnnl_primitive_execute(primitive_.get(), stream_.get(),
                                      hasScratch_ ? 4 : 3, arguments_);
    if (status == dnnl_success)
      status = dnnl_stream_wait(stream_.get());
    if (status != dnnl_success)
      return dnnlError(dnnl_status2str(status), shape_);
    return Status::success();
  }

private:
  MatmulShape shape_;
  dnnl::stream stream_;
  Workspace &workspace_;
  dnnl::primitive primitive_;
  dnnl::memory a_, b_, c_, scratch_;
  dnnl_exec_arg_t arguments_[4];
  bool hasScratch_ = false;
};

class DnnlCache final : public MatmulCache {
public:
  DnnlCache(Workspace &workspace, Isa isa, Parallel parallel)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_),
        workspace_(workspace), nativeBf16_(hasBf16(isa)),
        blocked_{*this, blocks_, *rowKernels(isa), parallel} {}

  Result<Matmul *> get(const MatmulShape &shape) override {
    auto found = products_.find(shape);
    if (found != products_.end())
      return found->second.get();
    bool narrow = shape.from == DType::BF16;
    if (narrow ? !nativeBf16_ : shape.from != DType::F32) {
      auto made = makeBlockedMatmul(shape, blocked_);
      if (!made)
        return made.error();
      return (products_[shape] = std::move(*made)).get();
    }
    try {
      auto made =
          std::make_unique<DnnlMatmul>(shape, engine_, stream_, workspace_);
      Matmul *matmul = made.get();
      products_[shape] = std::move(made);
      return matmul;
    } catch (const dnnl::error &error) {
      return dnnlError(error.what(), shape);
    }
  }

  int64_t blockBytes() const override { return blocks_.bytes(); }

private:
  /// oneDNN's own view counts: an earlier cache may have limited it.
  static bool hasBf16(Isa isa) {
    int has = dnnl_get_effective_cpu_isa(); // a set of bits
    int needs = dnnl_cpu_isa_avx512_core_bf16;
    return isa == Isa::Avx512 && (has & needs) == needs;
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  Workspace &workspace_;
  Workspace blocks_;
  bool nativeBf16_;
  BlockedContext blocked_;
  std::map<MatmulShape, std::unique_ptr<Matmul>> products_;
};

} // namespace

std::unique_ptr<MatmulCache> MatmulCache::create(Workspace &workspace, Isa isa,
                                                 Parallel parallel) {
  // Fails without effect once oneDNN has looked at the processor.
  switch (isa) {
  case Isa::Baseline:
    (void)dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41);
    break;
  case Isa::Avx2:
    (void)dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
    break;
  case Isa::Avx512:
    break;
  }
  return std::make_unique<DnnlCache>(workspace, isa, parallel);
}

} // namespace reckon::device
