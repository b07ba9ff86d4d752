// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/frame_type.h"
#include "recording/files/file.h"
#include "training/catalogs/index/stream_digest.h"
#include "training/contract/catalog.h"

namespace millrace::training {

// The size of a file, and when it was changed last. A file that differs in one is another file.
struct FileState {
  std::uint64_t bytes = 0;
  std::int64_t changed = 0;  // nanoseconds, by the clock of the file system
  bool operator==(const FileState&) const = default;
};

// A stream of an index. Views refer to the index.
struct IndexedStream {
  std::uint64_t frames = 0;
  std::string_view name{};
  std::string_view meta{};  // a JSON object, or empty
  std::string_view path{};  // its file, relative to the base; empty in recordings
  FileState file{};
  // Audio: where the 16-bit samples of a WAV file begin, 0 if the file must be decoded. Recordings:
  // the number of the first recording of the stream.
  std::uint64_t place = 0;
  // Audio: the stream is a part of its file: frames of the file before it and behind it.
  // Recordings: the numbers of the first and of the last file of this recording.
  std::uint64_t before = 0, behind = 0;
  // Audio: the type of the file. `deep`: its values have more than 16 bits. Recordings: 0.
  std::uint32_t rate = 0, channels = 0;
  bool deep = false;
};

// A recording of a stream that has several: it was lost and opened anew (recording::StreamParts).
struct IndexedPart {
  std::uint64_t number = 0;                     // StreamMeta::number
  std::uint64_t first_file = 0, last_file = 0;  // their numbers
  std::uint64_t frames = 0;                     // in the recording
  std::uint64_t counted = 0;                    // its first frames, which are frames of the stream
  std::uint64_t once = 0;  // the first of these, which the next part does not have again
  bool operator==(const IndexedPart&) const = default;
};

// A file or folder that is not that of a stream: if it differs, the index is not that of the files.
// The size of a folder is 0.
struct WatchedFile {
  std::string_view path{};  // relative to the base
  FileState file{};
};

// The streams of a catalog of files in the bytes of an index file: a header, and arrays of
// fixed-size records, which are read in place. It has a version and a checksum. All offsets are
// checked when it is opened, so that a forged file does no harm.
//
// Immutable after construction, and thread-safe.
class Index {
 public:
  static constexpr std::uint32_t version = 4;
  static constexpr std::uint64_t most_frames = std::uint64_t{1} << 48;  // a stream has fewer
  static constexpr std::uint32_t most_values = 65'535;                  // per frame
  static constexpr std::uint32_t most_channels = 1024;                  // per frame of audio
  static constexpr double most_rate = 1e9;  // frames per second; it is less
  static constexpr std::uint64_t most_place = std::uint64_t{1} << 48;  // in a file; it is less

  // nullopt: there is no such file, it is damaged, or it has another version. Throws
  // std::system_error.
  static std::optional<Index> map(const std::string& path);
  static std::optional<Index> from(std::vector<std::byte> bytes);

  std::uint64_t size() const;
  std::uint64_t frames(std::uint64_t stream) const;
  IndexedStream stream(std::uint64_t stream) const;
  bool has_events(std::uint64_t stream) const;
  std::vector<InnerEvent> events(std::uint64_t stream) const;
  // In order. Empty if the stream has one recording or file.
  std::vector<IndexedPart> parts(std::uint64_t stream) const;

  std::size_t watched() const;
  WatchedFile watched(std::size_t number) const;

  // The rate and values of all streams; for recordings, the element too. If is_mixed(): those of
  // most streams.
  FrameType frame_type() const;
  // A stream has another rate or other channels.
  bool is_mixed() const;
  // A stream is deep.
  bool is_deep() const;
  // The digest of the streams, without the frame type.
  std::uint64_t digest() const;
  // False: a file was changed so shortly before that a later change may have the same time.
  bool settled() const;

 private:
  using Owner = std::variant<recording::MappedFile, std::vector<std::byte>>;

  explicit Index(Owner owner);
  static std::optional<Index> checked(Owner owner);
  std::string_view text(std::uint64_t begin, std::uint64_t size) const;

  Owner owner_;
  Bytes bytes_;
};

// Makes the bytes of an index. Confined to one thread.
class IndexBuilder {
 public:
  // Memory for this number of streams without events, and for the bytes of their texts.
  void reserve(std::size_t streams, std::size_t texts);
  void add(const IndexedStream& stream, std::span<const InnerEvent> events = {},
           std::span<const IndexedPart> parts = {});
  void watch(const WatchedFile& watched);

  // The bytes of the index. `type`: of most streams. The builder is used up.
  std::vector<std::byte> finish(const FrameType& type, bool settled);

 private:
  std::uint64_t add_text(std::string_view text);

  std::vector<std::byte> streams_, events_, parts_, watched_, text_;
  std::uint64_t count_ = 0, event_count_ = 0;
  std::uint32_t rate_ = 0, channels_ = 0;  // those of the first stream
  std::uint8_t formats_ = 0;
  StreamDigest digest_;
};

}  // namespace millrace::training
