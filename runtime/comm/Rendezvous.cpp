//===- Rendezvous.cpp - how ranks find each other -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/Rendezvous.h"

#include "runtime/comm/Wiring.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <thread>
#include <unistd.h>

namespace reckon::comm {
namespace {

constexpr char kProtocol[] = "reckon-meet-1";
constexpr uint32_t kMaxHello = 8192;

// Replies of rank 0. Wait: not ours, try again; Refused: for good.
enum Reply : uint32_t { Welcome = 1, TryAgain, Refused };

struct Hello {
  std::string nonce;
  uint32_t generation = 0;
  int rank = -1, world = 0;
  PeerAddress address;
};

// A hello is one text with a line per field: easy to read in a trace, and no
// field can be mistaken for another's length.
std::string encode(const Hello &hello) {
  std::ostringstream out;
  out << kProtocol << '\n'
      << hello.nonce << '\n'
      << hello.generation << ' ' << hello.rank << ' ' << hello.world << '\n'
      << encodePeer(hello.address);
  return out.str();
}

std::optional<Hello> decode(const std::string &text) {
  std::istringstream in(text);
  std::string protocol;
  Hello hello;
  if (!std::getline(in, protocol) || protocol != kProtocol ||
      !std::getline(in, hello.nonce) ||
      !(in >> hello.generation >> hello.rank >> hello.world))
    return std::nullopt;
  in.ignore(1);
  if (!decodePeer(in, hello.address))
    return std::nullopt;
  return hello;
}

Io sendText(int fd, uint32_t kind, const std::string &text,
            const Deadline &deadline) {
  uint32_t header[2] = {kind, static_cast<uint32_t>(text.size())};
  std::string message(reinterpret_cast<char *>(header), sizeof header);
  message += text;
  return sendAll(fd, message.data(), message.size(), deadline);
}

std::string readLine(const char *path) {
  std::string text(256, '\0');
  FILE *file = std::fopen(path, "re");
  size_t n = file ? std::fread(text.data(), 1, text.size(), file) : 0;
  if (file)
    std::fclose(file);
  text.resize(n);
  return text.substr(0, text.find('\n'));
}

/// Equal for processes that can share memory over an abstract Unix socket: the
/// same boot of the same kernel, and the same network namespace.
std::string systemHostId() {
  char space[64] = "";
  ssize_t n = ::readlink("/proc/self/ns/net", space, sizeof space - 1);
  return readLine("/proc/sys/kernel/random/boot_id") + "/" +
         std::string(space, n > 0 ? static_cast<size_t>(n) : 0);
}

/// Rank 0's side.
class Host {
public:
  Host(const WorldOptions &options, Fd listener)
      : options_(options), listener_(std::move(listener)),
        fds_(static_cast<size_t>(options.world)),
        table_(static_cast<size_t>(options.world)) {}

  Result<std::unique_ptr<Control>> run(PeerAddress mine,
                                       std::vector<PeerAddress> &table) {
    table_[0] = std::move(mine);
    Deadline deadline(options_.timeoutSeconds, options_.cancel);
    while (arrived_ < options_.world) {
      if (deadline.passed())
        return fail(missingError());
      for (Fd fd = acceptFrom(listener_.get()); fd;
           fd = acceptFrom(listener_.get()))
        if (pending_.size() < fds_.size() + 64) // strays beyond that: dropped
          pending_.push_back({std::move(fd), {}});
      waitForBytes(deadline);
      for (size_t i = 0; i < pending_.size();) {
        Result<bool> keep = serve(pending_[i]);
        if (!keep)
          return fail(keep.error());
        if (*keep)
          ++i;
        else
          pending_.erase(pending_.begin() + static_cast<ptrdiff_t>(i));
      }
    }
    std::string text;
    for (const PeerAddress &peer : table_)
      text += encodePeer(peer);
    auto control = std::make_unique<Control>(0, options_.world);
    for (int r = 1; r < options_.world; ++r) {
      Fd &fd = fds_[static_cast<size_t>(r)];
      if (sendText(fd.get(), Welcome, text, Deadline(10)) != Io::Done)
        return fail(diedError(r));
      control->setPeer(r, std::move(fd));
    }
    table = std::move(table_);
    return control;
  }

private:
  struct Pending {
    Fd fd;
    std::string bytes;
  };

  Error missingError() const {
    std::vector<int> missing;
    for (int r = 1; r < options_.world; ++r)
      if (!fds_[static_cast<size_t>(r)])
        missing.push_back(r);
    std::ostringstream text;
    text << "expected " << options_.world << " ranks at " << options_.master
         << " within " << options_.timeoutSeconds << " s, got " << arrived_
         << ": " << listPlaces(missing)
         << " did not come; see whether they started and can reach this host";
    return makeError(ExitCode::Environment, text.str());
  }

  /// "ranks 2, 3 on n2 and rank 7 on n4", as far as their hosts are known.
  std::string listPlaces(const std::vector<int> &ranks) const {
    constexpr size_t kShown = 16;
    auto hostOf = [&](int rank) {
      auto at = static_cast<size_t>(rank);
      return at < options_.hosts.size() ? options_.hosts[at] : std::string();
    };
    std::string text;
    size_t places = 0, i = 0;
    while (i < ranks.size() && places < kShown) {
      std::vector<int> here;
      std::string host = hostOf(ranks[i]);
      while (i < ranks.size() && hostOf(ranks[i]) == host)
        here.push_back(ranks[i++]);
      text += (places++ ? ", " : "") + listRanks(here) +
              (host.empty() ? "" : " on " + host);
    }
    if (i < ranks.size())
      text += " and " + std::to_string(ranks.size() - i) + " more";
    return text;
  }

  Error fail(const Error &error) {
    // The code travels as the first line, so that all end with the same.
    std::string text =
        std::to_string(static_cast<int>(error.code)) + "\n" + error.message;
    for (Fd &fd : fds_)
      if (fd)
        (void)sendText(fd.get(), Refused, text, Deadline(1));
    return error;
  }

  void waitForBytes(const Deadline &deadline) {
    std::vector<pollfd> entries{{listener_.get(), POLLIN, 0}};
    for (const Pending &pending : pending_)
      entries.push_back({pending.fd.get(), POLLIN, 0});
    // Ranks that die while they wait are noticed here too.
    for (const Fd &fd : fds_)
      if (fd)
        entries.push_back({fd.get(), POLLRDHUP, 0});
    if (::poll(entries.data(), entries.size(), deadline.pollMs(50)) > 0)
      dropDead();
  }

  /// A rank that closed before all had met may come back: its place is free.
  void dropDead() {
    for (Fd &fd : fds_) {
      pollfd entry{fd.get(), POLLRDHUP, 0};
      if (fd && ::poll(&entry, 1, 0) > 0) {
        fd.reset();
        --arrived_;
      }
    }
  }

  /// Reads a hello; whether the connection is still to be served.
  Result<bool> serve(Pending &pending) {
    char buffer[4096];
    ssize_t n = ::read(pending.fd.get(), buffer, sizeof buffer);
    if (n < 0)
      return errno == EAGAIN || errno == EINTR;
    if (n == 0)
      return false;
    pending.bytes.append(buffer, static_cast<size_t>(n));
    uint32_t length = 0;
    if (pending.bytes.size() < sizeof length)
      return true;
    std::memcpy(&length, pending.bytes.data(), sizeof length);
    if (length > kMaxHello)
      return false; // not one of us
    if (pending.bytes.size() < sizeof length + length)
      return true;
    return judge(pending);
  }

  Result<bool> judge(Pending &pending) {
    std::optional<Hello> hello = decode(pending.bytes.substr(4));
    if (!hello)
      return false;
    int fd = pending.fd.get();
    if (hello->nonce != options_.nonce ||
        hello->generation != options_.generation) {
      (void)sendText(fd, TryAgain,
                     "another run (generation " +
                         std::to_string(options_.generation) +
                         ") answers at that address",
                     Deadline(1));
      return false;
    }
    if (hello->world != options_.world) {
      Error error = makeError(
          ExitCode::Mismatch,
          "expected one number of ranks, got " +
              std::to_string(options_.world) + " on rank 0 and " +
              std::to_string(hello->world) + " on rank " +
              std::to_string(hello->rank) + "; start all ranks the same way");
      (void)sendText(fd, Refused,
                     std::to_string(static_cast<int>(error.code)) + "\n" +
                         error.message,
                     Deadline(1));
      return error;
    }
    bool inRange = hello->rank > 0 && hello->rank < options_.world;
    if (!inRange || fds_[static_cast<size_t>(hello->rank)]) {
      (void)sendText(fd, Refused,
                     "5\nrank " + std::to_string(hello->rank) +
                         (inRange ? " is there already" : " does not exist") +
                         "; give every process its own rank",
                     Deadline(1));
      return false;
    }
    auto at = static_cast<size_t>(hello->rank);
    table_[at] = hello->address;
    fds_[at] = std::move(pending.fd);
    ++arrived_;
    return false;
  }

  const WorldOptions &options_;
  Fd listener_;
  std::vector<Fd> fds_;
  std::vector<PeerAddress> table_;
  std::vector<Pending> pending_;
  int arrived_ = 1;
};

/// The other ranks' side.
class Guest {
public:
  Guest(const WorldOptions &options, SocketWiring &wiring)
      : options_(options), wiring_(wiring) {}

  Result<Fd> run(const Address &master, std::string &table) {
    Deadline deadline(options_.timeoutSeconds, options_.cancel);
    while (!deadline.passed()) {
      Result<Fd> fd = attempt(master, table, deadline);
      if (!fd || *fd)
        return fd;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    std::ostringstream text;
    text << "expected rank " << options_.rank << " to meet rank 0 at "
         << options_.master << " within " << options_.timeoutSeconds
         << " s, got: " << (refused_.empty() ? reason_ : refused_)
         << "; see whether rank 0 started, or set RECKON_MASTER_ADDR";
    return makeError(ExitCode::Environment, text.str());
  }

private:
  /// An empty Fd means: try again.
  Result<Fd> attempt(const Address &master, std::string &table,
                     const Deadline &deadline) {
    bool retry = true;
    Result<Fd> fd = connectTo(master, retry);
    if (!fd) {
      reason_ = fd.error().message;
      if (!retry)
        return fd.error();
      return Fd();
    }
    Result<PeerAddress> address = wiring_.listen(localHost(fd->get()));
    RECKON_TRY(address);
    Hello hello{options_.nonce, options_.generation, options_.rank,
                options_.world, *address};
    std::string text = encode(hello);
    auto length = static_cast<uint32_t>(text.size());
    text.insert(0, reinterpret_cast<const char *>(&length), sizeof length);

    reason_ = "rank 0 closed the connection";
    uint32_t reply[2] = {0, 0};
    int raw = fd->get();
    if (sendAll(raw, text.data(), text.size(), deadline) != Io::Done)
      return Fd();
    Io io = receiveAll(raw, reply, sizeof reply, deadline);
    // Rank 0 gives its own deadline's verdict a moment after ours has passed.
    if (io == Io::TimedOut)
      io = receiveAll(raw, reply, sizeof reply, Deadline(1));
    if (io == Io::TimedOut)
      reason_ = "rank 0 is there, but not all ranks have come";
    if (io != Io::Done || reply[1] > (64u << 20))
      return Fd();
    text.resize(reply[1]);
    if (receiveAll(raw, text.data(), text.size(), Deadline(10)) != Io::Done)
      return Fd();
    if (reply[0] == Welcome) {
      table = std::move(text);
      return fd;
    }
    if (reply[0] == Refused) {
      size_t line = std::min(text.find('\n'), text.size() - 1);
      return makeError(static_cast<ExitCode>(std::atoi(text.c_str())),
                       text.substr(line + 1));
    }
    reason_ = refused_ = text;
    return Fd();
  }

  const WorldOptions &options_;
  SocketWiring &wiring_;
  std::string reason_ = "no attempt was made";
  /// What another run's rank 0 said; it may end before this deadline, and that
  /// nobody listens any more says less.
  std::string refused_;
};

} // namespace

Result<Transport> transportFromEnvironment() {
  const char *value = std::getenv("RECKON_TRANSPORT");
  std::string text = value ? value : "";
  if (text.empty() || text == "ring")
    return Transport::Ring;
  if (text == "socket")
    return Transport::Socket;
  if (text == "tcp")
    return Transport::Tcp;
  return makeError(
      ExitCode::BadSpec,
      "expected RECKON_TRANSPORT to be ring, socket or tcp, got '" + text +
          "'");
}

Result<Meeting> meet(const WorldOptions &given) {
  WorldOptions options = given;
  if (options.world < 1 || options.rank < 0 || options.rank >= options.world)
    return makeError(ExitCode::BadSpec, "expected a rank from 0 to " +
                                            std::to_string(options.world - 1) +
                                            ", got " +
                                            std::to_string(options.rank));
  if (options.nonce.find('\n') != std::string::npos)
    return makeError(ExitCode::BadSpec, "expected a run id of one line");
  if (options.hostId.empty())
    options.hostId = systemHostId();

  auto wiring = std::make_unique<SocketWiring>(options);
  if (options.world == 1)
    return Meeting{std::make_unique<Control>(0, 1), std::move(wiring)};
  Result<Address> master = Address::parse(options.master);
  RECKON_TRY(master);
  if (options.rank == 0) {
    Result<Fd> listener = listenOn(*master, /*anyAddress=*/true);
    RECKON_TRY(listener.status());
    Result<PeerAddress> mine = wiring->listen(localHost(listener->get()));
    RECKON_TRY(mine);
    // The others know rank 0's host better than rank 0: it may be bound to all
    // interfaces.
    mine->host.clear();
    std::vector<PeerAddress> table;
    auto control = Host(options, std::move(*listener)).run(*mine, table);
    RECKON_TRY(control.status());
    wiring->setTable(std::move(table), "");
    return Meeting{std::move(*control), std::move(wiring)};
  }
  std::string text;
  Result<Fd> fd = Guest(options, *wiring).run(*master, text);
  RECKON_TRY(fd.status());
  std::istringstream in(text);
  std::vector<PeerAddress> table(static_cast<size_t>(options.world));
  for (PeerAddress &peer : table)
    if (!decodePeer(in, peer))
      return makeError(ExitCode::Internal,
                       "rank 0 sent a table of addresses that cannot be read");
  wiring->setTable(std::move(table), peerHost(fd->get()));
  auto control = std::make_unique<Control>(options.rank, options.world);
  control->setPeer(0, std::move(*fd));
  return Meeting{std::move(control), std::move(wiring)};
}

Result<std::unique_ptr<Communicator>> joinWorld(const WorldOptions &options) {
  Result<Meeting> meeting = meet(options);
  RECKON_TRY(meeting.status());
  return makeCpuCommunicator(options, std::move(*meeting));
}

} // namespace reckon::comm
