// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/frame_type.h"
#include "chunker/chunker.h"
#include "chunker/spec.h"
#include "cutting/event_sources.h"
#include "cutting/stats.h"
#include "input/endpoint_rule.h"

namespace millrace {

// Cuts one stream into rows as the service does for a client that sends without pauses and whose
// rows never wait. Confined to one thread.
class CutStream {
 public:
  struct Rule {
    FrameType frames;
    ChunkRule chunk;
    std::optional<EndpointRule> endpoint;
    std::string name;  // name of the stream: decides which sizes the rule `random` draws
  };
  // Receives an event that has entered the chunker, before the rows that it cuts.
  using OnEvent = std::function<void(const Event&)>;
  // Receives a row. If it returns false, no more rows are cut.
  using OnRow = std::function<bool(const Row&)>;

  CutStream(Rule rule, OnEvent on_event, OnRow on_row);

  // Adds frames. `values` are their values; they may be empty if endpoints are not by voice.
  void add(std::uint64_t count, Bytes values);
  void end();

  const Chunker& chunker() const { return chunker_; }
  const EventSources& sources() const { return sources_; }

 private:
  void feed(const Event& event, Bytes values = {});
  void feed_endpoints();
  void feed_decisions();

  const Rule rule_;
  const OnEvent on_event_;
  const OnRow on_row_;
  CutStats stats_;
  std::uint32_t chosen_size_ = 0;
  EventSources sources_;
  Chunker chunker_;
  bool stopped_ = false;
};

}  // namespace millrace
