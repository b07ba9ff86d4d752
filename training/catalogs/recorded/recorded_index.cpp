// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/recorded_index.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <exception>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "recording/reader/recordings.h"
#include "schemas/text.h"
#include "training/catalogs/index/file_states.h"
#include "training/catalogs/index/index_place.h"

namespace millrace::training {
namespace {

namespace fs = std::filesystem;
using recording::FileNumber;
using recording::RecordedStream;
using recording::Recordings;
using Files = std::vector<std::pair<FileNumber, FileState>>;

namespace json = boost::json;

constexpr std::size_t most_missing = 1000;  // ranges in an extent

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

// True if an index has these recording files, and no others. Indexes of older versions have no
// files of streams.
bool has_files(const Index& index, const std::string& folder, const Files& files) {
  const std::size_t others = state_of(path_in(folder, removed)) ? 1 : 0;
  const bool names_files = index.size() == 0 || index.stream(0).behind > 0;
  return names_files && index.watched() == files.size() + others &&
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

  std::optional<std::vector<InnerEvent>> events(const RecordedStream& stream) const {
    const auto found = numbers_.find(stream.meta.number);
    if (found == numbers_.end() || index_->frames(found->second) != stream.frames)
      return std::nullopt;
    for (FileNumber file = stream.first_file; file <= stream.last_file; ++file)
      if (!unchanged_.contains(file)) return std::nullopt;
    return index_->events(found->second);
  }

 private:
  const Index* index_ = nullptr;
  std::set<FileNumber> unchanged_;
  std::unordered_map<std::uint64_t, std::uint64_t> numbers_;
};

std::string type_line(const FrameType& type) {
  return std::string(name_of(type.element)) + ", " + std::to_string(type.values) +
         " values per frame, " + std::to_string(type.rate) + " frames per second";
}

// The streams of the catalog. The error is for streams of several types.
Result<std::vector<RecordedStream>, CatalogError> chosen(Recordings& recordings,
                                                         const std::string& folder,
                                                         const std::string& pipeline) {
  std::vector<RecordedStream> streams;
  for (const RecordedStream& stream : recordings.streams()) {
    if (stream.open || (!pipeline.empty() && stream.meta.pipeline != pipeline)) continue;
    streams.push_back(stream);
    const FrameType &first = streams.front().meta.frames, &type = stream.meta.frames;
    if (type == first) continue;
    return CatalogError{folder + ": stream " + std::to_string(stream.meta.number) +
                        " of the pipeline \"" + stream.meta.pipeline + "\" has " + type_line(type) +
                        ", but the streams of \"" + streams.front().meta.pipeline + "\" have " +
                        type_line(first) + "; give the pipeline"};
  }
  if (!streams.empty()) return streams;
  return CatalogError{folder + ": has no finished stream" +
                      (pipeline.empty() ? "" : " of the pipeline \"" + pipeline + "\"")};
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
    const RecordedStream& stream = (*streams)[i];
    IndexedStream indexed{.frames = stream.frames,
                          .name = stream.meta.name,
                          .meta = stream.meta.options,
                          .place = stream.meta.number,
                          .before = stream.first_file,
                          .behind = stream.last_file};
    auto events = old.events(stream);
    if (!events) {
      const recording::StreamFrames read(recordings, stream);
      indexed.frames = read.frames();
      events = inner_events(read);
    }
    builder.add(indexed, *events);
  }
  if (progress) progress(streams->size(), streams->size());
  for (const auto& [number, state] : files) builder.watch({.path = name_of(number), .file = state});
  if (removed_state) builder.watch({.path = removed, .file = *removed_state});
  // The files were listed before they were read, and only grow: a later change is seen.
  auto bytes = builder.finish(streams->front().meta.frames, true);
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

std::string extent_of(const Index& index) {
  json::array missing;
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < index.size(); ++i) {
    const std::uint64_t number = index.stream(i).place;
    if (number > next) missing.push_back(json::array{next, number - 1});
    next = number + 1;
  }
  const auto more = missing.size() > most_missing ? missing.size() - most_missing : 0;
  missing.erase(missing.begin(), missing.begin() + static_cast<std::ptrdiff_t>(more));
  return json::serialize(json::object{{"last", next - 1}, {"missing", std::move(missing)}});
}

std::optional<Index> within(const Index& index, const std::string& extent) try {
  const json::value parsed = json::parse(extent);
  const auto last = parsed.at("last").to_number<std::uint64_t>();
  std::vector<std::pair<std::uint64_t, std::uint64_t>> missing;
  for (const json::value& range : parsed.at("missing").as_array())
    missing.emplace_back(range.at(0).to_number<std::uint64_t>(),
                         range.at(1).to_number<std::uint64_t>());
  IndexBuilder builder;
  bool has_any = false;
  for (std::uint64_t i = 0; i < index.size(); ++i) {
    const IndexedStream stream = index.stream(i);
    const auto is_missing = [&](const auto& range) {
      return stream.place >= range.first && stream.place <= range.second;
    };
    if (stream.place > last || std::ranges::any_of(missing, is_missing)) continue;
    builder.add(stream, index.events(i));
    has_any = true;
  }
  if (!has_any) return std::nullopt;
  return Index::from(builder.finish(index.frame_type(), true));
} catch (const std::exception&) {
  return std::nullopt;
}

std::vector<InnerEvent> inner_events(const recording::StreamFrames& stream) {
  std::vector<InnerEvent> events;
  for (const recording::RecordedEvent& placed : stream.events()) {
    const Event::Kind kind = placed.event.kind;
    const bool begins = kind == Event::Kind::open && !placed.event.opened_anew();
    if (begins || kind == Event::Kind::frames || kind == Event::Kind::end ||
        placed.event.has_text())
      continue;
    events.push_back({.event = placed.event, .frame = placed.frame});
  }
  return events;
}

}  // namespace millrace::training
