//===- Control.cpp - the star of control connections around rank 0 --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/Control.h"

#include "runtime/comm/Communicator.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/socket.h>

namespace reckon::comm {
namespace {

/// A peer that takes nothing for this long is as good as dead; its own
/// connections tell the rest.
constexpr double kSendSeconds = 10;

void appendBytes(std::string &out, std::string_view bytes) {
  auto length = static_cast<uint32_t>(bytes.size());
  out.append(reinterpret_cast<const char *>(&length), sizeof length);
  out.append(bytes);
}

} // namespace

Error toError(const Notice &notice) {
  return makeError(static_cast<ExitCode>(notice.code), notice.text);
}

Error diedError(int rank) {
  return makeError(ExitCode::DeadPeer,
                   "rank " + std::to_string(rank) +
                       " died: it closed its connections without a word; see "
                       "the end of its log");
}

// What diedError() and the notices of ranks that stop begin with.
std::optional<int> blamedRank(const Error &error) {
  int rank = 0, used = 0;
  if (error.code != ExitCode::DeadPeer ||
      std::sscanf(error.message.c_str(), "rank %d %n", &rank, &used) != 1 ||
      used == 0)
    return std::nullopt;
  std::string_view rest = std::string_view(error.message).substr(used);
  if (!rest.starts_with("died") && !rest.starts_with("stopped"))
    return std::nullopt;
  return rank;
}

std::string listRanks(const std::vector<int> &ranks) {
  constexpr size_t kShown = 16;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < std::min(ranks.size(), kShown); ++i)
    text += (i ? ", " : "") + std::to_string(ranks[i]);
  if (ranks.size() > kShown)
    text += " and " + std::to_string(ranks.size() - kShown) + " more";
  return text;
}

Control::Control(int rank, int world) : rank_(rank), world_(world) {
  // Rank 0 holds peers 1 .. world - 1, all others only rank 0.
  size_t count = rank == 0 ? static_cast<size_t>(world - 1) : 1;
  peers_.resize(count);
  for (size_t i = 0; i < count; ++i)
    peers_[i].rank = rank == 0 ? static_cast<int>(i) + 1 : 0;
  entries_.resize(count);
  gathered_.resize(static_cast<size_t>(world));
}

void Control::setPeer(int peer, Fd fd) {
  peers_[rank_ == 0 ? static_cast<size_t>(peer) - 1 : 0].fd = std::move(fd);
}

Status Control::send(Peer &peer, Kind kind, std::string_view bytes) {
  Header header{kind, static_cast<uint32_t>(bytes.size())};
  std::string message(reinterpret_cast<const char *>(&header), sizeof header);
  message.append(bytes);
  if (sendAll(peer.fd.get(), message.data(), message.size(),
              Deadline(kSendSeconds)) != Io::Done)
    return diedError(peer.rank);
  return Status();
}

void Control::begin(std::string_view mine) {
  gathering_ = true;
  ready_ = false;
  gathered_[static_cast<size_t>(rank_)] = std::string(mine);
  // A failure shows in check(), together with its cause.
  if (rank_ != 0)
    (void)send(peers_[0], Gather, mine).ok();
}

std::vector<std::string> Control::take() {
  ready_ = gathering_ = false;
  return std::move(result_);
}

std::string Control::missing() const {
  if (rank_ != 0)
    return "rank 0";
  std::vector<int> ranks;
  for (int r = 0; r < world_; ++r)
    if (!gathered_[static_cast<size_t>(r)])
      ranks.push_back(r);
  return listRanks(ranks);
}

Status Control::finishGather() {
  for (const auto &entry : gathered_)
    if (!entry)
      return Status();
  std::string all;
  result_.clear();
  for (auto &entry : gathered_) {
    appendBytes(all, *entry);
    result_.push_back(std::move(*entry));
    entry.reset();
  }
  ready_ = true;
  for (Peer &peer : peers_)
    RECKON_TRY(send(peer, Gathered, all));
  return Status();
}

void Control::receive(Peer &peer) {
  char buffer[16384];
  for (;;) {
    ssize_t n = ::recv(peer.fd.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (n > 0) {
      peer.inbox.append(buffer, static_cast<size_t>(n));
      continue;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
      peer.ended = true;
    return;
  }
}

Status Control::parse(Peer &peer) {
  for (;;) {
    Header header;
    if (peer.inbox.size() < sizeof header)
      return Status();
    std::memcpy(&header, peer.inbox.data(), sizeof header);
    if (header.bytes > kMaxMessage)
      return makeError(ExitCode::Internal,
                       "control connection to rank " +
                           std::to_string(peer.rank) +
                           ": a message is larger than the protocol allows");
    if (peer.inbox.size() < sizeof header + header.bytes)
      return Status();
    std::string body = peer.inbox.substr(sizeof header, header.bytes);
    peer.inbox.erase(0, sizeof header + header.bytes);
    if (header.kind == Stop) {
      peer.told = true;
      if (!notice_)
        notice_ = Notice::decode(body);
    } else if (header.kind == Gather && rank_ == 0) {
      gathered_[static_cast<size_t>(peer.rank)] = std::move(body);
    } else if (header.kind == Gathered && rank_ != 0) {
      result_.clear();
      for (size_t at = 0; at + 4 <= body.size();) {
        uint32_t length = 0;
        std::memcpy(&length, body.data() + at, sizeof length);
        result_.push_back(body.substr(at + 4, length));
        at += 4 + size_t(length);
      }
      gathered_[static_cast<size_t>(rank_)].reset();
      ready_ = true;
    }
  }
}

Status Control::check() {
  size_t count = peers_.size();
  for (size_t i = 0; i < count; ++i)
    entries_[i] = {peers_[i].ended ? -1 : peers_[i].fd.get(), POLLIN, 0};
  if (count && ::poll(entries_.data(), count, 0) > 0)
    for (size_t i = 0; i < count; ++i)
      if (entries_[i].revents) {
        receive(peers_[i]);
        RECKON_TRY(parse(peers_[i]));
      }
  // A notice names the cause, a closed connection may be its consequence. Only
  // someone who was told to end is told so because of a death, often enough.
  if (notice_ && notice_->code == static_cast<int>(ExitCode::Interrupted))
    for (Peer &peer : peers_)
      if (!closing_ && peer.ended && !peer.told)
        return diedError(peer.rank);
  if (notice_)
    return toError(*notice_);
  if (rank_ == 0 && gathering_ && !ready_)
    RECKON_TRY(finishGather());
  // Who has the answer of the last gather may leave before this rank has taken
  // it. Anybody else who is gone is still gone at the next check.
  if (!closing_ && !ready_)
    for (Peer &peer : peers_)
      if (peer.ended)
        return diedError(peer.rank);
  return Status();
}

void Control::sendNotice(const Notice &notice) {
  std::string body = notice.encode();
  for (Peer &peer : peers_) {
    if (!peer.fd || peer.ended)
      continue;
    Header header{Stop, static_cast<uint32_t>(body.size())};
    std::string message(reinterpret_cast<const char *>(&header), sizeof header);
    message += body;
    (void)!::send(peer.fd.get(), message.data(), message.size(),
                  MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

void Control::shutDown() {
  for (Peer &peer : peers_)
    if (peer.fd)
      ::shutdown(peer.fd.get(), SHUT_WR);
}

void Control::addPollEntries(std::vector<pollfd> &entries) const {
  for (const Peer &peer : peers_)
    entries.push_back({peer.ended ? -1 : peer.fd.get(), POLLIN, 0});
}

} // namespace reckon::comm
