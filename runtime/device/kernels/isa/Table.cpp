//===- Table.cpp - the kernels of one instruction set, together -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/isa/Rows.h"

#define RECKON_TEXT2(x) #x
#define RECKON_TEXT(x) RECKON_TEXT2(x)

namespace reckon::device::RECKON_ISA {

namespace {

template <typename T>
constexpr StorageKernels<T> kernelsOf = {
    .add = Elementwise<T>::add,
    .accumulate = Elementwise<T>::accumulate,
    .rmsNorm = Norms<T>::rmsNorm,
    .rmsNormGradInput = Norms<T>::rmsNormGradInput,
    .rmsInverse = Norms<T>::rmsInverse,
    .rmsNormGradWeight = Norms<T>::rmsNormGradWeight,
    .layerNorm = Norms<T>::layerNorm,
    .layerNormGradInput = Norms<T>::layerNormGradInput,
    .layerNormStats = Norms<T>::layerNormStats,
    .layerNormGradWeight = Norms<T>::layerNormGradWeight,
    .rope = Elementwise<T>::rope,
    .swiglu = Elementwise<T>::swiglu,
    .swigluGrad = Elementwise<T>::swigluGrad,
    .gelu = Elementwise<T>::gelu,
    .geluGrad = Elementwise<T>::geluGrad,
    .rowMax = CrossEntropy<T>::rowMax,
    .rowSums = CrossEntropy<T>::rowSums,
    .crossEntropyGrad = CrossEntropy<T>::grad,
    .attentionScratch = Attention<T>::scratch,
    .attentionForward = Attention<T>::forward,
    .attentionBackward = Attention<T>::backward,
};

} // namespace

const RowKernels table = {
    .name = RECKON_TEXT(RECKON_ISA),
    .lanes = W,
    .f32 = kernelsOf<float>,
    .bf16 = kernelsOf<Bf16>,
    .widen = widen,
    .narrow = narrow,
    .sumSquares = sumSquares,
    .adamw = adamw,
};

} // namespace reckon::device::RECKON_ISA
