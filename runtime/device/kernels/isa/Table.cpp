//===- Table.cpp - the kernels of one instruction set, together -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/isa/Rows.h"

#define RECKON_TEXT2(x) #x
#define RECKON_TEXT(x) RECKON_TEXT2(x)

namespace reckon::device::RECKON_ISA {

const RowKernels table = {
    .name = RECKON_TEXT(RECKON_ISA),
    .lanes = W,
    .add = add,
    .rmsNorm = rmsNorm,
    .rmsNormGradInput = rmsNormGradInput,
    .rmsInverse = rmsInverse,
    .rmsNormGradWeight = rmsNormGradWeight,
    .rope = rope,
    .swiglu = swiglu,
    .swigluGrad = swigluGrad,
    .rowMax = rowMax,
    .rowSums = rowSums,
    .crossEntropyGrad = crossEntropyGrad,
    .sumSquares = sumSquares,
    .adamw = adamw,
    .attentionScratch = attentionScratch,
    .attentionForward = attentionForward,
    .attentionBackward = attentionBackward,
};

} // namespace reckon::device::RECKON_ISA
