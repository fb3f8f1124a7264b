//===- CudaListing.cpp - plan.cu.txt: what a plan issues on CUDA ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/listing/CudaListing.h"

#include "passes/listing/CudaCalls.h"
#include "passes/listing/PlanText.h"

#include <algorithm>
#include <array>

using namespace reckon;
using namespace reckon::listing;
using namespace reckon::plan;

namespace {

/// Where the remark on the right begins, if the call is not longer.
constexpr size_t kRemarkColumn = 118;

std::string padLeft(const std::string &text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text
                             : text;
}
std::string padRight(const std::string &text, size_t width) {
  return text.size() < width ? text + std::string(width - text.size(), ' ')
                             : text;
}

std::string plural(size_t count, const char *what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string meshText(const MeshT &mesh) {
  std::string text = std::to_string(worldSize(mesh)) + " ranks =";
  for (Axis axis : kRankOrder)
    text += std::string(axis == Axis::tp ? " " : " x ") + axisName(axis) + " " +
            std::to_string(axisSize(mesh, axis));
  return text + " (tp fastest)";
}

/// `text`, then `remark` behind a slash-slash.
std::string remarked(std::string text, const std::string &remark) {
  if (remark.empty())
    return text + "\n";
  return padRight(text, kRemarkColumn) + "  // " + remark + "\n";
}

/// One stage; the same for each of its ranks.
class StageListing {
public:
  explicit StageListing(const StagePlanT &plan) : plan_(plan) {
    for (const auto &stream : plan.streams)
      streamWidth_ = std::max(streamWidth_, stream->name.size() + 2);
  }

  std::string text() const {
    std::string out = streams() + communicators() + channels() + arena();
    for (const auto &fragment : plan_.fragments)
      out += this->fragment(*fragment);
    for (const auto &list : plan_.lists)
      out += this->list(*list);
    return out;
  }

private:
  std::string streams() const {
    std::string out = "streams\n";
    for (const auto &stream : plan_.streams)
      out += "  cudaStream_t " + stream->name + "\n";
    return out;
  }

  std::string communicators() const {
    std::string out = plan_.groups.empty() ? "" : "communicators\n";
    for (const auto &group : plan_.groups) {
      out +=
          "  ncclComm_t " + group->name + ": " +
          plural(static_cast<size_t>(groupSize(*group, *plan_.mesh)), "rank") +
          " along";
      for (Axis axis : group->axes)
        out += std::string(" ") + axisName(axis);
      for (const auto &filter : group->filters) {
        out += std::string(", only ") + axisName(filter->axis);
        for (size_t i = 0; i < filter->values.size(); ++i)
          out += (i ? " or " : " ") + std::to_string(filter->values[i]);
      }
      out += "\n";
    }
    return out;
  }

  std::string channels() const {
    std::string out = plan_.channels.empty() ? "" : "channels\n";
    for (const auto &channel : plan_.channels)
      out += "  ncclComm_t " + channel->name + ": stage " +
             std::to_string(channel->source_stage) + " -> stage " +
             std::to_string(channel->target_stage) + ", number " +
             std::to_string(channel->id) + "\n";
    return out;
  }

  /// States by role, then slots and lanes, in order of their first byte.
  std::string arena() const {
    struct Part {
      uint64_t offset = 0, bytes = 0;
      std::string what;
    };
    std::vector<Part> parts;
    std::array<size_t, size_t(Role::MAX) + 1> counts{};
    std::array<Part, size_t(Role::MAX) + 1> roles;
    for (const auto &state : plan_.states) {
      auto role = static_cast<size_t>(state->role);
      Part &part = roles[role];
      part.offset =
          counts[role] ? std::min(part.offset, state->offset) : state->offset;
      part.bytes += state->bytes;
      ++counts[role];
    }
    for (size_t role = 0; role < roles.size(); ++role)
      if (counts[role]) {
        roles[role].what =
            plural(counts[role], EnumNameRole(static_cast<Role>(role)));
        parts.push_back(roles[role]);
      }
    for (const auto &cls : plan_.slot_classes)
      if (cls->count)
        parts.push_back({cls->offset, cls->bytes * cls->count,
                         "slots " + cls->name + ", " +
                             std::to_string(cls->count) + " of " +
                             humanBytes(cls->bytes)});
    for (const auto &lane : plan_.lanes)
      parts.push_back({lane->offset, lane->bytes, "lane " + lane->name});
    std::stable_sort(
        parts.begin(), parts.end(),
        [](const Part &a, const Part &b) { return a.offset < b.offset; });
    std::string out = "arena, " + std::to_string(plan_.arena_bytes) +
                      " bytes (" + humanBytes(plan_.arena_bytes) + ")\n";
    for (const Part &part : parts)
      out += "  @" + padLeft(std::to_string(part.offset), 13) + "  " +
             padLeft(humanBytes(part.bytes), 10) + "  " + part.what + "\n";
    return out;
  }

  std::string line(const std::string &number, uint32_t stream,
                   const std::string &call) const {
    return padLeft(number, 6) + "  " +
           padRight("[" + plan_.streams[stream]->name + "]", streamWidth_) +
           "  " + call;
  }

  std::string fragment(const FragmentT &fragment) const {
    std::string out = "\nfragment " + fragment.name + ": " +
                      plural(fragment.instructions.size(), "instruction") +
                      ", home stream " +
                      plan_.streams[fragment.home_stream]->name;
    if (!plan_.lanes.empty())
      out += ", lane " + plan_.lanes[fragment.lane]->name;
    for (size_t i = 0; i < fragment.slots.size(); ++i)
      out += (i ? ", " : ", slots ") + fragment.slots[i]->name;
    out += "\n";
    size_t number = 0;
    for (const auto &op : fragment.instructions) {
      std::vector<std::string> calls = cudaCall(plan_, fragment, *op);
      std::string remark = op->layer;
      if (!op->source.empty())
        remark += (remark.empty() ? "" : " ") + op->source;
      out += remarked(line(std::to_string(number++), op->stream, calls[0]),
                      remark);
      for (size_t i = 1; i < calls.size(); ++i)
        out += line("", op->stream, "  " + calls[i]) + "\n";
    }
    return out;
  }

  static std::string listEvent(uint32_t event) {
    return "E" + std::to_string(event);
  }

  /// `output[1]+`: the plus acquires the slot, a minus releases it.
  std::string slot(const SlotBindingT &binding) const {
    return plan_.slot_classes[binding.slot_class]->name + "[" +
           std::to_string(binding.index) + "]" + (binding.acquire ? "+" : "") +
           (binding.release ? "-" : "");
  }

  std::string bindings(const ActionT &action) const {
    std::string out;
    for (const auto &binding : action.bindings)
      out += (out.empty() ? "" : ", ") + slot(*binding);
    return out;
  }

  /// A buffer of an action, whose slot is bound.
  std::string actionPlace(const ActionT &action, const BufferT &buffer) const {
    if (buffer.region != Region::slot)
      return placeText(plan_, buffer, nullptr);
    std::string text = slot(*action.bindings[buffer.index]);
    std::string offset = exprText(buffer.offset);
    return offset == "0" ? text : text + " at " + offset;
  }

  std::vector<std::string> actionCalls(const ActionT &action) const {
    const std::string &stream = plan_.streams[action.stream]->name;
    switch (action.kind) {
    case ActionKind::run: {
      std::string bound = bindings(action);
      return {"cudaGraphLaunch(" + plan_.fragments[action.fragment]->name +
              (bound.empty() ? "" : " {" + bound + "}") + ", " + stream + ")"};
    }
    case ActionKind::load: {
      std::vector<std::string> calls;
      for (const auto &buffer : action.buffers)
        calls.push_back("cudaMemcpyAsync(" + actionPlace(action, *buffer) +
                        ", pinned staging, " +
                        std::to_string(bufferBytes(*buffer)) +
                        ", cudaMemcpyHostToDevice, " + stream + ")");
      return calls;
    }
    case ActionKind::send:
    case ActionKind::recv: {
      bool sends = action.kind == ActionKind::send;
      const ChannelT &channel = *plan_.channels[action.channel];
      std::vector<std::string> calls;
      for (const auto &buffer : action.buffers)
        calls.push_back(std::string(sends ? "ncclSend(" : "ncclRecv(") +
                        actionPlace(action, *buffer) + ", " +
                        std::to_string(elementCount(buffer->shape)) + ", " +
                        ncclType(buffer->dtype) + ", stage " +
                        std::to_string(sends ? channel.target_stage
                                             : channel.source_stage) +
                        ", " + channel.name + ", " + stream + ")");
      if (calls.size() > 1)
        calls.insert(calls.begin(),
                     "ncclGroup of " + std::to_string(calls.size()));
      return calls;
    }
    }
    return {};
  }

  std::string list(const ActionListT &list) const {
    std::string out = "\nlist " + list.name + ": " +
                      plural(list.actions.size(), "action") + ", " +
                      plural(list.events, "event") +
                      "; slots: + acquires, - releases\n";
    size_t number = 0;
    for (const auto &action : list.actions) {
      const std::string &stream = plan_.streams[action->stream]->name;
      std::vector<std::string> calls = actionCalls(*action);
      if (calls.empty())
        calls.push_back("nothing to move");
      size_t main = action->waits.size();
      for (size_t i = main; i-- > 0;)
        calls.insert(calls.begin(), "cudaStreamWaitEvent(" + stream + ", " +
                                        listEvent(action->waits[i]) + ")");
      for (uint32_t event : action->records)
        calls.push_back("cudaEventRecord(" + listEvent(event) + ", " + stream +
                        ")");
      for (size_t i = 0; i < calls.size(); ++i)
        out += remarked(
            line(i ? "" : std::to_string(number), action->stream, calls[i]),
            i == main ? action->label : "");
      ++number;
    }
    return out;
  }

  const StagePlanT &plan_;
  size_t streamWidth_ = 0;
};

} // namespace

std::string listing::cudaListing(const Manifest &manifest,
                                 std::span<const StagePlanT *const> stages) {
  std::string out =
      "// " + manifest.name +
      ": the CUDA and NCCL calls of this plan, to read. Nothing executes this "
      "text;\n// the runtime makes the calls from the stage files.\n"
      "//   kernel<<<stream>>>(inputs -> outputs; constants)   our own "
      "kernels\n"
      "//   cublasLtMatmul(A, B -> C; ...)   row-major; beta 1 adds to C\n"
      "//   cudnnBackendExecute<sdpa>        our kernel attention where there "
      "is no cuDNN\n"
      "//   name+bytes type[shape]           a buffer of a state, a bound slot "
      "or the lane\n"
      "//   e3, E3                           an event of the fragment, of the "
      "list\n"
      "// " +
      meshText(manifest.mesh);
  if (manifest.cluster.nodes)
    out += " on " + plural(manifest.cluster.nodes, "node") + " of " +
           std::to_string(manifest.cluster.gpusPerNode) + " " +
           manifest.cluster.accelerator;
  out += "\n";
  for (const StagePlanT *stage : stages) {
    out +=
        "\n==== stage " + std::to_string(stage->stage) + " of " +
        std::to_string(stage->mesh->pp) + ", " + stage->precision +
        ": the same for its " +
        plural(static_cast<size_t>(worldSize(*stage->mesh) / stage->mesh->pp),
               "rank") +
        " ====\n";
    out += StageListing(*stage).text();
  }
  return out;
}
