//===- CublasMatmul.cpp - matrix products by cuBLASLt ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// ColumnMajor.h tells how our row-major products become cuBLASLt's. 8-bit ones
// must be "TN" before Blackwell, hence transposeB alone.
//
// Equal operands give equal bits: the algorithm is the first of the heuristics'
// list, which depends on the shape, the library and the chip only, and of the
// ways to add the parts of a sum that is split over blocks, only the one is
// allowed that keeps them in f32 and adds them in a separate pass. Adding in
// place or in the output's type would round to bf16 in between.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/plugin/CublasMatmul.h"
#include "runtime/cuda/plugin/ColumnMajor.h"

#include <cublasLt.h>

#include <map>
#include <optional>
#include <string>

namespace reckon::cuda {

namespace {

using device::DType;

/// Addresses of operands are multiples of this, as the plan's tensors are of
/// 256; the fastest kernels need it.
constexpr uint32_t operandAlignment = 16;

Status checkedLt(cublasStatus_t status, const std::string &what) {
  if (status == CUBLAS_STATUS_SUCCESS)
    return Status::success();
  // What the library refuses for its shape or types is the plan's fault, the
  // rest the machine's.
  ExitCode code = status == CUBLAS_STATUS_NOT_SUPPORTED ||
                          status == CUBLAS_STATUS_INVALID_VALUE
                      ? ExitCode::Incompatible
                      : ExitCode::Environment;
  return makeError(code, "expected cuBLASLt to " + what + ", got " +
                             cublasLtGetStatusName(status) + " (" +
                             cublasLtGetStatusString(status) +
                             "); see `reckon doctor` and the GPU's log");
}

std::optional<cudaDataType_t> cudaType(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return CUDA_R_32F;
  case DType::BF16:
    return CUDA_R_16BF;
  case DType::F8E4M3:
    return CUDA_R_8F_E4M3;
  case DType::F8E5M2:
    return CUDA_R_8F_E5M2;
  default:
    return std::nullopt;
  }
}

/// "c[16, 32] f32 += a[16, 64] bf16 * b[64, 32] bf16", b transposed in memory.
std::string describe(const MatmulShape &shape) {
  auto matrix = [](const char *name, int64_t rows, int64_t columns, DType dtype,
                   bool transposed) {
    return std::string(name) + "[" + std::to_string(rows) + ", " +
           std::to_string(columns) + "] " +
           std::string(device::dtypeName(dtype)) +
           (transposed ? " transposed" : "");
  };
  return matrix("c", shape.m, shape.n, shape.c, false) +
         (shape.accumulate ? " += " : " = ") +
         matrix("a", shape.m, shape.k, shape.a, shape.transposeA) + " * " +
         matrix("b", shape.k, shape.n, shape.b, shape.transposeB);
}

/// Everything about products of one shape; all of that shape share it.
class Product {
public:
  explicit Product(const MatmulShape &shape) : shape_(shape) {}

  /// Describes the product and chooses its algorithm.
  Status open(cublasLtHandle_t handle);
  Status run(cublasLtHandle_t handle, const MatmulOperands &operands,
             void *workspace, cudaStream_t stream);

private:
  Status describeMatrices();
  Status chooseAlgorithm(cublasLtHandle_t handle);
  bool eightBit() const { return device::dtypeBytes(shape_.a) == 1; }

  template <typename T>
  Status set(cublasLtMatmulDescAttributes_t attribute, const T &value) {
    return checkedLt(cublasLtMatmulDescSetAttribute(&product_, attribute,
                                                    &value, sizeof value),
                     "describe " + describe(shape_));
  }

  MatmulShape shape_;
  cublasLtMatmulDescOpaque_t product_ = {};
  cublasLtMatrixLayoutOpaque_t a_ = {}, b_ = {}, c_ = {}; // cuBLASLt's
  cublasLtMatmulAlgo_t algorithm_ = {};
};

Status Product::open(cublasLtHandle_t handle) {
  if (!cudaType(shape_.a) || !cudaType(shape_.b) || !cudaType(shape_.c))
    return makeError(ExitCode::Incompatible,
                     "expected a matrix product of f32, bf16 or 8-bit floats, "
                     "got " +
                         describe(shape_) +
                         "; use the version that compiled the plan");
  if (eightBit() && (shape_.transposeA || !shape_.transposeB ||
                     (shape_.m | shape_.n | shape_.k) % 16 != 0))
    return makeError(ExitCode::Incompatible,
                     "expected an 8-bit product with b alone transposed and "
                     "sizes of multiples of 16, got " +
                         describe(shape_) +
                         "; use sizes that divide so, or bf16 for this linear");
  RECKON_TRY(describeMatrices());
  return chooseAlgorithm(handle);
}

Status Product::describeMatrices() {
  const std::string what = "describe " + describe(shape_);
  // Sums are f32 for every type; with f32 operands the products too, for TF32
  // would need CUBLAS_COMPUTE_32F_FAST_TF32.
  RECKON_TRY(checkedLt(
      cublasLtMatmulDescInit(&product_, CUBLAS_COMPUTE_32F, CUDA_R_32F), what));
  const ColumnMajorProduct product = columnMajor(shape_);
  auto operation = [](const ColumnMajor &matrix) {
    return static_cast<int32_t>(matrix.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  };
  RECKON_TRY(set(CUBLASLT_MATMUL_DESC_TRANSA, operation(product.a)));
  RECKON_TRY(set(CUBLASLT_MATMUL_DESC_TRANSB, operation(product.b)));
  if (eightBit())
    // Hopper's tensor cores keep fewer bits of a sum of 8-bit products than f32
    // has; without this it is moved to f32 registers every few products.
    RECKON_TRY(set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, int8_t{0}));

  auto layout = [&](cublasLtMatrixLayoutOpaque_t &to, const ColumnMajor &from,
                    DType dtype) {
    return checkedLt(cublasLtMatrixLayoutInit(
                         &to, *cudaType(dtype),
                         static_cast<uint64_t>(from.rows),
                         static_cast<uint64_t>(from.columns), from.rows),
                     what);
  };
  RECKON_TRY(layout(a_, product.a, shape_.b));
  RECKON_TRY(layout(b_, product.b, shape_.a));
  return layout(c_, product.c, shape_.c);
}

Status Product::chooseAlgorithm(cublasLtHandle_t handle) {
  const std::string what = "have an algorithm for " + describe(shape_);
  cublasLtMatmulPreferenceOpaque_t preference = {};
  RECKON_TRY(checkedLt(cublasLtMatmulPreferenceInit(&preference), what));
  auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute,
                    auto value) {
    return checkedLt(cublasLtMatmulPreferenceSetAttribute(
                         &preference, attribute, &value, sizeof value),
                     what);
  };
  RECKON_TRY(prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                    static_cast<uint64_t>(cublasWorkspaceBytes)));
  RECKON_TRY(
      prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
             static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)));
  for (auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                         CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                         CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                         CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    RECKON_TRY(prefer(attribute, operandAlignment));
  cublasLtMatmulHeuristicResult_t best = {};
  int found = 0;
  RECKON_TRY(checkedLt(
      cublasLtMatmulAlgoGetHeuristic(handle, &product_, &a_, &b_, &c_, &c_,
                                     &preference, 1, &best, &found),
      what));
  if (found == 0)
    return checkedLt(CUBLAS_STATUS_NOT_SUPPORTED, what);
  RECKON_TRY(checkedLt(best.state, what));
  algorithm_ = best.algo;
  return Status::success();
}

Status Product::run(cublasLtHandle_t handle, const MatmulOperands &operands,
                    void *workspace, cudaStream_t stream) {
  for (const void *address :
       {operands.a, operands.b, static_cast<const void *>(operands.c)})
    if (reinterpret_cast<uintptr_t>(address) % operandAlignment != 0)
      return makeError(ExitCode::Incompatible,
                       "expected operands at multiples of " +
                           std::to_string(operandAlignment) + " bytes, got " +
                           describe(shape_) +
                           " with another one; compile the plan again");
  if (eightBit()) {
    // The roles of a and b are exchanged, see above.
    RECKON_CHECK(operands.scaleA && operands.scaleB);
    RECKON_TRY(set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, operands.scaleB));
    RECKON_TRY(set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, operands.scaleA));
  }
  const float one = 1.0f, beta = shape_.accumulate ? 1.0f : 0.0f;
  cublasStatus_t status = cublasLtMatmul(
      handle, &product_, &one, operands.b, &a_, operands.a, &b_, &beta,
      operands.c, &c_, operands.c, &c_, &algorithm_, workspace,
      static_cast<size_t>(cublasWorkspaceBytes), stream);
  return status == CUBLAS_STATUS_SUCCESS
             ? Status::success()
             : checkedLt(status, "start " + describe(shape_));
}

class CublasMatmul final : public Matmul {
public:
  explicit CublasMatmul(Workspace &workspace) : workspace_(workspace) {}
  ~CublasMatmul() override {
    if (handle_)
      (void)cublasLtDestroy(handle_);
  }
  Status open() { return checkedLt(cublasLtCreate(&handle_), "start"); }

  Result<std::unique_ptr<PreparedMatmul>> prepare(const MatmulShape &shape,
                                                  int planStream) override;

private:
  /// One call's share: the product and the scratch of its stream.
  class Prepared final : public PreparedMatmul {
  public:
    Prepared(CublasMatmul &owner, Product &product, int planStream)
        : owner_(owner), product_(product), planStream_(planStream) {}
    Status run(const MatmulOperands &operands, cudaStream_t stream) override {
      return product_.run(owner_.handle_, operands,
                          owner_.workspace_.data(planStream_), stream);
    }

  private:
    CublasMatmul &owner_;
    Product &product_;
    int planStream_;
  };

  Workspace &workspace_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<MatmulShape, std::unique_ptr<Product>> products_;
};

Result<std::unique_ptr<PreparedMatmul>>
CublasMatmul::prepare(const MatmulShape &shape, int planStream) {
  RECKON_TRY(workspace_.reserve(planStream, cublasWorkspaceBytes));
  std::unique_ptr<Product> &product = products_[shape];
  if (!product) {
    auto made = std::make_unique<Product>(shape);
    RECKON_TRY(made->open(handle_));
    product = std::move(made);
  }
  return std::unique_ptr<PreparedMatmul>(
      std::make_unique<Prepared>(*this, *product, planStream));
}

} // namespace

Result<std::unique_ptr<Matmul>> makeCublasMatmul(Workspace &workspace) {
  auto made = std::make_unique<CublasMatmul>(workspace);
  RECKON_TRY(made->open());
  return std::unique_ptr<Matmul>(std::move(made));
}

} // namespace reckon::cuda
