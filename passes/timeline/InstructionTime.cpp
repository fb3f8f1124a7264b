//===- InstructionTime.cpp - predicted time of one instruction ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/timeline/InstructionTime.h"

#include "passes/listing/PlanText.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::plan;
using namespace reckon::timeline;

using Buffers = std::vector<std::unique_ptr<BufferT>>;

InstructionTime::InstructionTime(model::Job job)
    : job_(std::move(job)),
      efficiency_(model::efficiencyFor(job_, model::efficiencyTable())),
      kernels_(job_, efficiency_), links_(job_, efficiency_) {}

static double bytesOf(const Buffers &buffers) {
  double bytes = 0;
  for (const auto &buffer : buffers)
    bytes += static_cast<double>(listing::bufferBytes(*buffer));
  return bytes;
}

static double elementsOf(const BufferT &buffer) {
  return static_cast<double>(elementCount(buffer.shape));
}

double InstructionTime::seconds(const StagePlanT &plan,
                                const InstructionT &op) const {
  switch (op.op) {
  case Opcode::record:
  case Opcode::wait:
    return 0;
  case Opcode::copy:
    return efficiency_.factor *
           kernels_.traffic(bytesOf(op.inputs) + bytesOf(op.outputs));
  case Opcode::launch:
    return efficiency_.factor * launch(plan, op);
  default:
    return efficiency_.factor * collective(plan, op);
  }
}

double InstructionTime::launch(const StagePlanT &plan,
                               const InstructionT &op) const {
  // The first rank's sizes stand for all.
  Coord origin;
  origin.pp = plan.stage;
  auto arg = [&](size_t i) {
    return static_cast<double>(evalExpr(op.args[i], origin));
  };
  switch (op.kernel) {
  case Kernel::linear:
    return kernels_.matmul(elementsOf(*op.inputs[0]) / arg(1), arg(0), arg(1),
                           false);
  case Kernel::linear_grad_input:
    return kernels_.matmul(elementsOf(*op.inputs[0]) / arg(0), arg(1), arg(0),
                           false);
  case Kernel::linear_grad_weight:
    return kernels_.matmul(arg(1), arg(0), elementsOf(*op.inputs[0]) / arg(0),
                           false, 1, efficiency_.weightGradBytes);
  case Kernel::linear_fp8:
    // A weight's gradient is in f32.
    return kernels_.matmul(
        arg(0), arg(1), arg(2), true, 1,
        op.outputs[0]->dtype == DType::f32 ? efficiency_.weightGradBytes : 0);
  case Kernel::attention:
  case Kernel::attention_grad: {
    bool forward = op.kernel == Kernel::attention;
    double heads = arg(0), width = arg(2), sequence = arg(3);
    double tokens = elementsOf(*op.inputs[0]) / (heads * width);
    return (forward ? kernels_.attentionForward(tokens, sequence, heads, width,
                                                width)
                    : kernels_.attentionBackward(tokens, sequence, heads, width,
                                                 width))
        .total();
  }
  // Of the table, only the rows of the tokens move.
  case Kernel::embedding:
    return kernels_.traffic(2 * bytesOf(op.outputs));
  case Kernel::embedding_grad:
    return kernels_.traffic(3 * bytesOf(op.inputs));
  default:
    return kernels_.traffic(bytesOf(op.inputs) + bytesOf(op.outputs));
  }
}

double InstructionTime::collective(const StagePlanT &plan,
                                   const InstructionT &op) const {
  const GroupT &group = *plan.groups[op.group];
  int64_t stride = 1;
  for (Axis axis : kRankOrder) {
    if (std::find(group.axes.begin(), group.axes.end(), axis) !=
        group.axes.end())
      break;
    stride *= axisSize(*plan.mesh, axis);
  }
  model::Group ranks{listing::groupSize(group, *plan.mesh), stride};
  double whole = bytesOf(op.op == Opcode::all_gather ? op.outputs : op.inputs);
  bool tensor = group.axes == std::vector<Axis>{Axis::tp};
  double pass =
      tensor ? links_.tensorPass(ranks, whole) : links_.pass(ranks, whole);
  return op.op == Opcode::all_reduce ? 2 * pass : pass;
}
