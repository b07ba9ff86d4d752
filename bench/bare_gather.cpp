// SPDX-License-Identifier: Apache-2.0
#include "bench/bare_gather.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>

#include "base/time.h"
#include "gpu/host/row_writer.h"
#include "recording/files/file.h"
#include "recording/reader/recordings.h"
#include "recording/reader/stream_reader.h"

namespace millrace::bench {
namespace {

std::vector<recording::MappedFile> map(const std::vector<std::string>& paths) {
  std::vector<recording::MappedFile> maps;
  for (const std::string& path : paths) {
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) throw std::runtime_error(path + ": cannot be opened");
    maps.emplace_back(file.get(), recording::file_size(file.get()));
  }
  return maps;
}

std::optional<std::size_t> find(Bytes in, std::size_t from, Bytes chunk) {
  const Bytes rest = in.subspan(from);
  const auto at = std::ranges::search(rest, chunk).begin();
  if (at == rest.end()) return std::nullopt;
  return from + static_cast<std::size_t>(at - rest.begin());
}

}  // namespace

BareGather::BareGather(const std::string& directory, const RecordedAudio& audio) : audio_(audio) {
  const auto recordings = recording::Recordings::open(directory);
  if (!recordings) throw std::runtime_error(recordings.error());
  for (const auto number : (*recordings)->files())
    paths_.push_back(directory + "/" + recording::Directory::file_name(number));
  std::vector<std::unique_ptr<recording::StreamReader>> readers;
  Chunks chunks;
  for (const auto& stream : (*recordings)->streams()) {
    chunks.emplace_back();
    readers.push_back(std::make_unique<recording::StreamReader>(**recordings, stream));
    while (const auto item = readers.back()->next())
      if (const auto* event = std::get_if<recording::ReadEvent>(&*item))
        for (Bytes left = event->frames; !left.empty(); left = left.subspan(chunk_bytes()))
          chunks.back().push_back(left.first(chunk_bytes()));
  }
  locate(chunks);
}

// The frames of a reader lie in its own mapping: finds them in the files by their content. The
// slices of the streams follow each other in turns.
void BareGather::locate(const Chunks& chunks) {
  const auto maps = map(paths_);
  const std::uint64_t together = audio_.events_per_slice;
  places_.resize(audio_.chunks * audio_.streams);
  Place at;
  for (std::uint64_t first = 0; first < audio_.chunks; first += together)
    for (std::size_t stream = 0; stream < audio_.streams; ++stream)
      for (std::uint64_t chunk = first; chunk < first + together; ++chunk) {
        const Bytes frames = chunks.at(stream).at(chunk);
        auto found = find(maps[at.file].bytes(), at.offset, frames);
        if (!found) found = find(maps.at(++at.file).bytes(), 0, frames);
        if (!found) throw std::runtime_error("a chunk is not in the files");
        at.offset = *found;
        places_[chunk * audio_.streams + stream] = at;
        at.offset += frames.size();
      }
}

double BareGather::run(Element dtype) const {
  const Time begin = Clock::now();
  const auto maps = map(paths_);
  const RowWriter writer({.frames = Element::s16, .dtype = dtype, .values = 1});
  const std::size_t row = audio_.chunk_frames * size_of(dtype);
  std::vector<std::byte> buffer(row * audio_.streams);
  std::size_t slot = 0;
  for (const Place& place : places_) {
    const Bytes frames = maps[place.file].bytes().subspan(place.offset, chunk_bytes());
    writer.write(MutableBytes(buffer).subspan(row * slot, row), {frames, Bytes()}, 0);
    slot = (slot + 1) % audio_.streams;
  }
  const std::chrono::duration<double> took = Clock::now() - begin;
  return static_cast<double>(places_.size()) / took.count();
}

}  // namespace millrace::bench
