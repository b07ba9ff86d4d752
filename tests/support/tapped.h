// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chunker/chunker.h"
#include "streams/stream_tap.h"

namespace millrace::test {

// What the tap of one stream has seen.
struct Tapped {
  struct Answered {
    std::uint64_t seq = 0;
    std::uint64_t batch = 0;
    std::string data;
    bool operator==(const Answered&) const = default;
  };
  struct Closed {
    StreamClosing why{};
    bool ended = false;
    bool operator==(const Closed&) const = default;
  };

  // A tap that writes here.
  std::unique_ptr<StreamTap> tap();

  // The rows that a chunker cuts from the events.
  std::vector<Row> cut_again(const Spec& spec) const {
    Chunker chunker(spec);
    std::vector<Row> all;
    for (const auto& [event, at] : events) {
      chunker.add(event);
      while (const auto row = chunker.next()) all.push_back(*row);
    }
    return all;
  }

  std::vector<std::pair<Event, Time>> events;
  std::vector<std::byte> frames;  // of all `frames` events, one after the other
  std::vector<std::byte> texts;   // of all events that have one
  std::vector<Row> rows;
  std::vector<Answered> answers;
  std::vector<Answered> messages;  // `batch` is the number of the message
  std::vector<Closed> closed;
};

class WritingTap final : public StreamTap {
 public:
  explicit WritingTap(Tapped& into) : into_(into) {}
  void event(const Event& event, Time arrived, const std::array<Bytes, 2>& frames) override {
    into_.events.emplace_back(event, arrived);
    auto& values = event.has_text() ? into_.texts : into_.frames;
    for (const Bytes part : frames) values.insert(values.end(), part.begin(), part.end());
  }
  void row(const Row& row) override { into_.rows.push_back(row); }
  void answered(std::uint64_t seq, BatchId batch, const Answer& answer) override {
    into_.answers.push_back({seq, number(batch), answer.data});
  }
  void message(std::uint64_t number, std::uint64_t seq, const Answer& message) override {
    into_.messages.push_back({seq, number, message.data});
  }
  void closed(StreamClosing why, bool ended) override { into_.closed.push_back({why, ended}); }

 private:
  Tapped& into_;
};

inline std::unique_ptr<StreamTap> Tapped::tap() { return std::make_unique<WritingTap>(*this); }

}  // namespace millrace::test
