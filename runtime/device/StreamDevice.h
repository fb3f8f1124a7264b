//===- StreamDevice.h - a device that orders its own work -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A GPU, as the executor sees it. Everything is issued: kernels, copies, events
// and graphs wait on streams until the device reaches them. Streams are
// numbered as in the plan; an event means its newest record, and waiting for
// one that was never recorded passes.
//
// No call waits for the device unless it says so. An error may be that of work
// issued earlier.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_DEVICE_STREAMDEVICE_H
#define RECKON_RUNTIME_DEVICE_STREAMDEVICE_H

#include "runtime/device/Device.h"

#include <span>
#include <string>

namespace reckon::device {

/// Where a device's memory is, in bytes, beside the arena.
struct DeviceMemory {
  int64_t total = 0;
  int64_t free = 0;
  int64_t context = 0;   ///< in use when this device was opened, by anybody
  int64_t libraries = 0; ///< taken by libraries when they started
};

class StreamDevice : public Device {
public:
  StreamDevice *asStreams() override { return this; }

  virtual Result<DeviceMemory> memory() = 0;

  /// Makes the plan's streams. Once, before kernels are prepared.
  virtual Status openStreams(std::span<const std::string> names) = 0;
  /// What the device's own library calls this stream.
  virtual void *nativeStream(int stream) const = 0;

  /// A new event; a timed one can be asked for its time.
  virtual Result<uint32_t> makeEvent(bool timed) = 0;
  virtual Status record(uint32_t event, int stream) = 0;
  virtual Status wait(uint32_t event, int stream) = 0;
  /// Whether the newest record was reached.
  virtual Result<bool> reached(uint32_t event) = 0;
  /// Seconds between the newest records of two timed events that were reached.
  virtual Result<double> secondsBetween(uint32_t from, uint32_t to) = 0;

  /// Host memory that the device can read while the host goes on; freed with
  /// the device.
  virtual Result<void *> pinned(int64_t bytes) = 0;
  /// From pinned memory, which must stay as it is until the stream is past.
  virtual Status upload(void *to, const void *from, int64_t bytes,
                        int stream) = 0;
  /// Within device memory.
  virtual Status copyOnStream(void *to, const void *from, int64_t bytes,
                              int stream) = 0;

  /// What is issued to `stream`, and to streams that wait for it, until the
  /// capture ends is kept as a graph instead of being run.
  virtual Status beginCapture(int stream) = 0;
  virtual Result<uint32_t> endCapture(int stream) = 0;
  virtual Status launchGraph(uint32_t graph, int stream) = 0;

  /// Whether everything issued to all streams has ended.
  virtual Result<bool> finished() = 0;
  /// After an error: what is on the streams may never end, so that nothing is
  /// waited for or freed any more.
  virtual void abandon() = 0;
  /// For a loop that waits for finished(): lets the device or others go on.
  virtual void relax() = 0;
};

} // namespace reckon::device

#endif // RECKON_RUNTIME_DEVICE_STREAMDEVICE_H
