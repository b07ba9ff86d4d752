// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/frame_type.h"
#include "base/result.h"
#include "base/time.h"
#include "batcher/batcher.h"
#include "chunker/spec.h"
#include "gpu/cuda/devices.h"
#include "service/config/address.h"
#include "service/log/log_line.h"

namespace millrace {

// The configuration, once it is known to make sense (docs/configuration.md lists the keys). Whoever
// needs a value gets that value: only service/ knows these types.

struct ListenOptions {
  TcpAddress websocket{"127.0.0.1", 8080};
  std::optional<TcpAddress> zeromq = TcpAddress{"127.0.0.1", 5555};  // nothing: off
  TcpAddress admin{"127.0.0.1", 9464};
  std::string workers;                            // path of the Unix socket
  std::uint32_t threads = 1;                      // io threads
  std::size_t receive_buffer = 64 << 10;          // bytes that the kernel keeps of each client
  bool plain = false;                             // addresses off loopback may go without TLS
  std::optional<TcpAddress> workers_remote = {};  // of other machines; nothing: none come
  std::vector<std::string> origins = {};          // of pages in browsers that may open streams
  bool try_page = false;                          // the try page is served, and may open streams
  bool explain = false;                           // streams may be opened with explain=1

  bool operator==(const ListenOptions&) const = default;
};

struct PipelineOptions {
  std::string name = "default";
  FrameType frames;              // as doors convert to, and slabs hold
  Element dtype = Element::s16;  // what the worker sees
  ChunkRule chunk;
  BatchRule batch;
  Duration worker_wait{};              // how long a stream waits for a worker
  Duration bye_wait{};                 // how long a leaving worker keeps a stream in mid-segment
  std::uint64_t stream_frames = 0;     // that a stream may hold; a window fits
  std::uint64_t pause_frames = 0;      // and above that, after long pauses
  std::optional<Duration> shed_after;  // that frames wait before they are dropped

  bool operator==(const PipelineOptions&) const = default;
};

// The most that `connections` can be, now or after a reload.
inline constexpr std::uint32_t most_connections = 1'000'000;

// Bounds on memory and time, of one thing each. Always on.
struct LimitOptions {
  std::size_t message = 64 << 10;                    // bytes of a client's message
  std::size_t send_buffer = 64 << 10;                // bytes that wait: no more rows for now
  std::uint32_t connections = 10'000;                // clients of the process
  std::size_t slab_bytes = 1ull << 30;               // all slabs of all lanes
  Duration stream_buffer = std::chrono::seconds(5);  // signal that a stream may hold
  Duration pause_buffer = std::chrono::minutes(2);   // and more of it after long pauses
  Duration drain = std::chrono::seconds(25);         // SIGTERM to exit
  Duration linger{};                                 // of it: new streams are still accepted
  Duration notice{};                                 // of it: clients leave by themselves

  bool operator==(const LimitOptions&) const = default;
};

struct Options {
  ListenOptions listen;
  std::vector<PipelineOptions> pipelines;
  LimitOptions limits;
  DeviceRule gpu;
  LogOptions log = {};

  bool operator==(const Options&) const = default;
};

struct Configuration {
  Options options;
  std::vector<std::string> warnings;  // a line each: keys that do nothing yet
  std::string file;                   // empty: defaults
  bool sets_device_slabs = false;     // [gpu] slab_bytes is not that of limits
};

// What is wrong: one line, `file:line: key 'name' = value: what is allowed`.
using ConfigError = std::string;

// `file` is for messages. An empty text is the working default.
Result<Configuration, ConfigError> parse_options(std::string_view text, const std::string& file);
Result<Configuration, ConfigError> load_options(const std::string& path);

}  // namespace millrace
