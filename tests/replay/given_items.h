// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "replay/rows/recorded_items.h"

namespace millrace {

// A recorded stream of frames of two bytes, given by a test. The frames of each event are in memory
// of their own, as if each event were in another slice.
class GivenItems final : public RecordedItems {
 public:
  // Appends an event. Frames have the next values.
  void add(const Event& event, Time at = {}) {
    recording::ReadEvent read{.event = event, .at = at};
    if (event.kind == Event::Kind::frames) {
      auto& bytes = memory_.emplace_back(2 * event.count);
      for (std::byte& byte : bytes) {
        byte = static_cast<std::byte>(seed_ = seed_ * 31 + 7);
        values_.push_back(byte);
      }
      read.frames = bytes;
    }
    append(read);
  }
  void add(const recording::RecordedAnswer& answer) { append(answer); }
  void add(const recording::StreamTotals& totals) { append(totals); }
  // Answers before the next item are missing.
  void lose_answers() { loses_ = true; }

  // All frames, one after the other.
  const std::vector<std::byte>& values() const { return values_; }

  std::optional<recording::ReadItem> next() override {
    if (items_.empty()) return std::nullopt;
    auto [item, after_loss] = std::move(items_.front());
    items_.pop_front();
    if (after_loss) missing_.emplace_back();
    return item;
  }
  const std::vector<recording::MissingPart>& missing() const override { return missing_; }

 private:
  void append(const recording::ReadItem& item) {
    items_.emplace_back(item, std::exchange(loses_, false));
  }

  std::deque<std::pair<recording::ReadItem, bool>> items_;  // true: answers before it are missing
  bool loses_ = false;
  std::list<std::vector<std::byte>> memory_;
  std::vector<std::byte> values_;
  std::vector<recording::MissingPart> missing_;
  std::uint32_t seed_ = 1;
};

}  // namespace millrace
