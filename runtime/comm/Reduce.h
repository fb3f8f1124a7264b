//===- Reduce.h - the arithmetic of reductions ----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Element-wise kernels of the rings. An accumulator is fp32 for sums of bf16
// and f16, else the element type itself. The left operand of a reduction is
// always the accumulator, so the order of a sum is the order of the calls.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_COMM_REDUCE_H
#define RECKON_RUNTIME_COMM_REDUCE_H

#include "runtime/comm/Communicator.h"

namespace reckon::comm {

/// Type in which partial results are kept and travel.
DType accumulatorType(DType type, Reduction reduction);

/// Conversions; rounding is to nearest, ties to even; NaN stays NaN.
float fromBf16(uint16_t bits);
uint16_t toBf16(float value);
float fromF16(uint16_t bits);
uint16_t toF16(float value);

/// acc[i] = value[i], in the accumulator's type.
void widen(void *acc, const void *value, size_t n, DType type,
           Reduction reduction);

/// acc[i] = acc[i] op value[i].
void accumulate(void *acc, const void *value, size_t n, DType type,
                Reduction reduction);

/// out[i] = acc[i], rounded to `type`.
void narrow(void *out, const void *acc, size_t n, DType type,
            Reduction reduction);

/// out[i] = acc[i] op value[i], rounded to `type`. out may be value.
void accumulateInto(void *out, const void *acc, const void *value, size_t n,
                    DType type, Reduction reduction);

/// out[i] = first[i] op value[i], both in `type`. out may be value.
void combine(void *out, const void *first, const void *value, size_t n,
             DType type, Reduction reduction);

/// acc[i] = first[i] op value[i] where `first`, in `type`, lies at the end of
/// the same buffer as `acc` (see firstHopOffset()): a ring's first hop travels
/// in the element type and is widened where it was received. A part of such a
/// buffer may be expanded after all parts before it.
void expand(void *acc, const void *first, const void *value, size_t n,
            DType type, Reduction reduction);

/// Where in a buffer of n accumulators that hop is received, in bytes.
size_t firstHopOffset(size_t n, DType type, Reduction reduction);

} // namespace reckon::comm

#endif // RECKON_RUNTIME_COMM_REDUCE_H
