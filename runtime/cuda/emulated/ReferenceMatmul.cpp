//===- ReferenceMatmul.cpp - an emulated device's matrix products ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/emulated/ReferenceMatmul.h"

#include "runtime/base/Fp8Layout.h"
#include "runtime/cuda/Check.h"
#include "runtime/device/kernels/CpuMatmul.h"

#include <omp.h>
#include <string>

namespace reckon::cuda {

namespace {

using device::DType;

/// One product at the head of its stream. It runs on the host's stack and not
/// as a kernel: libraries need more of it than a fibre has.
class Product final : public ExternalOperation {
public:
  Product(device::Matmul &matmul, const MatmulOperands &operands)
      : matmul_(matmul), operands_(operands) {}

  State advance() override {
    float factor =
        operands_.scaleA ? *operands_.scaleA * *operands_.scaleB : 1.0f;
    Status status = matmul_.run(operands_.a, operands_.b, operands_.c, factor);
    if (status.ok())
      return State::Done;
    failure_ = status.error().message;
    return State::Failed;
  }
  const char *failure() const override { return failure_.c_str(); }

private:
  device::Matmul &matmul_;
  MatmulOperands operands_;
  std::string failure_;
};

class ReferenceProduct final : public PreparedMatmul {
public:
  explicit ReferenceProduct(device::Matmul &matmul) : matmul_(matmul) {}

  Status run(const MatmulOperands &operands, cudaStream_t stream) override {
    return checked(enqueueExternal(stream,
                                   [&matmul = matmul_, operands] {
                                     return std::make_unique<Product>(matmul,
                                                                      operands);
                                   }),
                   "a matrix product");
  }

private:
  device::Matmul &matmul_;
};

device::Isa bestIsa() {
  for (device::Isa isa : {device::Isa::Avx512, device::Isa::Avx2})
    if (device::isaSupported(isa))
      return isa;
  return device::Isa::Baseline;
}

class ReferenceMatmul final : public Matmul {
public:
  ReferenceMatmul()
      : products_(device::MatmulCache::create(
            workspace_, bestIsa(), device::Parallel(omp_get_max_threads()))) {}

  Result<std::unique_ptr<PreparedMatmul>> prepare(const MatmulShape &shape,
                                                  int) override {
    auto isCode = [](DType type) {
      return type == DType::F8E4M3 || type == DType::F8E5M2;
    };
    bool codes = isCode(shape.a) && isCode(shape.b) && !shape.transposeA &&
                 shape.transposeB && shape.k == fp8Padded(shape.k);
    bool plain = codes || (shape.a == shape.b &&
                           (shape.a == DType::F32 || shape.a == DType::BF16));
    bool result = shape.c == DType::F32 ||
                  (shape.a != DType::F32 && shape.c == DType::BF16);
    if (!plain || !result || (shape.accumulate && shape.c != DType::F32))
      return makeError(ExitCode::Incompatible,
                       "expected a product of f32, bf16 or fp8 operands, got " +
                           std::string(device::dtypeName(shape.a)) + " by " +
                           std::string(device::dtypeName(shape.b)) + " into " +
                           std::string(device::dtypeName(shape.c)) +
                           "; use another device or precision");
    auto product = products_->get({.m = shape.m,
                                   .n = shape.n,
                                   .k = shape.k,
                                   .from = shape.a,
                                   .to = shape.c,
                                   .transposeA = shape.transposeA,
                                   .transposeB = shape.transposeB,
                                   .accumulate = shape.accumulate,
                                   .fromB = shape.b});
    if (!product)
      return product.error();
    return std::unique_ptr<PreparedMatmul>(
        std::make_unique<ReferenceProduct>(**product));
  }

private:
  device::Workspace workspace_;
  std::unique_ptr<device::MatmulCache> products_;
};

} // namespace

std::unique_ptr<Matmul> makeReferenceMatmul() {
  return std::make_unique<ReferenceMatmul>();
}

} // namespace reckon::cuda
