//===- Wire.cpp - descriptors, addresses and whole messages ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/Wire.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace reckon::comm {
namespace {

struct SocketName {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr *get() const {
    return reinterpret_cast<const sockaddr *>(&storage);
  }
};

Result<SocketName> unixName(const std::string &name) {
  SocketName out;
  auto *address = reinterpret_cast<sockaddr_un *>(&out.storage);
  address->sun_family = AF_UNIX;
  if (name.empty() || name.size() >= sizeof(address->sun_path))
    return makeError(ExitCode::BadSpec,
                     "expected a Unix socket name of 1 to " +
                         std::to_string(sizeof(address->sun_path) - 1) +
                         " bytes, got '" + name + "'");
  std::memcpy(address->sun_path, name.data(), name.size());
  size_t length = name.size() + 1;
  if (name[0] == '@') { // abstract: lives in no folder, ends with its owner
    address->sun_path[0] = '\0';
    length = name.size();
  }
  out.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  return out;
}

Result<SocketName> tcpName(const Address &address, bool &retry) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_family = AF_UNSPEC;
  addrinfo *found = nullptr;
  int code = getaddrinfo(address.host.c_str(),
                         std::to_string(address.port).c_str(), &hints, &found);
  if (code != 0) {
    retry = code == EAI_AGAIN;
    return makeError(ExitCode::Environment,
                     "cannot resolve host '" + address.host +
                         "': " + gai_strerror(code) +
                         "; set RECKON_MASTER_ADDR to a reachable address");
  }
  std::unique_ptr<addrinfo, void (*)(addrinfo *)> owner(found, freeaddrinfo);
  SocketName out;
  std::memcpy(&out.storage, found->ai_addr, found->ai_addrlen);
  out.length = found->ai_addrlen;
  return out;
}

std::string hostOf(const sockaddr_storage &storage, socklen_t length) {
  if (storage.ss_family == AF_UNIX)
    return "";
  char host[NI_MAXHOST] = "";
  getnameinfo(reinterpret_cast<const sockaddr *>(&storage), length, host,
              sizeof host, nullptr, 0, NI_NUMERICHOST);
  return host;
}

/// Waits for `events`; false when the deadline has passed.
bool waitFor(int fd, short events, const Deadline &deadline) {
  while (!deadline.passed()) {
    pollfd entry{fd, events, 0};
    int ready = ::poll(&entry, 1, deadline.pollMs(1000));
    if (ready > 0 || (ready < 0 && errno != EINTR))
      return true; // an error shows in the transfer that follows
  }
  return false;
}

} // namespace

void Fd::reset() {
  if (fd_ >= 0)
    ::close(fd_);
  fd_ = -1;
}

int64_t nowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

int Deadline::pollMs(int limit) const {
  constexpr int kCancelMs = 20; // how soon a cancellation is seen
  if (cancel_)
    limit = std::min(limit, kCancelMs);
  if (!end_)
    return limit;
  int64_t left = (end_ - nowNs()) / 1'000'000 + 1;
  return static_cast<int>(std::clamp<int64_t>(left, 0, limit));
}

Error systemError(const std::string &what, int code) {
  return makeError(ExitCode::Environment,
                   "cannot " + what + ": " + std::strerror(code));
}

Result<Address> Address::parse(const std::string &text) {
  Address out;
  if (text.rfind("unix:", 0) == 0) {
    out.unixDomain = true;
    out.host = text.substr(5);
    if (!out.host.empty())
      return out;
  } else if (text.rfind("tcp:", 0) == 0) {
    size_t colon = text.rfind(':');
    out.host = text.substr(4, colon > 4 ? colon - 4 : 0);
    if (out.host.size() > 2 && out.host.front() == '[')
      out.host = out.host.substr(1, out.host.size() - 2);
    const char *begin = text.data() + colon + 1;
    const char *end = text.data() + text.size();
    auto [stop, code] = std::from_chars(begin, end, out.port);
    if (!out.host.empty() && code == std::errc() && stop == end &&
        out.port >= 0 && out.port <= 65535)
      return out;
  }
  return makeError(ExitCode::BadSpec,
                   "expected an address such as tcp:node1:29500 or "
                   "unix:@name, got '" +
                       text + "'");
}

std::string Address::text() const {
  if (unixDomain)
    return "unix:" + host;
  bool v6 = host.find(':') != std::string::npos;
  return "tcp:" + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Fd> listenOn(const Address &address, bool anyAddress) {
  bool retry = false;
  Result<SocketName> name =
      address.unixDomain ? unixName(address.host) : tcpName(address, retry);
  RECKON_TRY(name);
  Fd fd(::socket(name->storage.ss_family,
                 SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd)
    return systemError("open a socket", errno);
  int one = 1;
  if (!address.unixDomain)
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  int code = ::bind(fd.get(), name->get(), name->length) ? errno : 0;
  if (code == EADDRNOTAVAIL && anyAddress) {
    Address all = address;
    all.host = name->storage.ss_family == AF_INET6 ? "::" : "0.0.0.0";
    return listenOn(all);
  }
  if (code || ::listen(fd.get(), SOMAXCONN) != 0)
    return systemError("listen on " + address.text(), code ? code : errno);
  return fd;
}

int boundPort(int fd) {
  SocketName name;
  name.length = sizeof(name.storage);
  getsockname(fd, reinterpret_cast<sockaddr *>(&name.storage), &name.length);
  if (name.storage.ss_family == AF_INET)
    return ntohs(reinterpret_cast<sockaddr_in *>(&name.storage)->sin_port);
  if (name.storage.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<sockaddr_in6 *>(&name.storage)->sin6_port);
  return 0;
}

std::string localHost(int fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  getsockname(fd, reinterpret_cast<sockaddr *>(&storage), &length);
  return hostOf(storage, length);
}

std::string peerHost(int fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  getpeername(fd, reinterpret_cast<sockaddr *>(&storage), &length);
  return hostOf(storage, length);
}

void prepareStream(int fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  int one = 1; // fails harmlessly on Unix sockets
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

Result<Fd> connectTo(const Address &address, bool &retry) {
  retry = true;
  Result<SocketName> name =
      address.unixDomain ? unixName(address.host) : tcpName(address, retry);
  RECKON_TRY(name);
  Fd fd(::socket(name->storage.ss_family,
                 SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd)
    return systemError("open a socket", errno);
  int code = 0;
  if (::connect(fd.get(), name->get(), name->length) != 0)
    code = errno;
  if (code == EINPROGRESS || code == EINTR) {
    if (!waitFor(fd.get(), POLLOUT, Deadline(2)))
      return systemError("connect to " + address.text(), ETIMEDOUT);
    socklen_t length = sizeof code;
    getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &code, &length);
  }
  if (code)
    return systemError("connect to " + address.text(), code);
  prepareStream(fd.get());
  return fd;
}

Fd acceptFrom(int listener) {
  Fd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd)
    prepareStream(fd.get());
  return fd;
}

Io sendAll(int fd, const void *data, size_t bytes, const Deadline &deadline) {
  auto *from = static_cast<const char *>(data);
  while (bytes) {
    ssize_t n = ::send(fd, from, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      from += n;
      bytes -= static_cast<size_t>(n);
    } else if (errno == EAGAIN || errno == EINTR) {
      if (!waitFor(fd, POLLOUT, deadline))
        return Io::TimedOut;
    } else {
      return Io::Closed;
    }
  }
  return Io::Done;
}

Io receiveAll(int fd, void *data, size_t bytes, const Deadline &deadline) {
  auto *to = static_cast<char *>(data);
  while (bytes) {
    ssize_t n = ::recv(fd, to, bytes, MSG_DONTWAIT);
    if (n > 0) {
      to += n;
      bytes -= static_cast<size_t>(n);
    } else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
      if (!waitFor(fd, POLLIN, deadline))
        return Io::TimedOut;
    } else {
      return Io::Closed;
    }
  }
  return Io::Done;
}

Io sendWithFd(int socket, const void *data, size_t bytes, int fd,
              const Deadline &deadline) {
  iovec piece{const_cast<void *>(data), 1};
  alignas(cmsghdr) char buffer[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = buffer;
  message.msg_controllen = sizeof buffer;
  cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(int));
  while (::sendmsg(socket, &message, MSG_NOSIGNAL) != 1) {
    if (errno != EAGAIN && errno != EINTR)
      return Io::Closed;
    if (!waitFor(socket, POLLOUT, deadline))
      return Io::TimedOut;
  }
  return sendAll(socket, static_cast<const char *>(data) + 1, bytes - 1,
                 deadline);
}

Io receiveWithFd(int socket, void *data, size_t bytes, Fd &fd,
                 const Deadline &deadline) {
  iovec piece{data, 1};
  alignas(cmsghdr) char buffer[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = buffer;
  message.msg_controllen = sizeof buffer;
  for (;;) {
    ssize_t n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (n == 1)
      break;
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
      return Io::Closed;
    if (!waitFor(socket, POLLIN, deadline))
      return Io::TimedOut;
  }
  cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (header && header->cmsg_level == SOL_SOCKET &&
      header->cmsg_type == SCM_RIGHTS) {
    int received = -1;
    std::memcpy(&received, CMSG_DATA(header), sizeof(int));
    fd = Fd(received);
  }
  return receiveAll(socket, static_cast<char *>(data) + 1, bytes - 1, deadline);
}

Result<std::pair<Fd, Fd>> socketPair(bool tcp) {
  if (tcp) {
    Address address{false, "127.0.0.1", 0};
    Result<Fd> listener = listenOn(address);
    RECKON_TRY(listener.status());
    address.port = boundPort(listener->get());
    bool retry = false;
    Result<Fd> left = connectTo(address, retry);
    RECKON_TRY(left.status());
    Fd right;
    while (!right)
      right = acceptFrom(listener->get());
    return std::pair<Fd, Fd>(std::move(*left), std::move(right));
  }
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                   fds) != 0)
    return systemError("open a pair of sockets", errno);
  return std::pair<Fd, Fd>(Fd(fds[0]), Fd(fds[1]));
}

} // namespace reckon::comm
