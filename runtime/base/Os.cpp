//===- Os.cpp - real and fake clocks and files ----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Os.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace reckon {
namespace {

int64_t readClock(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

class SystemClock : public Clock {
public:
  int64_t monotonicNs() override { return readClock(CLOCK_MONOTONIC); }
  int64_t wallNs() override { return readClock(CLOCK_REALTIME); }
};

Error fileError(const char *verb, const std::string &path, int code) {
  return makeError(ExitCode::Environment, std::string("cannot ") + verb + " " +
                                              path + ": " +
                                              std::strerror(code));
}

/// Writes all of `bytes` to an open descriptor, closing it in every case.
Status writeAndClose(int fd, const std::string &path, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0) {
      int code = errno;
      ::close(fd);
      return fileError("write", path, code);
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  if (::close(fd) != 0)
    return fileError("write", path, errno);
  return Status();
}

class SystemFiles : public FileSystem {
public:
  Result<std::string> read(const std::string &path) override {
    int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
      return fileError("read", path, errno);
    std::string bytes;
    char block[1 << 16];
    for (;;) {
      ssize_t n = ::read(fd, block, sizeof block);
      if (n < 0 && errno == EINTR)
        continue;
      if (n < 0) {
        int code = errno;
        ::close(fd);
        return fileError("read", path, code);
      }
      if (n == 0)
        break;
      bytes.append(block, static_cast<size_t>(n));
    }
    ::close(fd);
    return bytes;
  }

  Status write(const std::string &path, std::string_view bytes) override {
    std::string aside = path + ".tmp" + std::to_string(::getpid());
    int fd = ::open(aside.c_str(),
                    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
      return fileError("write", path, errno);
    if (Status done = writeAndClose(fd, path, bytes); !done) {
      ::unlink(aside.c_str());
      return done;
    }
    if (::rename(aside.c_str(), path.c_str()) != 0) {
      int code = errno;
      ::unlink(aside.c_str());
      return fileError("write", path, code);
    }
    return Status();
  }

  Status append(const std::string &path, std::string_view bytes) override {
    int fd = ::open(path.c_str(),
                    O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
      return fileError("append to", path, errno);
    return writeAndClose(fd, path, bytes);
  }

  Status createDirectories(const std::string &path) override {
    std::error_code code;
    std::filesystem::create_directories(path, code);
    if (code)
      return fileError("create folder", path, code.value());
    return Status();
  }

  bool exists(const std::string &path) override {
    std::error_code code;
    return std::filesystem::exists(path, code);
  }

  Result<std::vector<std::string>> list(const std::string &dir) override {
    std::error_code code;
    std::filesystem::directory_iterator it(dir, code), end;
    if (code)
      return fileError("list", dir, code.value());
    std::vector<std::string> names;
    for (; it != end; it.increment(code)) {
      if (code)
        return fileError("list", dir, code.value());
      names.push_back(it->path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
};

} // namespace

Clock &systemClock() {
  static SystemClock clock;
  return clock;
}

FileSystem &systemFiles() {
  static SystemFiles files;
  return files;
}

Result<std::string> FakeFileSystem::read(const std::string &path) {
  auto it = files.find(path);
  if (it == files.end())
    return fileError("read", path, ENOENT);
  return it->second;
}

Status FakeFileSystem::write(const std::string &path, std::string_view bytes) {
  files[path] = std::string(bytes);
  return Status();
}

Status FakeFileSystem::append(const std::string &path, std::string_view bytes) {
  files[path].append(bytes);
  return Status();
}

Status FakeFileSystem::createDirectories(const std::string &) {
  return Status();
}

bool FakeFileSystem::exists(const std::string &path) {
  if (files.count(path))
    return true;
  auto below = files.lower_bound(path + "/");
  return below != files.end() && below->first.rfind(path + "/", 0) == 0;
}

Result<std::vector<std::string>> FakeFileSystem::list(const std::string &dir) {
  std::vector<std::string> names;
  for (const auto &[path, bytes] : files) {
    if (path.rfind(dir + "/", 0) != 0)
      continue;
    std::string rest = path.substr(dir.size() + 1);
    std::string name = rest.substr(0, rest.find('/'));
    if (names.empty() || names.back() != name)
      names.push_back(name);
  }
  return names;
}

} // namespace reckon
