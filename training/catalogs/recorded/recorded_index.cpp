// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/recorded/recorded_index.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "recording/reader/recordings.h"
#include "recording/reader/stream_parts.h"
#include "schemas/text.h"
#include "training/catalogs/index/file_states.h"
#include "training/catalogs/index/index_place.h"
#include "training/catalogs/recorded/read_stream.h"

namespace millrace::training {
namespace {

namespace fs = std::filesystem;
using recording::FileNumber;
using recording::RecordedStream;
using recording::Recordings;
using recording::StreamParts;
using Files = std::vector<std::pair<FileNumber, FileState>>;

constexpr const char* removed = "removed";  // the list of removed streams

std::string name_of(FileNumber number) { return recording::Directory::file_name(number); }

Result<Files, CatalogError> list_files(const std::string& folder) {
  const auto directory = recording::Directory::open(folder, recording::Directory::For::reading);
  if (!directory) return CatalogError{directory.error()};
  Files files;
  for (const FileNumber number : directory->list())
    if (const auto state = state_of(path_in(folder, name_of(number))))
      files.emplace_back(number, *state);
  return files;
}

// True if an index has these recording files, and no others.
bool has_files(const Index& index, const std::string& folder, const Files& files) {
  const std::size_t others = state_of(path_in(folder, removed)) ? 1 : 0;
  return index.watched() == files.size() + others &&
         is_current(index, folder, Compared::watched_only);
}

// The streams of an older index whose recording files have not changed.
class OldStreams {
 public:
  OldStreams(const std::vector<Index>& indexes, const Files& files) {
    if (indexes.empty()) return;
    index_ = &indexes.front();
    std::unordered_map<std::string_view, FileState> before;
    for (std::size_t i = 0; i < index_->watched(); ++i)
      before[index_->watched(i).path] = index_->watched(i).file;
    for (const auto& [number, state] : files) {
      const auto found = before.find(name_of(number));
      if (found != before.end() && found->second == state) unchanged_.insert(number);
    }
    for (std::uint64_t i = 0; i < index_->size(); ++i) numbers_[index_->stream(i).place] = i;
  }

  std::optional<ReadStream> find(const StreamParts& parts) const {
    const auto found = numbers_.find(parts.front().meta.number);
    if (found == numbers_.end()) return std::nullopt;
    const std::uint64_t number = found->second;
    const auto same = [this](const IndexedPart& was, const RecordedStream& is) {
      return was.number == is.meta.number && was.frames == is.frames && is_unchanged(is);
    };
    if (!std::ranges::equal(parts_of(*index_, number), parts, same)) return std::nullopt;
    ReadStream stream(parts.front());
    stream.facts.frames = index_->frames(number);
    stream.events = index_->events(number);
    stream.parts = index_->parts(number);
    return stream;
  }

 private:
  bool is_unchanged(const RecordedStream& recording) const {
    for (FileNumber file = recording.first_file; file <= recording.last_file; ++file)
      if (!unchanged_.contains(file)) return false;
    return true;
  }

  const Index* index_ = nullptr;
  std::set<FileNumber> unchanged_;
  std::unordered_map<std::uint64_t, std::uint64_t> numbers_;
};

std::string type_line(const FrameType& type) {
  return std::string(name_of(type.element)) + ", " + std::to_string(type.values) +
         " values per frame, " + std::to_string(type.rate) + " frames per second";
}

// The streams of the catalog. The error is for streams of several types.
Result<std::vector<StreamParts>, CatalogError> chosen(Recordings& recordings,
                                                      const std::string& folder,
                                                      const std::string& pipeline) {
  std::vector<RecordedStream> of_pipeline;
  for (const RecordedStream& stream : recordings.streams())
    if (pipeline.empty() || stream.meta.pipeline == pipeline) of_pipeline.push_back(stream);
  auto streams = recording::join_parts(of_pipeline);
  std::erase_if(streams, [](const StreamParts& parts) {
    return std::ranges::any_of(parts, &RecordedStream::open);
  });
  if (streams.empty())
    return CatalogError{folder + ": has no finished stream" +
                        (pipeline.empty() ? "" : " of the pipeline \"" + pipeline + "\"")};
  const recording::StreamMeta& first = streams.front().front().meta;
  for (const StreamParts& parts : streams) {
    const recording::StreamMeta& meta = parts.front().meta;
    if (meta.frames == first.frames) continue;
    return CatalogError{folder + ": stream " + std::to_string(meta.number) + " of the pipeline \"" +
                        meta.pipeline + "\" has " + type_line(meta.frames) +
                        ", but the streams of \"" + first.pipeline + "\" have " +
                        type_line(first.frames) + "; give the pipeline"};
  }
  return streams;
}

Result<Index, CatalogError> make(IndexPlace& place, const Files& files, const std::string& folder,
                                 const std::string& pipeline, const CatalogProgress& progress) {
  const bool written = place.begin();
  // Before the list is read, so that a later change is seen.
  const auto removed_state = state_of(path_in(folder, removed));
  auto opened = Recordings::open(folder);
  if (!opened) return CatalogError{opened.error()};
  Recordings& recordings = **opened;
  const auto streams = chosen(recordings, folder, pipeline);
  if (!streams) return streams.error();
  const auto indexes = place.read();
  const OldStreams old(indexes, files);
  IndexBuilder builder;
  for (std::uint64_t i = 0; i < streams->size(); ++i) {
    if (progress) progress(i, streams->size());
    auto stream = old.find((*streams)[i]);
    if (!stream) stream = read_stream(recordings, (*streams)[i]);
    builder.add(stream->facts, stream->events, stream->parts);
  }
  if (progress) progress(streams->size(), streams->size());
  for (const auto& [number, state] : files) builder.watch({.path = name_of(number), .file = state});
  if (removed_state) builder.watch({.path = removed, .file = *removed_state});
  // The files were listed before they were read, and only grow: a later change is seen.
  auto bytes = builder.finish(streams->front().front().meta.frames, true);
  const std::string file = written ? place.commit(bytes) : std::string();
  if (!file.empty())
    if (auto mapped = Index::map(file)) return std::move(*mapped);
  auto index = Index::from(std::move(bytes));
  if (!index) return CatalogError{folder + ": has a stream that cannot be trained with"};
  return std::move(*index);
}

}  // namespace

bool has_recordings(const std::string& folder) {
  // A large folder of audio files is not listed each time.
  const auto has = [&](const char* name) { return fs::exists(path_in(folder, name)); };
  if (has(".millrace/index") && !has("lock")) return false;
  return std::ranges::any_of(fs::directory_iterator(folder), [](const fs::directory_entry& entry) {
    return entry.path().extension() == ".mcap";
  });
}

Result<Index, CatalogError> recorded_index(const std::string& folder, const std::string& pipeline,
                                           const CatalogProgress& progress) {
  if (!pipeline.empty() && !is_name(pipeline))
    return CatalogError{"\"" + pipeline + "\" is not the name of a pipeline"};
  const auto files = list_files(folder);
  if (!files) return files.error();
  IndexPlace place(folder, pipeline.empty() ? "recordings" : "recordings." + pipeline);
  for (Index& index : place.read())
    if (has_files(index, folder, *files)) return std::move(index);
  return make(place, *files, folder, pipeline, progress);
}

}  // namespace millrace::training
