// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result_head.h"

namespace millrace {

// The most bytes of a stream's options.
inline constexpr std::size_t longest_options = 4096;

// How the segments of a stream end, for protocols that let the client choose.
struct SegmentEnds {
  enum class By : std::uint8_t {
    pipeline,  // as the pipeline's streams
    client,    // only by the client's flush
    voice,     // as the pipeline's streams; if its segments do not end by themselves, by voice
  };
  By by = By::pipeline;
  // Silence after speech that ends a segment, if the voice detector decides. Nullopt: the
  // pipeline's.
  std::optional<std::chrono::milliseconds> silence = {};

  bool operator==(const SegmentEnds&) const = default;
};

// A client continues a stream whose connection was lost. The numbers are those of the client.
struct Resumption {
  std::string token{};        // that `ready` had last: a secret, in no log and no error
  std::uint64_t n = 0;        // it has all messages before this number
  ResumePoint point{};        // the newest one that it has received
  std::uint64_t results = 0;  // it has all results of rows before this number
  std::uint64_t flushed = 0;  // the same for `flushed`
  std::string set{};          // options that its commands before `point` have changed; or empty
  bool operator==(const Resumption&) const = default;
};

// The parameters of a stream that a client opens (docs/protocol.md). Parameters that are not given
// are nullopt or empty: the pipeline's default applies. The service checks the others against the
// pipeline.
struct StreamRequest {
  std::string pipeline = "default";
  std::string id{};                      // name of the stream; empty: the service generates one
  std::string options{};                 // for the worker, a JSON object; or empty
  std::optional<std::string> format{};   // s16le, f32le, mulaw, opus …
  std::optional<std::string> channel{};  // the number of one channel, or `mean`
  std::optional<std::string> chunk{};    // one of the pipeline's sizes: a time, or frames
  std::optional<double> rate{};          // frames per second, finite
  std::optional<std::uint32_t> channels{};
  std::optional<std::uint32_t> dim{};      // values per frame of features
  bool record = true;                      // false: the client declines; the stream is not recorded
  SegmentEnds ends{};                      // not a parameter of millrace.v1
  bool explain = false;                    // results have their time in each stage; WebSocket only
  bool resume = false;                     // the stream may survive its connection
  std::optional<Resumption> resumption{};  // requires: resume, and an id
};

// Additions of a client to its requests, and the servers that it trusts. Over tcp:// only the
// token is allowed.
struct ServiceAccess {
  // Sent as `Authorization: Bearer TOKEN`, or in the Open of each stream over tcp://; without
  // encryption over ws:// and tcp://. Neither logged nor part of an error message. Empty: none.
  std::string token = {};
  // Further fields of the request, as name and value.
  std::vector<std::pair<std::string, std::string>> headers = {};
  // File with certificates of authorities (PEM) that are trusted instead of the system's; only for
  // wss://. Empty: those of the system.
  std::string ca = {};
  // The client's own certificate, then those between it and its authority, and its key without a
  // password: files (PEM) for a server that asks for them. Both or neither; only for wss://.
  std::string certificate = {}, key = {};
};

}  // namespace millrace
