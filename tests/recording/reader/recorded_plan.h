// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/recording/reader/recorded_directory.h"
#include "tests/recording/slice_plan.h"

namespace millrace::recording {

// What was recorded of a stream: its events by number, with their positions and frames. Events that
// the recorder dropped are absent.
struct RecordedEvents {
  struct One {
    Event event{};
    std::uint64_t position = 0;
    std::vector<std::byte> frames{};
    std::string text{};
  };
  std::map<std::uint64_t, One> events{};
  std::vector<std::uint64_t> answers{};  // their rows
  bool closed = false;

  void add(const PlannedSlice& planned) {
    std::uint64_t number = planned.facts.first_event, position = planned.facts.begin;
    std::size_t byte = 0;
    for (const RecordedEvent& timed : planned.events) {
      const Event& event = timed.event;
      One one{.event = event, .position = position, .text = std::string(timed.text)};
      if (event.kind == Event::Kind::frames) {
        const std::size_t bytes = event.count * planned.meta.frames.bytes();
        one.frames.assign(planned.frames.data() + byte, planned.frames.data() + byte + bytes);
        byte += bytes;
      }
      if (event.kind == Event::Kind::frames || event.kind == Event::Kind::gap)
        position += event.count;
      events[number++] = one;
    }
    for (const RecordedAnswer& answer : planned.answers) answers.push_back(answer.seq);
    closed = planned.facts.closing.has_value();
  }
};

// Slices of a plan, in several recording files, with commits at random. Some slices say that events
// were lost which earlier slices have, as after a commit that failed and is on the disk after all.
class RecordedPlan : public RecordedDirectory {
 public:
  explicit RecordedPlan(std::uint64_t seed) : random_(seed) {
    SlicePlan plan(seed, 1 + draw(3), 1 + draw(3000));
    std::map<std::uint64_t, LostEvents> last;
    for (FileNumber file = 1 + draw(3); file > 0; --file) {
      FileWriter writer = begin(++files);
      for (std::uint64_t slices = 1 + draw(40); slices > 0; --slices) {
        PlannedSlice planned = plan.next();
        const std::uint64_t stream = planned.meta.number;
        if (draw(9) == 0 && last.contains(stream) && !planned.facts.lost)
          planned.facts.lost = last[stream];
        last[stream] = {.first_event = planned.facts.first_event, .begin = planned.facts.begin};
        streams[stream].add(planned);
        const Bytes frames = planned.frames;
        writer.add(planned.meta, planned.number, planned.wall, planned.slice(), {&frames, 1});
        if (draw(9) == 0) expect(writer.write());
      }
      expect(writer.write());
      if (file > 1 || draw(1) == 0) expect(writer.seal());
    }
  }

  // Cuts a file, deletes it, or changes some of its bytes.
  void damage() {
    const std::vector<FileNumber> numbers = directory.list();
    if (numbers.empty()) return;
    const FileNumber number = numbers[draw(numbers.size() - 1)];
    const std::uint64_t bytes = std::filesystem::file_size(file(number));
    const std::uint64_t how = draw(5);
    if (how == 0) expect(directory.remove(number));
    if (how == 1) std::filesystem::resize_file(file(number), draw(bytes));
    if (how < 2) return;
    std::fstream content(file(number), std::ios::in | std::ios::out | std::ios::binary);
    for (std::uint64_t i = 0; i < how; ++i) {
      content.seekp(static_cast<std::streamoff>(draw(bytes)));
      content.put(static_cast<char>(random_()));
    }
  }

  std::uint64_t draw(std::uint64_t most) { return random_() % (most + 1); }

  std::map<std::uint64_t, RecordedEvents> streams{};
  FileNumber files = 0;

 private:
  std::mt19937_64 random_;
};

}  // namespace millrace::recording
