// SPDX-License-Identifier: Apache-2.0
// Writes recording files for tests in Python:
//
//   write_recording DIRECTORY example
//   write_recording DIRECTORY streams STREAMS SLICES FRAMES [POSITION ROWS]
//   write_recording DIRECTORY moved
//
// `example` is the file of docs/recording_format.md. `streams` writes slices of that many frames of
// 16-bit audio, one per stream in turn, with a commit every 4 MiB. With a position and a number of
// rows, the streams are opened anew there. `moved` writes a stream that was lost at position 14,
// and opened anew 30 s later at position 8 with row 2: recordings 1 and 2.
#include <cstdio>
#include <string>
#include <string_view>

#include "recording/files/file_writer.h"
#include "tests/recording/recording_files.h"

namespace millrace::recording {
namespace {

FileWriter begin(const Directory& directory) {
  return expect(FileWriter::begin(expect(directory.create(1)), head_of(1)));
}

void commit(FileWriter& writer) {
  expect(writer.write());
  expect(writer.sync());
}

void write_example(const Directory& directory) {
  FileWriter writer = begin(directory);
  const StreamMeta meta{
      .number = 17,
      .name = "call-4711",
      .pipeline = "asr",
      .rule = R"({"size":4})",
      .frames = {.rate = 8000},
      .batches = RecordedBatches{.dtype = Element::f32, .slots = 64, .rows = 16, .widths = {4}},
      .options = R"({"user":"ada"})",
      .client = R"({"format":"mulaw","rate":8000,"channels":1})",
      .opened_wall = 1'760'000'000'000'000'000,
      .opened_steady = 5'000'000'000};
  const auto at = [](int milliseconds) {
    return from_wire(5'000'000'000 + 1'000'000LL * milliseconds);
  };
  const std::vector<std::byte> audio{std::byte{1}, {}, std::byte{2}, {}, std::byte{3}, {},
                                     std::byte{4}, {}, std::byte{5}, {}, std::byte{6}, {}};
  const std::string_view message = R"({"words":["Ada"]})";
  const std::vector<RecordedEvent> first{
      {{.kind = Event::Kind::open}, at(0)},
      {{.kind = Event::Kind::frames, .count = 4}, at(10)},
      {{.kind = Event::Kind::message, .count = message.size()}, at(15), message},
      {{.kind = Event::Kind::flush, .mark = 7}, at(20)}};
  const std::vector<RecordedEvent> last{
      {{.kind = Event::Kind::gap, .cause = Cause::load, .count = 160}, at(500)},
      {{.kind = Event::Kind::frames, .count = 2}, at(510)},
      {{.kind = Event::Kind::end}, at(520)}};
  const std::vector<RecordedAnswer> answers{
      {.seq = 0, .batch = BatchId{31}, .kind = Answer::Kind::json, .data = R"({"text":"yes"})"}};
  const Bytes begin_audio = Bytes(audio).first(8), end_audio = Bytes(audio).subspan(8);
  writer.add(meta, 0, meta.opened_wall, {.stream = 17, .events = first}, {&begin_audio, 1});
  commit(writer);
  writer.add(meta, 2, meta.opened_wall + 500'000'000,
             {.stream = 17,
              .first_event = 5,
              .begin = 4,
              .events = last,
              .answers = answers,
              .lost = LostEvents{.first_event = 4, .begin = 4, .reason = DropReason::queue_full},
              .closing =
                  StreamTotals{
                      .rows = 3, .frames = 6, .lost = 160, .digest = 0x1234abcd, .complete = true}},
             {&end_audio, 1});
  expect(writer.seal());
}

void write_streams(const Directory& directory, std::size_t streams, std::size_t slices,
                   std::size_t frames, const Event& open) {
  FileWriter writer = begin(directory);
  std::vector<TestStream> all;
  for (std::size_t stream = 1; stream <= streams; ++stream) all.emplace_back(stream, open);
  for (std::size_t slice = 0; slice < slices; ++slice)
    for (TestStream& stream : all) {
      stream.add(writer, frames, slice + 1 == slices);
      if (writer.uncommitted() >= 4 << 20) commit(writer);
    }
  expect(writer.seal());
}

void write_moved(const Directory& directory) {
  FileWriter writer = begin(directory);
  std::vector<std::byte> audio(28);
  for (std::size_t i = 0; i < 14; ++i) audio[2 * i] = static_cast<std::byte>(i + 1);
  StreamMeta meta = meta_of(1);
  meta.rule = R"({"size":4,"right":2})";
  meta.resumable = ResumableKey{};
  const auto add = [&](const std::vector<RecordedEvent>& events, Bytes frames,
                       const RecordedAnswer& answer) {
    writer.add(meta, 0, meta.opened_wall,
               {.stream = meta.number,
                .begin = events.front().event.count,
                .events = events,
                .answers = {&answer, 1},
                .closing = StreamTotals{.frames = frames.size() / 2, .complete = true}},
               {&frames, 1});
  };
  const auto at = [&] { return from_wire(meta.opened_steady + 1'000'000'000); };
  add({{{.kind = Event::Kind::open}, at()},
       {{.kind = Event::Kind::frames, .count = 14}, at()},
       {{.kind = Event::Kind::abort, .cause = Cause::connection}, at()}},
      audio, {.seq = 1, .kind = Answer::Kind::json, .data = "1"});
  meta.number = 2;
  meta.resumable->epoch = 3;
  meta.opened_steady = 7;
  meta.opened_wall += 30'000'000'000;
  add({{{.kind = Event::Kind::open, .count = 8, .rows = 2}, at()},
       {{.kind = Event::Kind::frames, .count = 3}, at()},
       {{.kind = Event::Kind::end}, at()}},
      Bytes(audio).subspan(16, 6), {.seq = 2, .kind = Answer::Kind::json, .data = "2"});
  expect(writer.seal());
}

int run(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  const auto number = [&](std::size_t i) { return std::stoul(args.at(i)); };
  const Directory directory = expect(Directory::open(args.at(0), Directory::For::writing));
  if (args.at(1) == "example") {
    write_example(directory);
    return 0;
  }
  if (args.at(1) == "moved") {
    write_moved(directory);
    return 0;
  }
  Event open;
  if (args.size() > 5) open = {.count = number(5), .rows = number(6)};
  write_streams(directory, number(2), number(3), number(4), open);
  return 0;
}

}  // namespace
}  // namespace millrace::recording

int main(int argc, char** argv) { return millrace::recording::run(argc, argv); }
