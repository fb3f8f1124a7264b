//===- TextDataset.cpp - samples of a text file ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/TextDataset.h"

#include "runtime/data/Permutation.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace reckon::data {
namespace {

class TextDataset : public SampleSource {
public:
  TextDataset(const uint8_t *bytes, uint64_t size, int64_t sequenceLength,
              uint64_t seed)
      : bytes_(bytes), size_(size), sequence_(sequenceLength), seed_(seed),
        windows_((size - 1) / static_cast<uint64_t>(sequenceLength)) {}
  TextDataset(const TextDataset &) = delete;
  TextDataset &operator=(const TextDataset &) = delete;
  ~TextDataset() override { munmap(const_cast<uint8_t *>(bytes_), size_); }

  uint64_t windows() const override { return windows_; }

  void read(uint64_t sample, int32_t *tokens, int32_t *targets) const override {
    Permutation order(windows_, seed_, sample / windows_);
    const uint8_t *window =
        bytes_ + order(sample % windows_) * static_cast<uint64_t>(sequence_);
    for (int64_t i = 0; tokens && i < sequence_; ++i)
      tokens[i] = window[i];
    for (int64_t i = 0; targets && i < sequence_; ++i)
      targets[i] = window[i + 1];
  }

private:
  const uint8_t *bytes_;
  uint64_t size_;
  int64_t sequence_;
  uint64_t seed_;
  uint64_t windows_;
};

std::string join(const std::string &folder, const std::string &path) {
  return folder.empty() || folder.back() == '/' ? folder + path
                                                : folder + "/" + path;
}

Error unreadable(const std::string &path, const char *what) {
  return makeError(ExitCode::Environment,
                   path + ": cannot read the training text (" + what +
                       "): name another file with --data");
}

} // namespace

Result<std::string> resolveText(FileSystem &files,
                                const TextLocation &location) {
  if (!location.replacement.empty()) {
    if (files.exists(location.replacement))
      return location.replacement;
    return makeError(ExitCode::Environment,
                     location.replacement +
                         ": no such file: --data expects a text file");
  }
  if (location.path.empty())
    return makeError(ExitCode::BadSpec,
                     "the plan names no training data: set "
                     "training.data.path in the spec or pass --data PATH");
  std::vector<std::string> places;
  if (location.path.front() == '/') {
    places.push_back(location.path);
  } else {
    std::string folder = !location.base.empty() && location.base.front() == '/'
                             ? location.base
                             : join(location.planDirectory, location.base);
    places.push_back(join(folder, location.path));
    places.push_back(location.path);
  }
  std::string tried;
  for (const std::string &place : places) {
    if (files.exists(place))
      return place;
    tried += (tried.empty() ? "" : ", ") + place;
  }
  return makeError(ExitCode::Environment,
                   "no training text at " + tried + ": pass --data PATH");
}

Result<std::unique_ptr<SampleSource>> openText(const std::string &path,
                                               int64_t sequenceLength,
                                               uint64_t vocabSize,
                                               uint64_t seed) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return unreadable(path, std::strerror(errno));
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return unreadable(path, "not a regular file");
  }
  auto size = static_cast<uint64_t>(info.st_size);
  if (size < static_cast<uint64_t>(sequenceLength) + 1) {
    close(fd);
    return makeError(
        ExitCode::BadSpec,
        path + ": expected at least " + std::to_string(sequenceLength + 1) +
            " bytes (training.sequence_length + 1), got " +
            std::to_string(size) + ": use a longer text or a shorter sequence");
  }
  void *mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  int reason = errno;
  close(fd);
  if (mapped == MAP_FAILED)
    return unreadable(path, std::strerror(reason));
  const auto *bytes = static_cast<const uint8_t *>(mapped);
  auto dataset =
      std::make_unique<TextDataset>(bytes, size, sequenceLength, seed);
  if (vocabSize < 256)
    for (uint64_t i = 0; i < size; ++i)
      if (bytes[i] >= vocabSize)
        return makeError(
            ExitCode::BadSpec,
            path + ": expected token ids below model.vocab_size " +
                std::to_string(vocabSize) + ", got " +
                std::to_string(bytes[i]) + " at byte " + std::to_string(i) +
                ": use a vocabulary of 256 for the tokenizer byte");
  return std::unique_ptr<SampleSource>(std::move(dataset));
}

uint64_t sampleIndex(uint64_t step, uint64_t globalBatch, uint64_t microbatch,
                     uint64_t dp, uint64_t dpRank, uint64_t microBatchSize,
                     uint64_t i) {
  return step * globalBatch + microbatch * dp * microBatchSize +
         dpRank * microBatchSize + i;
}

} // namespace reckon::data
