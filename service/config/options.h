// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"
#include "base/frame_type.h"
#include "base/rates/rate.h"
#include "base/result.h"
#include "base/time.h"
#include "batcher/batcher.h"
#include "chunker/spec.h"
#include "gpu/cuda/devices.h"
#include "input/endpoint_rule.h"
#include "service/config/address.h"
#include "service/log/log_line.h"
#include "transport/sessions/model_pipelines.h"

namespace millrace {

// The checked configuration; docs/configuration.md lists the keys. Only service/, replay/,
// checking/ and commands/ use these types: other code is passed the values that it needs.

struct ListenOptions {
  TcpAddress websocket{"127.0.0.1", 8080};
  std::optional<TcpAddress> zeromq = TcpAddress{"127.0.0.1", 5555};  // nullopt: off
  TcpAddress admin{"127.0.0.1", 9464};
  std::string workers;                            // path of the Unix socket
  std::uint32_t threads = 1;                      // io threads
  std::size_t receive_buffer = 64 << 10;          // bytes per client in the kernel (SO_RCVBUF)
  bool plain = false;                             // allows addresses off loopback without TLS
  std::optional<TcpAddress> workers_remote = {};  // for workers on other machines; nullopt: off
  std::vector<std::string> proxies = {};          // networks whose clients' addresses are believed
  std::vector<std::string> origins = {};          // origins of web pages that may open streams
  std::vector<std::string> names = {};  // host names by which browsers may reach the admin listener
  bool try_page = false;                // serves the try page, which may open streams
  bool explain = false;                 // streams may be opened with explain=1

  bool operator==(const ListenOptions&) const = default;
};

// TLS of the listeners: paths of files in the format PEM.
struct TlsOptions {
  std::string certificate = {};  // the service's, and behind it those between; empty: no TLS
  std::string key = {};          // belongs to the certificate
  std::string client_ca = {};    // clients must show a certificate of it; empty: they need not
  bool admin = false;            // the admin listener has TLS too

  bool on() const { return !certificate.empty(); }
  bool operator==(const TlsOptions&) const = default;
};

// Which clients may open streams, and resume them.
struct AccessRule {
  std::string tokens = {};  // the file with the accepted tokens; empty: none
  std::string tenants =
      {};  // the file with the tenants; empty: none. Without both, each client may
  std::string resume_key = {};  // the file with the keys of resume tokens; empty: a random key

  bool operator==(const AccessRule&) const = default;
};

// Which streams of a pipeline are recorded.
struct RecordRule {
  double share = 1;      // part of the streams, drawn from their names; above 0, at most 1
  bool answers = false;  // also the answers to them

  bool operator==(const RecordRule&) const = default;
};

// The upper limit of the slots of a worker, and of the rows of a batch.
inline constexpr std::uint32_t most_slots = 65'536;

struct PipelineOptions {
  std::string name = "default";
  FrameType frames;              // type of the frames that the service keeps
  Element dtype = Element::s16;  // type of the values that the worker receives
  ChunkRule chunk;
  std::optional<EndpointRule> endpoint;  // ends segments; nullopt: only clients do
  BatchRule batch;
  bool required = true;                   // the service is not ready without a worker of it
  Duration worker_wait{};                 // longest time that a stream waits for a worker
  Duration bye_wait{};                    // longest time that a leaving worker keeps a segment
  Duration answer_wait{};                 // longest time for an answer of a worker
  Duration first_answer_wait{};           // the same, for its first answer
  std::uint64_t stream_frames = 0;        // that a stream may hold; at least one window
  std::uint64_t pause_frames = 0;         // that it may hold in addition, after long pauses
  RateRule pace = {};                     // seconds of audio of a stream per second
  std::size_t longest_post = 0;           // bytes of a client's message to the worker
  std::optional<Duration> shed_after;     // frames that wait longer are dropped; nullopt: off
  std::optional<RecordRule> record = {};  // nullopt: off

  bool operator==(const PipelineOptions&) const = default;
};

// The upper limit of `connections`, also for a reload.
inline constexpr std::uint32_t most_connections = 1'000'000;

// Limits on memory and time, which are always on, and whether there are limits per address and per
// second.
struct LimitOptions {
  static constexpr std::size_t longest_text = 256 << 10;

  std::size_t message = 64 << 10;                    // bytes of a client's message with frames
  std::size_t text = 16 << 10;                       // bytes of a client's message to the worker
  std::size_t send_buffer = 64 << 10;                // unwritten bytes at which rows are held back
  Duration resume = std::chrono::seconds(15);        // that a stream waits for its lost client
  std::size_t resume_buffer = 1 << 20;               // bytes kept until a client acknowledges them
  std::uint32_t connections = 10'000;                // clients of the process
  std::size_t slab_bytes = 1ull << 30;               // all slabs of all lanes
  Duration stream_buffer = std::chrono::seconds(5);  // signal that a stream may hold
  Duration pause_buffer = std::chrono::minutes(2);   // more signal, after long pauses
  Duration drain = std::chrono::seconds(25);         // from SIGTERM to exit
  Duration linger{};                                 // part of it: new streams are still accepted
  Duration notice{};                                 // part of it: clients leave by themselves
  bool is_public = false;                            // the limits of edge_rules() are on

  bool operator==(const LimitOptions&) const = default;
};

// The recorder. Used if a pipeline has `record`.
struct RecordingOptions {
  std::string directory = {};                        // for the recording files; empty: none
  std::size_t file_size = std::size_t{256} << 20;    // bytes of a recording file
  Duration commit = std::chrono::milliseconds(200);  // between commits
  std::size_t queue = std::size_t{64} << 20;         // bytes of the queue to the recorder
  std::size_t keep = std::size_t{1} << 40;           // bytes of all recording files
  Duration keep_for = std::chrono::hours(720);       // age of a recording file
  std::size_t min_free = std::size_t{1} << 30;       // recording is suspended with less free space

  bool operator==(const RecordingOptions&) const = default;
};

// The protocol of another vendor's clients.
struct ProtocolOptions {
  enum class Name : std::uint8_t { openai, deepgram };

  Name name{};
  std::optional<TcpAddress> listen = {};  // nullopt: at its path of ListenOptions::websocket
  ModelPipelines pipelines = {};          // pipelines of its streams
  std::string tenant = {};                // the tenant of all its clients; empty: they need tokens

  bool operator==(const ProtocolOptions&) const = default;
};

struct Options {
  ListenOptions listen;
  TlsOptions tls = {};
  AccessRule access = {};
  std::vector<PipelineOptions> pipelines;
  std::vector<ProtocolOptions> protocols;
  LimitOptions limits;
  DeviceRule gpu;
  LogOptions log = {};
  RecordingOptions recording = {};

  bool operator==(const Options&) const = default;
};

struct Configuration {
  Options options;
  std::string file;                // empty: no file, all defaults
  bool sets_device_slabs = false;  // [gpu] slab_bytes is set, not that of [limits]
};

class Section;
// The table [log].
LogOptions read_log(Section log);

// One line like `file:line: key 'name' = value: what is allowed`.
using ConfigError = std::string;

// `file` is the name in messages. An empty text gives a configuration of defaults that works.
Result<Configuration, ConfigError> parse_options(std::string_view text, const std::string& file);
Result<Configuration, ConfigError> load_options(const std::string& path);

}  // namespace millrace
