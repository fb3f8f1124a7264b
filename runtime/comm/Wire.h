//===- Wire.h - descriptors, addresses and whole messages -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Thin helpers over stream sockets. Every descriptor is close-on-exec: a
// child that inherited one would keep a dead rank's connection open.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_COMM_WIRE_H
#define RECKON_RUNTIME_COMM_WIRE_H

#include "runtime/base/Status.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace reckon::comm {

/// Owns a file descriptor.
class Fd {
public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd &operator=(Fd &&other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { reset(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();

private:
  int fd_ = -1;
};

int64_t nowNs();

/// A point in time after which blocking calls give up. 0 seconds: never. They
/// also give up soon after another thread has set `cancel`.
class Deadline {
public:
  explicit Deadline(double seconds, const std::atomic<bool> *cancel = nullptr)
      : end_(seconds > 0 ? nowNs() + static_cast<int64_t>(seconds * 1e9) : 0),
        cancel_(cancel) {}
  bool passed() const {
    return (cancel_ && cancel_->load()) || (end_ && nowNs() >= end_);
  }
  /// For poll(): milliseconds left, at most `limit`.
  int pollMs(int limit) const;

private:
  int64_t end_;
  const std::atomic<bool> *cancel_;
};

/// How a transfer on a socket ended.
enum class Io { Done, Closed, TimedOut };

/// "unix:@name" (abstract), "unix:/path" or "tcp:host:port".
struct Address {
  bool unixDomain = false;
  std::string host; // or the socket's name
  int port = 0;
  static Result<Address> parse(const std::string &text);
  std::string text() const;
};

/// A listening, non-blocking socket. TCP port 0 takes a free one. When the
/// address belongs to no interface of this machine and `anyAddress`, listens on
/// all of them.
Result<Fd> listenOn(const Address &address, bool anyAddress = false);

/// Port a TCP socket is bound to.
int boundPort(int fd);
/// Numeric address of this or the other end; "" for a Unix socket.
std::string localHost(int fd);
std::string peerHost(int fd);

/// Connects, blocking for a short time; non-blocking socket afterwards.
/// `retry` says whether trying again later can help.
Result<Fd> connectTo(const Address &address, bool &retry);

/// A pending connection, or an empty Fd when there is none.
Fd acceptFrom(int listener);

/// Non-blocking, no delay for TCP.
void prepareStream(int fd);

Io sendAll(int fd, const void *data, size_t bytes, const Deadline &deadline);
Io receiveAll(int fd, void *data, size_t bytes, const Deadline &deadline);

/// The same with a descriptor riding on the first byte (Unix sockets only).
/// receiveWithFd() leaves `fd` empty when none came.
Io sendWithFd(int socket, const void *data, size_t bytes, int fd,
              const Deadline &deadline);
Io receiveWithFd(int socket, void *data, size_t bytes, Fd &fd,
                 const Deadline &deadline);

/// Two connected stream sockets within this process.
Result<std::pair<Fd, Fd>> socketPair(bool tcp);

/// "connect to HOST: REASON" as an Environment error.
Error systemError(const std::string &what, int code);

} // namespace reckon::comm

#endif // RECKON_RUNTIME_COMM_WIRE_H
