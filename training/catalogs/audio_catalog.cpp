// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/audio_catalog.h"

#include <filesystem>
#include <utility>

#include "schemas/text.h"
#include "training/catalogs/conversions.h"
#include "training/catalogs/frames/idle_sources.h"
#include "training/catalogs/index/audio_scan.h"
#include "training/catalogs/index/file_states.h"

namespace millrace::training {
namespace {

class AudioFrameReader final : public FrameReader {
 public:
  AudioFrameReader(std::uint64_t stream, std::unique_ptr<FrameSource> source,
                   IdleSources<FrameSource>& idle)
      : stream_(stream), source_(std::move(source)), idle_(idle) {}
  ~AudioFrameReader() override {
    if (!failed_) idle_.put(stream_, std::move(source_));
  }

  Result<Bytes, ReadError> frames(std::uint64_t begin, std::uint64_t count) override {
    auto frames = source_->frames(begin, count);
    failed_ = failed_ || !frames;
    return frames;
  }
  std::size_t memory() const override { return source_->memory(); }

 private:
  const std::uint64_t stream_;
  std::unique_ptr<FrameSource> source_;
  IdleSources<FrameSource>& idle_;
  bool failed_ = false;  // the next reader opens the file again
};

class AudioCatalogReader final : public CatalogReader {
 public:
  explicit AudioCatalogReader(const AudioCatalog& catalog) : catalog_(catalog) {}

  Result<std::unique_ptr<FrameReader>, ReadError> open(std::uint64_t stream) override {
    auto source = idle_.take(stream);
    if (!source) {
      auto opened = open_file(stream);
      if (!opened) return opened.error();
      source = std::move(*opened);
    }
    return std::make_unique<AudioFrameReader>(stream, std::move(source), idle_);
  }

 private:
  Result<std::unique_ptr<FrameSource>, ReadError> open_file(std::uint64_t stream) const {
    const IndexedStream indexed = catalog_.index().stream(stream);
    const FrameType& type = catalog_.frame_type();
    AudioStream audio{.path = path_in(catalog_.base(), indexed.path),
                      .frames = frames_of(indexed, type),
                      .channels = type.values,
                      .place = indexed.place,
                      .element = type.element,
                      .mapped = catalog_.mapped(),
                      .before = indexed.before,
                      .behind = indexed.behind};
    if (is_converted(indexed, type))
      audio.conversion = AudioStream::Conversion{.rate = type.rate,
                                                 .from_rate = static_cast<double>(indexed.rate),
                                                 .from_channels = indexed.channels,
                                                 .from_frames = indexed.frames};
    if (state_of(audio.path) != indexed.file)
      if (const auto checked = check_again(indexed, audio.path); !checked) return checked.error();
    return open_frames(audio);
  }

  // The file was changed after its index was made: it may still have the same format and length.
  Result<void, ReadError> check_again(const IndexedStream& stream, const std::string& path) const {
    const ScannedFile now = scan_file(path);
    if (!now.error.empty()) return ReadError{DataFault::read, path + ": " + now.error};
    if (now.channels != stream.channels || now.rate != stream.rate)
      return changed(DataFault::format, path, "was changed, and has another format");
    const std::uint64_t frames = stream.before + stream.frames + stream.behind;
    if (now.frames != frames)
      return changed(DataFault::length, path,
                     "was changed: it has " + std::to_string(now.frames) + " frames, and had " +
                         std::to_string(frames));
    if (now.place != stream.place)
      return changed(DataFault::format, path, "was changed: its samples begin at another place");
    return {};
  }

  ReadError changed(DataFault fault, const std::string& path, const std::string& reason) const {
    const std::string command = catalog_.index_command();
    const std::string cure =
        command.empty() ? "open the files again" : command + " makes the index again";
    return {fault, path + ": " + reason + "; " + cure};
  }

  const AudioCatalog& catalog_;
  IdleSources<FrameSource> idle_;
};

}  // namespace

AudioCatalog::AudioCatalog(AudioIndex index, const FrameType& type, bool mapped)
    : index_(std::move(index.index)),
      opened_(std::move(index.path)),
      base_(std::move(index.base)),
      type_(type),
      mapped_(mapped),
      converts_(index_.is_mixed() || index_.frame_type().rate != type.rate),
      digest_(digest_of(index_, type)) {}

std::uint64_t AudioCatalog::frames(std::uint64_t stream) const {
  return converts_ ? frames_of(index_.stream(stream), type_) : index_.frames(stream);
}

// Streams that are parts of one file have several names, and a manifest may have the whole file
// too. The common parent of files is another one when a file is added.
std::string AudioCatalog::unit(std::uint64_t stream) const {
  if (!opened_.empty()) return std::string(index_.stream(stream).path);
  return std::filesystem::path(path(stream)).lexically_normal().string();
}

bool AudioCatalog::decodes() const {
  for (std::uint64_t stream = 0; stream < size(); ++stream) {
    const IndexedStream indexed = index_.stream(stream);
    if (indexed.frames > 0 && (indexed.place == 0 || is_converted(indexed, type_))) return true;
  }
  return false;
}

std::uint64_t AudioCatalog::converted_from(std::uint64_t stream) const {
  const IndexedStream indexed = index_.stream(stream);
  if (!is_converted(indexed, type_)) return 0;
  return std::uint64_t{indexed.channels} << 32 | indexed.rate;
}

std::unique_ptr<CatalogReader> AudioCatalog::reader() const {
  return std::make_unique<AudioCatalogReader>(*this);
}

std::string AudioCatalog::index_command() const {
  return opened_.empty() ? opened_ : "millrace index " + shell_path(opened_);
}

std::string AudioCatalog::path(std::uint64_t stream) const {
  return path_in(base_, index_.stream(stream).path);
}

}  // namespace millrace::training
