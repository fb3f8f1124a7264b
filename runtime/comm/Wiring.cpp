//===- Wiring.cpp - connecting ranks that exchange data -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/Wiring.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <sstream>
#include <thread>
#include <unistd.h>

namespace reckon::comm {
namespace {

constexpr uint32_t kLinkMagic = 0x314b4c52; // "RLK1"
constexpr uint32_t kMaxTable = 60u << 10; // fits a socket's buffer: a rank can
                                          // write before it reads

/// A name that no other process of this host has.
std::string freshName() {
  std::random_device random;
  std::ostringstream name;
  name << "@reckon-" << ::getpid() << '-' << std::hex << random() << random();
  return name.str();
}

} // namespace

struct SocketWiring::LinkHello {
  uint32_t magic = kLinkMagic;
  uint32_t generation = 0;
  int32_t from = 0, to = 0;
  uint32_t ring = 0;
  char nonce[64] = {};

  void setNonce(const std::string &text) {
    std::memcpy(nonce, text.data(), std::min(text.size(), sizeof nonce));
  }
};

std::string encodePeer(const PeerAddress &peer) {
  return peer.hostId + "\n" + peer.unixName + "\n" + peer.host + "\n" +
         std::to_string(peer.port) + "\n";
}

bool decodePeer(std::istream &in, PeerAddress &peer) {
  std::string port;
  if (!std::getline(in, peer.hostId) || !std::getline(in, peer.unixName) ||
      !std::getline(in, peer.host) || !std::getline(in, port))
    return false;
  peer.port = std::atoi(port.c_str());
  return true;
}

Result<PeerAddress> SocketWiring::listen(const std::string &localHost) {
  if (unixListener_)
    return mine_;
  mine_.hostId = options_.hostId;
  mine_.unixName = freshName();
  Result<Fd> local = listenOn({true, mine_.unixName, 0});
  RECKON_TRY(local.status());
  unixListener_ = std::move(*local);
  // Without need no port is opened to the network.
  bool oneHost = localHost.empty();
  if (oneHost && options_.transport != Transport::Tcp)
    return mine_;
  mine_.host = oneHost ? "127.0.0.1" : localHost;
  Result<Fd> tcp = listenOn({false, mine_.host, 0});
  RECKON_TRY(tcp.status());
  tcpListener_ = std::move(*tcp);
  mine_.port = boundPort(tcpListener_.get());
  return mine_;
}

Status SocketWiring::connectOne(Link &link, const Deadline &deadline) {
  const PeerAddress &peer = table_[static_cast<size_t>(link.peer())];
  bool local =
      peer.hostId == options_.hostId && options_.transport != Transport::Tcp;
  Address address{local, peer.unixName, 0};
  if (!local) {
    address.host = peer.host.empty() ? masterHost_ : peer.host;
    if (address.host.empty())
      address.host = "127.0.0.1";
    address.port = peer.port;
  }
  Fd socket;
  while (!socket) {
    bool retry = true;
    Result<Fd> fd = connectTo(address, retry);
    if (fd)
      socket = std::move(*fd);
    else if (!retry || deadline.passed())
      return makeError(ExitCode::Environment, "connection to rank " +
                                                  std::to_string(link.peer()) +
                                                  ": " + fd.error().message);
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  LinkHello hello;
  hello.generation = options_.generation;
  hello.from = options_.rank;
  hello.to = link.peer();
  hello.ring = local && options_.transport == Transport::Ring;
  hello.setNonce(options_.nonce);
  SharedRing ring;
  Io io = Io::Done;
  if (hello.ring) {
    Result<Fd> memory = SharedRing::createMemory();
    RECKON_TRY(memory.status());
    Result<SharedRing> mapped = SharedRing::attach(*memory, 0);
    RECKON_TRY(mapped.status());
    ring = std::move(*mapped);
    io =
        sendWithFd(socket.get(), &hello, sizeof hello, memory->get(), deadline);
  } else {
    io = sendAll(socket.get(), &hello, sizeof hello, deadline);
  }
  if (io != Io::Done)
    return diedError(link.peer());
  link.connect(std::move(socket), std::move(ring));
  return Status();
}

Result<bool> SocketWiring::acceptOne(Fd fd, std::vector<Link *> &expected) {
  LinkHello hello;
  Fd memory;
  // A peer of ours has written its hello before we see it; a stray that says
  // nothing may not hold us up.
  Io io = receiveWithFd(fd.get(), &hello, sizeof hello, memory, Deadline(2));
  LinkHello wanted;
  wanted.setNonce(options_.nonce);
  if (io != Io::Done || hello.magic != kLinkMagic ||
      hello.generation != options_.generation || hello.to != options_.rank ||
      std::memcmp(hello.nonce, wanted.nonce, sizeof wanted.nonce) != 0)
    return false;
  auto found = std::find_if(expected.begin(), expected.end(), [&](Link *link) {
    return link->peer() == hello.from;
  });
  if (found == expected.end() || (hello.ring && !memory))
    return false;
  SharedRing ring;
  if (hello.ring) {
    Result<SharedRing> mapped = SharedRing::attach(memory, 1);
    RECKON_TRY(mapped.status());
    ring = std::move(*mapped);
  }
  (*found)->connect(std::move(fd), std::move(ring));
  expected.erase(found);
  return true;
}

Status SocketWiring::acceptAll(std::vector<Link *> expected, Control &control,
                               const Deadline &deadline) {
  while (!expected.empty()) {
    pollfd entries[3] = {{unixListener_.get(), POLLIN, 0},
                         {tcpListener_.get(), POLLIN, 0},
                         {control.upstream(), POLLIN, 0}};
    ::poll(entries, 3, deadline.pollMs(20));
    for (const Fd *listener : {&unixListener_, &tcpListener_}) {
      Fd fd = *listener ? acceptFrom(listener->get()) : Fd();
      if (fd)
        RECKON_TRY(acceptOne(std::move(fd), expected));
    }
    RECKON_TRY(control.check());
    if (deadline.passed()) {
      std::vector<int> missing;
      for (Link *link : expected)
        missing.push_back(link->peer());
      return makeError(ExitCode::Environment,
                       "expected connections from all neighbours of rank " +
                           std::to_string(options_.rank) + ", got none from " +
                           listRanks(missing) +
                           "; see whether the network lets them through");
    }
  }
  return Status();
}

Status SocketWiring::connect(const std::vector<std::unique_ptr<Link>> &links,
                             Control &control, const Deadline &deadline) {
  std::vector<Link *> expected;
  for (const auto &link : links) {
    if (link->peer() > options_.rank)
      expected.push_back(link.get());
    else
      RECKON_TRY(connectOne(*link, deadline));
  }
  RECKON_TRY(acceptAll(std::move(expected), control, deadline));
  unixListener_.reset();
  tcpListener_.reset();
  return Status();
}

Status comparePortTables(const std::vector<std::unique_ptr<Link>> &links,
                         const std::vector<std::string> &tables,
                         const Deadline &deadline) {
  for (size_t i = 0; i < links.size(); ++i) {
    auto length = static_cast<uint32_t>(tables[i].size());
    if (length > kMaxTable)
      return makeError(ExitCode::Internal,
                       "more groups and channels between ranks than fit the "
                       "start-up message");
    std::string message(reinterpret_cast<char *>(&length), sizeof length);
    message += tables[i];
    if (sendAll(links[i]->fd(), message.data(), message.size(), deadline) !=
        Io::Done)
      return diedError(links[i]->peer());
  }
  for (const auto &link : links) {
    uint32_t length = 0;
    Io io = receiveAll(link->fd(), &length, sizeof length, deadline);
    if (io == Io::Done && length > kMaxTable)
      return makeError(ExitCode::Internal, "a peer sent an unreadable table");
    std::string table(length, '\0');
    if (io == Io::Done)
      io = receiveAll(link->fd(), table.data(), length, deadline);
    if (io == Io::TimedOut)
      return makeError(ExitCode::Environment,
                       "rank " + std::to_string(link->peer()) +
                           " did not finish its start-up in time");
    if (io != Io::Done)
      return diedError(link->peer());
    RECKON_TRY(link->comparePorts(table));
  }
  return Status();
}

} // namespace reckon::comm
