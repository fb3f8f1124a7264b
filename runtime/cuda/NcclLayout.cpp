//===- NcclLayout.cpp - which NCCL communicators there are, and in order --===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/NcclLayout.h"

#include "runtime/comm/Control.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>

namespace reckon::cuda {

namespace {

/// FNV-1a over the ranks: finds differences, resists nobody.
uint64_t digestOf(const std::vector<int> &ranks) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (int rank : ranks)
    for (int shift = 0; shift < 32; shift += 8) {
      hash ^= static_cast<uint8_t>(static_cast<uint32_t>(rank) >> shift);
      hash *= 0x100000001b3u;
    }
  return hash;
}

template <typename T> void put(std::string &bytes, T value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
}

class Reader {
public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  bool atEnd() const { return bytes_.empty(); }
  bool good() const { return good_; }
  template <typename T> T take() {
    T value{};
    std::string_view from = bytes(sizeof value);
    if (good_)
      std::memcpy(&value, from.data(), sizeof value);
    return value;
  }
  std::string_view bytes(size_t count) {
    good_ &= count <= bytes_.size();
    if (!good_)
      return bytes_ = {};
    std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }

private:
  std::string_view bytes_;
  bool good_ = true;
};

/// What tells two communicators apart: their kind, name, tag and ranks.
using Key = std::tuple<bool, std::string, uint32_t, uint64_t>;

std::string describe(const Key &key) {
  return (std::get<0>(key) ? "channel '" : "group '") + std::get<1>(key) + "'";
}

struct Told {
  std::vector<std::pair<Key, std::vector<int>>> requests; ///< empty: not first
};

bool decode(std::string_view bytes, Told &told) {
  Reader in(bytes);
  while (!in.atEnd() && in.good()) {
    auto channel = in.take<uint8_t>();
    auto tag = in.take<uint32_t>();
    auto digest = in.take<uint64_t>();
    std::string name(in.bytes(in.take<uint32_t>()));
    auto count = in.take<uint32_t>();
    std::string_view raw = in.bytes(size_t{count} * sizeof(int32_t));
    std::vector<int> ranks(in.good() ? count : 0);
    if (!ranks.empty())
      std::memcpy(ranks.data(), raw.data(), raw.size());
    told.requests.emplace_back(Key(channel != 0, std::move(name), tag, digest),
                               std::move(ranks));
  }
  return in.good();
}

/// Large communicators first: they fit only early rounds, small ones fill what
/// these leave free.
bool before(const NcclRequest &a, const NcclRequest &b) {
  return std::forward_as_tuple(b.ranks.size(), a.channel, a.name, a.tag,
                               a.ranks) <
         std::forward_as_tuple(a.ranks.size(), b.channel, b.name, b.tag,
                               b.ranks);
}

Error onlyOneSide(const Key &key, int has, int lacks) {
  return makeError(ExitCode::Mismatch,
                   "rank " + std::to_string(has) + " takes part in " +
                       describe(key) + " together with rank " +
                       std::to_string(lacks) + ", but rank " +
                       std::to_string(lacks) +
                       " has none with the same ranks; start all ranks from "
                       "one plan directory");
}

} // namespace

std::string encodeRequests(int rank, const std::vector<NcclRequest> &requests) {
  std::string bytes;
  for (const NcclRequest &request : requests) {
    put<uint8_t>(bytes, request.channel);
    put<uint32_t>(bytes, request.tag);
    put<uint64_t>(bytes, digestOf(request.ranks));
    put<uint32_t>(bytes, static_cast<uint32_t>(request.name.size()));
    bytes += request.name;
    bool first = request.ranks[0] == rank;
    put<uint32_t>(bytes,
                  first ? static_cast<uint32_t>(request.ranks.size()) : 0);
    for (size_t i = 0; first && i < request.ranks.size(); ++i)
      put<int32_t>(bytes, request.ranks[i]);
  }
  return bytes;
}

const NcclMember *NcclLayout::find(const NcclRequest &request) const {
  auto at = std::find_if(
      members.begin(), members.end(),
      [&](const NcclMember &member) { return member.what == request; });
  return at == members.end() ? nullptr : &*at;
}

Result<NcclLayout> layOut(const std::vector<std::string> &told) {
  auto world = static_cast<int>(told.size());
  // Who asked for what, and who is in it by its first rank's word. Disjoint
  // communicators may have one name, but not one name and one digest.
  std::map<Key, std::set<int>> wanted;
  std::map<Key, std::vector<int>> lists;
  for (int rank = 0; rank < world; ++rank) {
    Told requests;
    if (!decode(told[static_cast<size_t>(rank)], requests))
      return makeError(ExitCode::Internal,
                       "rank " + std::to_string(rank) +
                           " sent a list of groups that cannot be read");
    for (auto &[key, ranks] : requests.requests) {
      wanted[key].insert(rank);
      if (!ranks.empty())
        lists[key] = std::move(ranks);
    }
  }
  NcclLayout layout;
  for (auto &[key, ranks] : lists) {
    for (int rank : ranks)
      if (!wanted[key].contains(rank))
        return onlyOneSide(key, ranks[0], rank);
    layout.members.push_back(
        {{std::get<0>(key), std::get<1>(key), std::get<2>(key), ranks}, 0, 0});
  }
  for (const auto &[key, ranks] : wanted) {
    auto list = lists.find(key);
    for (int rank : ranks)
      if (list == lists.end() ||
          std::find(list->second.begin(), list->second.end(), rank) ==
              list->second.end())
        return makeError(ExitCode::Mismatch,
                         "rank " + std::to_string(rank) + " takes part in " +
                             describe(key) +
                             ", but the first rank of it does not; start all "
                             "ranks from one plan directory");
  }
  std::sort(layout.members.begin(), layout.members.end(),
            [](const NcclMember &a, const NcclMember &b) {
              return before(a.what, b.what);
            });

  std::vector<int> everybody(told.size());
  std::iota(everybody.begin(), everybody.end(), 0);
  std::vector<std::vector<bool>> taken(told.size()); // by rank and round
  std::vector<int> colors;                           // used, by round
  bool parentUsed = false;
  for (NcclMember &member : layout.members) {
    if (!parentUsed && !member.what.channel && member.what.ranks == everybody) {
      parentUsed = true;
      member.round = -1;
      continue;
    }
    auto round = static_cast<size_t>(member.round);
    auto free = [&](size_t candidate) {
      return std::all_of(
          member.what.ranks.begin(), member.what.ranks.end(), [&](int rank) {
            const auto &rounds = taken[static_cast<size_t>(rank)];
            return candidate >= rounds.size() || !rounds[candidate];
          });
    };
    while (!free(round))
      ++round;
    if (round >= colors.size())
      colors.resize(round + 1, 0);
    for (int rank : member.what.ranks) {
      auto &rounds = taken[static_cast<size_t>(rank)];
      rounds.resize(std::max(rounds.size(), round + 1));
      rounds[round] = true;
    }
    member.round = static_cast<int>(round);
    member.color = colors[round]++;
  }
  layout.rounds = static_cast<int>(colors.size());
  return layout;
}

} // namespace reckon::cuda
