// SPDX-License-Identifier: Apache-2.0
#include "bench/recorded_streams.h"

#include <optional>
#include <stdexcept>
#include <vector>

#include "recording/files/directory.h"
#include "recording/files/file_writer.h"

namespace millrace::bench {
namespace {

using namespace recording;

constexpr std::int64_t second = 1'000'000'000;
constexpr std::size_t committed = 4 << 20;  // bytes of a write

template <class Value, class Error>
Value expect(Result<Value, Error> result) {
  if (!result) throw std::runtime_error("the recording cannot be written");
  if constexpr (!std::is_void_v<Value>) return std::move(*result);
}

class Recording {
 public:
  Recording(const std::string& path, const RecordedAudio& audio)
      : audio_(audio), directory_(expect(Directory::open(path, Directory::For::writing))) {
    frames_.resize(std::size_t{2} * audio.chunk_frames * audio.events_per_slice);
  }

  void write() {
    const std::uint64_t slices = audio_.chunks / audio_.events_per_slice;
    for (std::uint64_t slice = 0; slice < slices; ++slice)
      for (std::uint64_t stream = 1; stream <= audio_.streams; ++stream)
        add(stream, slice, slice + 1 == slices);
    expect(writer_->seal());
  }

 private:
  void add(std::uint64_t stream, std::uint64_t number, bool last) {
    if (!writer_ || writer_->size() > audio_.file_size) begin_file();
    const std::uint64_t events = audio_.events_per_slice;
    const std::uint64_t begin = number * events * audio_.chunk_frames;
    events_.clear();
    if (number == 0) events_.push_back({{.kind = Event::Kind::open}, at(begin)});
    for (std::uint64_t i = 1; i <= events; ++i)
      events_.push_back({{.kind = Event::Kind::frames, .count = audio_.chunk_frames},
                         at(begin + i * audio_.chunk_frames)});
    if (last) events_.push_back({{.kind = Event::Kind::end}, events_.back().at});
    for (std::byte& byte : frames_)
      byte = static_cast<std::byte>((seed_ = seed_ * 69'069 + 1) >> 24);
    Slice slice{.stream = stream,
                .first_event = number == 0 ? 0 : 1 + number * events,
                .begin = begin,
                .events = events_};
    if (last) slice.closing = StreamTotals{.frames = begin + events * audio_.chunk_frames};
    const Bytes part = frames_;
    writer_->add(meta(stream), static_cast<std::uint32_t>(number), to_wire(at(begin)), slice,
                 {&part, 1});
    if (writer_->uncommitted() > committed) expect(writer_->write());
  }

  void begin_file() {
    if (writer_) expect(writer_->seal());
    writer_.reset();
    const FileHead head{.file = ++file_,
                        .run = "000102030405060708090a0b0c0d0e0f",
                        .id = "101112131415161718191a1b1c1d1e1f",
                        .first_stream = file_ == 1 ? 1 : audio_.streams + 1,
                        .created = second};
    writer_.emplace(expect(FileWriter::begin(expect(directory_.create(file_)), head)));
  }

  StreamMeta meta(std::uint64_t stream) const {
    return {.number = stream,
            .name = "stream-" + std::to_string(stream),
            .pipeline = audio_.pipeline,
            .rule = R"({"size":)" + std::to_string(audio_.chunk_frames) + "}",
            .opened_wall = second,
            .opened_steady = second};
  }
  static Time at(std::uint64_t position) {
    return from_wire(second + static_cast<std::int64_t>(position) * second / 16'000);
  }

  const RecordedAudio audio_;
  const Directory directory_;
  FileNumber file_ = 0;
  std::optional<FileWriter> writer_;
  std::vector<TimedEvent> events_;
  std::vector<std::byte> frames_;
  std::uint32_t seed_ = 1;
};

}  // namespace

void write_recording(const std::string& directory, const RecordedAudio& audio) {
  Recording(directory, audio).write();
}

}  // namespace millrace::bench
