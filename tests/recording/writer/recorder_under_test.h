// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "recording/files/recording_file.h"
#include "recording/writer/recorder.h"
#include "schemas/slices/slice.h"
#include "tests/recording/writer/kept_slices.h"
#include "tests/support/temporary_directory.h"

namespace millrace::recording {

// Notices, a line each.
class KeptNotices final : public RecorderNotices {
 public:
  void skipped(std::string_view file, std::string_view) override {
    add("skipped " + std::string(file));
  }
  void shared(unsigned mode) override { add("shared " + std::to_string(mode)); }
  void recovered(const Recovered& what) override {
    add("recovered " + std::to_string(what.file) + ", streams " +
        std::to_string(what.streams.size()));
  }
  void sealed(FileNumber file) override { add("sealed " + std::to_string(file)); }
  void left_unsealed(FileNumber file, std::string_view) override {
    add("unsealed " + std::to_string(file));
  }
  void suspended(std::string_view) override { add("suspended"); }
  void resumed() override { add("resumed"); }
  void dropped(std::uint64_t slices, DropReason) override {
    add("dropped " + std::to_string(slices));
  }
  void failed(std::string_view) override { add("failed"); }
  void rewritten(FileNumber file, std::uint64_t) override {
    add("rewritten " + std::to_string(file));
  }
  void deleted(const Deleted& what) override {
    add("deleted " + std::to_string(what.files.size()) + ", too old " +
        std::to_string(what.by_age));
  }

  std::vector<std::string> all;

 private:
  void add(std::string line) { all.push_back(std::move(line)); }
};

// All slices of a directory, by stream, in the order of the files.
inline std::map<std::uint64_t, std::vector<KeptSlice>> read_back(const std::string& path) {
  std::map<std::uint64_t, std::vector<KeptSlice>> all;
  const Directory directory = expect(Directory::open(path, Directory::For::reading));
  for (const FileNumber number : directory.list()) {
    RecordingFile file = expect(RecordingFile::open(directory, number));
    SliceDecoder decoder;
    for (std::size_t chunk = 0; chunk < file.chunks().size(); ++chunk) {
      for (const SliceMessage& message : expect(file.messages(chunk))) {
        const StreamMeta& meta = file.channels().at(message.channel);
        const Slice slice = expect(decoder.slice(message.bytes, meta.number, meta.frames.bytes()));
        KeptSlice kept{.number = message.number,
                       .first_event = slice.first_event,
                       .begin = slice.begin,
                       .size = slice.size,
                       .events = {slice.events.begin(), slice.events.end()},
                       .frames = {slice.frames.begin(), slice.frames.end()},
                       .lost = slice.lost,
                       .closing = slice.closing};
        for (const RecordedAnswer& answer : slice.answers) {
          kept.answers.emplace_back(answer.seq, answer.data);
          kept.batches.push_back(millrace::number(answer.batch));
        }
        all[slice.stream].push_back(std::move(kept));
      }
    }
  }
  return all;
}

// A recorder of one io thread, in virtual time.
struct RecorderUnderTest {
  explicit RecorderUnderTest(std::size_t pages = 256)
      : pool(pages * PagePool::page_bytes, 1, sizeof(std::int16_t)) {}

  void start() {
    settings.directory = directory.path();
    settings.wall = [this] { return now.time_since_epoch(); };
    recorder = std::make_unique<Recorder>(settings, pool, stats, notices);
  }
  // The stream with this number opens.
  StreamPen open(std::uint64_t number) {
    StreamPen pen(writer, std::make_unique<StreamMeta>(meta_of(number)));
    pen.event({.kind = Event::Kind::open}, now, {});
    return pen;
  }
  // Time passes; at its end the recorder has all that the thread wrote.
  void pass(Duration time) {
    writer.hand_over();
    pool.filled().drain(taken);
    for (Page* const page : taken) recorder->take(*page, now);
    recorder->work(now);
    now += time;
    recorder->work(now);
  }
  void commit() { pass(settings.commit); }
  auto read() const { return read_back(directory.path()); }
  std::vector<FileNumber> files() const {
    return expect(Directory::open(directory.path(), Directory::For::reading)).list();
  }
  bool is_sealed(FileNumber file) const {
    const auto reading = expect(Directory::open(directory.path(), Directory::For::reading));
    return expect(RecordingFile::open(reading, file)).sealed();
  }

  TemporaryDirectory directory;
  Time now = second(100);
  RecorderSettings settings{.min_free = 0};
  RecordingStats stats;
  TapStats taps;
  KeptNotices notices;
  PagePool pool;
  PageWriter writer{pool, 0, taps};
  std::unique_ptr<Recorder> recorder;
  std::vector<Page*> taken;
};

}  // namespace millrace::recording
