//===- Link.cpp - one connection that carries many streams of messages ----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/Link.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>

namespace reckon::comm {

std::string Signature::text() const {
  std::string elements = std::to_string(count) + " x " + comm::name(type);
  switch (kind) {
  case OpKind::AllReduce:
    return std::string("all_reduce(") + comm::name(reduction) + ") of " +
           elements;
  case OpKind::AllGather:
    return "all_gather of " + elements;
  case OpKind::ReduceScatter:
    return std::string("reduce_scatter(") + comm::name(reduction) + ") of " +
           elements;
  case OpKind::Message:
    return elements;
  }
  return "an unknown operation";
}

std::string Notice::encode() const {
  auto length = static_cast<uint32_t>(std::min(text.size(), kMaxText));
  auto number = static_cast<uint32_t>(code);
  std::string bytes("A");
  bytes.append(reinterpret_cast<const char *>(&number), 4);
  bytes.append(reinterpret_cast<const char *>(&length), 4);
  return bytes.append(text, 0, length);
}

std::optional<Notice> Notice::decode(std::string_view bytes) {
  uint32_t number = 0, length = 0;
  if (bytes.size() < 9)
    return std::nullopt;
  std::memcpy(&number, bytes.data() + 1, 4);
  std::memcpy(&length, bytes.data() + 5, 4);
  length = std::min<uint32_t>(length, kMaxText);
  if (bytes.size() < 9 + size_t(length))
    return std::nullopt;
  return Notice{static_cast<int>(number), std::string(bytes.substr(9, length))};
}

Link::Link(int self, int peer, Fd socket, SharedRing ring)
    : self_(self), peer_(peer), socket_(std::move(socket)),
      ring_(std::move(ring)) {}

void Link::connect(Fd socket, SharedRing ring) {
  socket_ = std::move(socket);
  ring_ = std::move(ring);
}

// --- Ports ------------------------------------------------------------------

OutPort &Link::addOut(std::string name, std::string subject, size_t queue) {
  out_.push_back(std::make_unique<OutPort>());
  OutPort &port = *out_.back();
  port.link = this;
  port.name = std::move(name);
  port.subject = std::move(subject);
  port.sends.setCapacity(queue);
  port.credits.setCapacity(kCredits);
  return port;
}

InPort &Link::addIn(std::string name, std::string subject, size_t queue) {
  in_.push_back(std::make_unique<InPort>());
  InPort &port = *in_.back();
  port.link = this;
  port.name = std::move(name);
  port.subject = std::move(subject);
  port.receives.setCapacity(queue);
  return port;
}

std::string Link::sealPorts() {
  auto byName = [](const auto &a, const auto &b) { return a->name < b->name; };
  std::stable_sort(out_.begin(), out_.end(), byName);
  std::stable_sort(in_.begin(), in_.end(), byName);
  std::string table;
  for (size_t i = 0; i < out_.size(); ++i) {
    out_[i]->number = static_cast<uint32_t>(i);
    table += "to " + out_[i]->name + "\n";
  }
  for (size_t i = 0; i < in_.size(); ++i) {
    in_[i]->number = static_cast<uint32_t>(i);
    table += "from " + in_[i]->name + "\n";
  }
  creditQueue_.setCapacity(in_.size() * kCredits + 1);
  return table;
}

Status Link::comparePorts(std::string_view theirs) const {
  std::vector<std::string> wanted, found;
  for (const auto &port : in_)
    wanted.push_back("to " + port->name);
  for (const auto &port : out_)
    wanted.push_back("from " + port->name);
  for (size_t at = 0; at < theirs.size();) {
    size_t end = std::min(theirs.find('\n', at), theirs.size());
    found.emplace_back(theirs.substr(at, end - at));
    at = end + 1;
  }
  if (wanted == found)
    return Status();
  auto [a, b] =
      std::mismatch(wanted.begin(), wanted.end(), found.begin(), found.end());
  std::string mine = a == wanted.end() ? "nothing more" : "'" + *a + "'";
  std::string other = b == found.end() ? "nothing more" : "'" + *b + "'";
  return makeError(ExitCode::Mismatch,
                   "expected the same groups and channels on ranks " +
                       std::to_string(self_) + " and " + std::to_string(peer_) +
                       ", got " + other + " on rank " + std::to_string(peer_) +
                       " where rank " + std::to_string(self_) + " has " + mine +
                       "; start all ranks from one plan directory");
}

// --- Messages ---------------------------------------------------------------

Error Link::mismatch(const OutPort &port, const Signature &mine,
                     const Signature &theirs) const {
  bool message = mine.kind == OpKind::Message;
  std::string self = "rank " + std::to_string(self_);
  std::string peer = "rank " + std::to_string(peer_);
  return makeError(ExitCode::Mismatch,
                   port.subject + (message ? ", message " : ", operation ") +
                       std::to_string(mine.sequence) + ": " + self +
                       (message ? " sends " : " runs ") + mine.text() + ", " +
                       peer + (message ? " expects " : " runs ") +
                       theirs.text() +
                       "; start all ranks from one plan directory");
}

Error Link::protocolError(const char *what) const {
  return makeError(ExitCode::Internal, "connection of rank " +
                                           std::to_string(self_) + " to rank " +
                                           std::to_string(peer_) + ": " + what);
}

void Link::postSend(OutPort &port, const Region &region,
                    const Signature &what) {
  port.sends.push({region, what, 0, false});
}

void Link::postReceive(InPort &port, const Region &region,
                       const Signature &what) {
  port.receives.push({region, what, 0, false});
  grantCredits(port);
}

void Link::grantCredits(InPort &port) {
  while (port.credited < port.receives.size() && port.credited < kCredits) {
    const Transfer &next = port.receives[port.credited++];
    Frame frame;
    frame.kind = CreditFrame;
    frame.port = port.number;
    frame.bytes = next.region.bytes;
    frame.signature = next.signature;
    creditQueue_.push(frame);
  }
}

Status Link::checkCredits(OutPort &port) const {
  for (size_t i = 0; i < port.credits.size(); ++i) {
    const Signature &theirs = port.credits[i].signature;
    if (port.current && theirs.sequence == port.current->sequence &&
        theirs != *port.current)
      return mismatch(port, *port.current, theirs);
  }
  return Status();
}

void Link::finishReceive(InPort &port) {
  port.receives.pop();
  --port.credited;
  ++port.completed;
  grantCredits(port);
}

// --- Writing ----------------------------------------------------------------

Result<bool> Link::pickFrame() {
  headerDone_ = 0;
  payloadDone_ = 0;
  if (!creditQueue_.empty()) {
    frame_ = creditQueue_.front();
    creditQueue_.pop();
    return frameOpen_ = true;
  }
  for (size_t tried = 0; tried < out_.size(); ++tried) {
    OutPort &port = *out_[nextPort_];
    nextPort_ = nextPort_ + 1 < out_.size() ? nextPort_ + 1 : 0;
    if (port.sends.empty())
      continue;
    Transfer &send = port.sends.front();
    if (!send.open) {
      if (port.credits.empty())
        continue;
      OutPort::Credit credit = port.credits.front();
      if (credit.bytes != send.region.bytes ||
          credit.signature != send.signature)
        return mismatch(port, send.signature, credit.signature);
      port.credits.pop();
      send.open = true;
    }
    frame_.kind = Data;
    frame_.port = port.number;
    frame_.bytes =
        std::min<uint64_t>(send.region.bytes - send.done, kFrameBytes);
    frame_.signature = send.signature;
    return frameOpen_ = true;
  }
  return false;
}

int Link::gather(const Transfer &transfer, uint64_t limit, iovec *pieces,
                 int room, uint64_t &covered) const {
  int count = 0;
  covered = 0;
  while (covered < limit && count < room) {
    uint64_t run = 0;
    char *data = transfer.region.at(transfer.done + covered, run);
    run = std::min(run, limit - covered);
    pieces[count++] = {data, static_cast<size_t>(run)};
    covered += run;
  }
  return count;
}

Result<bool> Link::turnOut() {
  bool moved = false;
  blocked_ = false;
  for (size_t budget = kTurnBytes; budget > 0;) {
    if (!frameOpen_) {
      Result<bool> picked = pickFrame();
      RECKON_TRY(picked);
      if (!*picked)
        break;
    }
    OutPort *port = frame_.kind == Data ? out_[frame_.port].get() : nullptr;
    iovec pieces[kPieces + 1];
    int count = 0;
    if (headerDone_ < sizeof frame_)
      pieces[count++] = {reinterpret_cast<char *>(&frame_) + headerDone_,
                         sizeof frame_ - headerDone_};
    if (port) {
      uint64_t covered = 0;
      count += gather(port->sends.front(),
                      std::min<uint64_t>(frame_.bytes - payloadDone_, budget),
                      pieces + count, kPieces, covered);
    }
    size_t written = put(pieces, count);
    if (written == 0) {
      blocked_ = true;
      break;
    }
    moved = true;
    budget -= std::min(budget, written);
    size_t header = std::min(written, sizeof frame_ - headerDone_);
    headerDone_ += header;
    uint64_t payload = written - header;
    if (port) {
      payloadDone_ += payload;
      port->sends.front().done += payload;
    }
    if (headerDone_ < sizeof frame_ || (port && payloadDone_ < frame_.bytes))
      continue;
    frameOpen_ = false;
    if (port && port->sends.front().done == port->sends.front().region.bytes) {
      port->sends.pop();
      ++port->completed;
    }
  }
  return moved;
}

// --- Reading ----------------------------------------------------------------

Status Link::parseFrame() {
  Frame frame;
  std::memcpy(&frame, staging_ + stagedBegin_, sizeof frame);
  stagedBegin_ += sizeof frame;
  if (frame.kind == Data && frame.port < in_.size()) {
    InPort &port = *in_[frame.port];
    if (port.credited == 0)
      return protocolError("data came without a credit");
    Transfer &receive = port.receives.front();
    if (frame.bytes > receive.region.bytes - receive.done)
      return protocolError("more data came than the credit allows");
    reading_ = &port;
    payloadLeft_ = frame.bytes;
    if (frame.bytes == 0 && receive.region.bytes == 0)
      finishReceive(port);
  } else if (frame.kind == CreditFrame && frame.port < out_.size()) {
    OutPort &port = *out_[frame.port];
    if (port.credits.full())
      return protocolError("more credits came than the protocol allows");
    port.credits.push({frame.bytes, frame.signature});
    return checkCredits(port);
  } else if (frame.kind == NoticeFrame) {
    readingNotice_ = true;
    payloadLeft_ = std::min<uint64_t>(frame.bytes, Notice::kMaxText + 9);
  } else {
    return protocolError("a frame of an unknown kind or port came");
  }
  return Status();
}

Result<bool> Link::turnIn() {
  bool moved = false;
  for (size_t budget = kTurnBytes; budget > 0;) {
    size_t staged = stagedEnd_ - stagedBegin_;
    if (payloadLeft_ > 0 && staged > 0) {
      size_t bytes =
          static_cast<size_t>(std::min<uint64_t>(staged, payloadLeft_));
      const char *from = staging_ + stagedBegin_;
      if (readingNotice_) {
        noticeBytes_.append(from, bytes);
      } else {
        Transfer &receive = reading_->receives.front();
        iovec pieces[1];
        uint64_t covered = 0;
        gather(receive, bytes, pieces, 1, covered);
        bytes = static_cast<size_t>(covered);
        std::memcpy(pieces[0].iov_base, from, bytes);
        receive.done += bytes;
      }
      stagedBegin_ += bytes;
      payloadLeft_ -= bytes;
    } else if (payloadLeft_ > 0) {
      iovec pieces[kPieces + 1];
      int count = 0;
      uint64_t covered = 0;
      stagedBegin_ = stagedEnd_ = 0;
      if (!readingNotice_)
        count = gather(reading_->receives.front(),
                       std::min<uint64_t>(payloadLeft_, budget), pieces,
                       kPieces, covered);
      if (readingNotice_ || covered == payloadLeft_)
        pieces[count++] = {staging_, sizeof staging_};
      size_t got = take(pieces, count);
      if (got == 0)
        break;
      moved = true;
      budget -= std::min(budget, got);
      uint64_t direct = std::min<uint64_t>(got, covered);
      if (!readingNotice_)
        reading_->receives.front().done += direct;
      payloadLeft_ -= direct;
      stagedEnd_ = static_cast<size_t>(got - direct);
    } else if (staged >= sizeof(Frame)) {
      RECKON_TRY(parseFrame());
      continue; // a frame without payload has nothing to finish below
    } else {
      std::memmove(staging_, staging_ + stagedBegin_, staged);
      stagedBegin_ = 0;
      stagedEnd_ = staged;
      iovec piece = {staging_ + staged, sizeof staging_ - staged};
      size_t got = take(&piece, 1);
      if (got == 0)
        break;
      moved = true;
      budget -= std::min(budget, got);
      stagedEnd_ += got;
      continue;
    }
    if (payloadLeft_ > 0)
      continue;
    if (readingNotice_) {
      notice_ = Notice::decode(noticeBytes_);
      readingNotice_ = false;
    } else if (Transfer &receive = reading_->receives.front();
               receive.done == receive.region.bytes) {
      finishReceive(*reading_);
    }
  }
  // What a dead peer had sent before is still delivered.
  if (ended_ && !moved)
    closed_ = true;
  return moved;
}

Result<bool> Link::turn() {
  Result<bool> wrote = turnOut();
  RECKON_TRY(wrote);
  Result<bool> read = turnIn();
  RECKON_TRY(read);
  return *wrote || *read;
}

// --- Bytes ------------------------------------------------------------------

size_t Link::put(const iovec *pieces, int count) {
  if (ring_) {
    size_t moved = ring_.write(pieces, count);
    if (moved && ring_.takePeerSleep())
      ringBell();
    return moved;
  }
  msghdr message{};
  message.msg_iov = const_cast<iovec *>(pieces);
  message.msg_iovlen = static_cast<size_t>(count);
  ssize_t n = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  // A broken connection shows when it is read, after what it still holds.
  return n > 0 ? static_cast<size_t>(n) : 0;
}

size_t Link::take(const iovec *pieces, int count) {
  if (ring_) {
    size_t moved = ring_.read(pieces, count);
    if (moved && ring_.takePeerSleep())
      ringBell();
    return moved;
  }
  msghdr message{};
  message.msg_iov = const_cast<iovec *>(pieces);
  message.msg_iovlen = static_cast<size_t>(count);
  ssize_t n = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT);
  if (n > 0)
    return static_cast<size_t>(n);
  if (n == 0 || (errno != EAGAIN && errno != EINTR))
    ended_ = true;
  return 0;
}

void Link::ringBell() {
  // A full socket buffer means that bells enough are waiting already.
  (void)!::send(socket_.get(), "D", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Link::turnBell() {
  if (!ring_ || ended_)
    return;
  char bytes[512];
  for (;;) {
    ssize_t n = ::recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
      ended_ = true;
    if (n <= 0)
      break;
    for (ssize_t i = 0; i < n; ++i)
      if (!noticeBytes_.empty() || bytes[i] == 'A')
        noticeBytes_.push_back(bytes[i]);
  }
  if (!notice_ && !noticeBytes_.empty())
    notice_ = Notice::decode(noticeBytes_);
}

void Link::announceSleep() {
  if (ring_)
    ring_.announceSleep();
}

void Link::wakeUp() {
  if (ring_)
    ring_.wakeUp();
}

bool Link::isReady() {
  if (!ring_)
    return false; // poll() tells
  return ring_.canRead() || (blocked_ && ring_.canWrite());
}

short Link::pollEvents() const {
  return static_cast<short>(POLLIN | (blocked_ && !ring_ ? POLLOUT : 0));
}

void Link::shutDown() {
  if (socket_)
    ::shutdown(socket_.get(), SHUT_WR);
}

void Link::sendNotice(const Notice &notice) {
  if (!socket_)
    return;
  std::string bytes = notice.encode();
  if (!ring_) {
    if (frameOpen_ && (headerDone_ > 0 || payloadDone_ > 0))
      return; // in the middle of a frame: the control connection has to do
    Frame frame;
    frame.kind = NoticeFrame;
    frame.bytes = bytes.size();
    bytes.insert(0, reinterpret_cast<const char *>(&frame), sizeof frame);
  }
  (void)!::send(socket_.get(), bytes.data(), bytes.size(),
                MSG_NOSIGNAL | MSG_DONTWAIT);
}

} // namespace reckon::comm
