// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/index/audio_index.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "training/catalogs/index/audio_faults.h"
#include "training/catalogs/index/audio_scan.h"
#include "training/catalogs/index/file_states.h"
#include "training/catalogs/index/folder_listing.h"
#include "training/catalogs/index/index_place.h"
#include "training/catalogs/index/manifest.h"
#include "training/catalogs/index/stream_names.h"

namespace millrace::training {
namespace {

namespace fs = std::filesystem;

// The files of a catalog, before their headers are read.
struct Listed {
  std::vector<ManifestEntry> entries{};
  std::vector<std::pair<std::string, FileState>> watched{};
};
using List = Result<Listed, CatalogError>;

List list_of_folder(const std::string& path) {
  auto listing = list_folder(path);
  if (!listing) return CatalogError{listing.error()};
  if (listing->files.empty())
    return CatalogError{path + ": has no audio files, such as .wav, .flac or .ogg; " +
                        std::string(other_formats)};
  Listed listed{.watched = std::move(listing->folders)};
  for (std::string& file : listing->files) {
    std::string name(without_extension(file));
    listed.entries.push_back({.path = std::move(file), .name = std::move(name)});
  }
  return listed;
}

ManifestForm form_of(const std::string& path) {
  if (path.ends_with(".csv")) return ManifestForm::csv;
  return path.ends_with(".tsv") ? ManifestForm::tsv : ManifestForm::json_lines;
}

List list_of_manifest(const std::string& path) {
  const auto state = state_of(path);
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!state || !in.is_open() || in.bad()) return CatalogError{path + ": cannot be read"};
  auto entries = parse_manifest(text, form_of(path));
  if (!entries) return CatalogError{path + ": " + entries.error().message};
  if (entries->empty()) return CatalogError{path + ": has no audio files"};
  return Listed{.entries = std::move(*entries),
                .watched = {{fs::path(path).filename().native(), *state}}};
}

// The folder that all files are in, as far as their paths show it.
std::string common_parent(const std::vector<std::string>& files) {
  std::string_view common = files.front();
  for (const std::string_view file : files)
    common = common.substr(0, std::ranges::mismatch(common, file).in1 - common.begin());
  const std::size_t slash = common.rfind('/');
  if (slash == std::string_view::npos) return {};
  return std::string(common.substr(0, std::max<std::size_t>(1, slash)));
}

List list_of_files(const std::vector<std::string>& files, const std::string& base) {
  Listed listed;
  for (std::string_view path : files) {
    path.remove_prefix(base.size());
    if (!base.empty() && path.starts_with('/')) path.remove_prefix(1);
    listed.entries.push_back(
        {.path = std::string(path), .name = std::string(without_extension(path))});
  }
  return listed;
}

// The headers of an older index, for files that have not changed.
class KnownFiles {
 public:
  // `entries` must outlive it.
  KnownFiles(std::vector<Index> indexes, const std::vector<ManifestEntry>& entries, PathOf path)
      : indexes_(std::move(indexes)), entries_(entries), path_(std::move(path)) {
    if (indexes_.empty() || !indexes_.front().settled()) return;
    streams_.reserve(indexes_.front().size());
    for (std::uint64_t i = 0; i < indexes_.front().size(); ++i)
      streams_.emplace(indexes_.front().stream(i).path, i);
  }

  std::optional<ScannedFile> find(std::size_t entry) const {
    const auto found = streams_.find(entries_[entry].path);
    if (found == streams_.end()) return std::nullopt;
    const Index& index = indexes_.front();
    const IndexedStream stream = index.stream(found->second);
    if (state_of(path_(entry)) != stream.file) return std::nullopt;
    return ScannedFile{.frames = stream.before + stream.frames + stream.behind,
                       .rate = static_cast<double>(stream.rate),
                       .channels = stream.channels,
                       .place = stream.place,
                       .deep = stream.deep,
                       .file = stream.file};
  }

 private:
  const std::vector<Index> indexes_;
  const std::vector<ManifestEntry>& entries_;
  const PathOf path_;
  std::unordered_map<std::string_view, std::uint64_t> streams_;
};

// False: a file was changed while the index was made, so that a later change may have the same
// time.
bool is_settled(const Listed& listed, const std::vector<ScannedFile>& files, std::int64_t begun,
                std::int64_t ended) {
  const auto meanwhile = [&](const FileState& state) {
    return state.changed >= begun && state.changed <= ended;
  };
  return std::ranges::none_of(files, meanwhile, &ScannedFile::file) &&
         std::ranges::none_of(listed.watched,
                              [&](const auto& one) { return meanwhile(one.second); });
}

// The state of a file that no file has: an index without a bad file is always made again, but the
// headers of the other files are known then.
constexpr FileState never{.bytes = 0, .changed = -1};

IndexedStream stream_of(const ManifestEntry& entry, const ScannedFile& file) {
  const auto part = part_of(entry, file);
  return {.frames = part->frames,
          .name = entry.name,
          .meta = entry.meta,
          .path = entry.path,
          .file = file.file,
          .place = file.place,
          .before = part->before,
          .behind = file.frames - part->before - part->frames,
          .rate = static_cast<std::uint32_t>(file.rate),
          .channels = file.channels,
          .deep = file.deep};
}

// The headers of the files of a catalog. Bad files are left out of the index.
struct Scanned {
  IndexBuilder builder;
  AudioFaults faults;
  bool settled;
};
Result<Scanned, CatalogError> scan(IndexPlace& place, const AudioIndexSettings& settings,
                                   bool folder, const std::string& base, bool written) {
  const std::string& path = settings.files.empty() ? settings.path : settings.files.front();
  const std::int64_t begun = written ? place.now() : 0;
  const List listed = !settings.files.empty() ? list_of_files(settings.files, base)
                      : folder                ? list_of_folder(path)
                                              : list_of_manifest(path);
  if (!listed) return listed.error();
  const auto& entries = listed->entries;
  std::vector<std::string_view> names;
  std::size_t texts = 0;
  for (const ManifestEntry& entry : entries) {
    names.push_back(entry.name);
    texts += entry.path.size() + entry.name.size() + entry.meta.size();
  }
  if (const auto twice = repeated_name(std::move(names)))
    return CatalogError{path + ": " + repeated_name_text("files", *twice)};
  const PathOf path_of = [&](std::size_t i) { return path_in(base, entries[i].path); };
  const KnownFiles known(place.read(), entries, path_of);
  const std::vector<ScannedFile> files = scan_files(
      entries.size(), path_of, [&](std::size_t i) { return known.find(i); }, settings.progress);
  Scanned scanned{.builder = {},
                  .faults = AudioFaults(entries, path_of, files, settings.mixed),
                  .settled = written && is_settled(*listed, files, begun, place.now())};
  scanned.builder.reserve(files.size(), texts);
  for (std::size_t i = 0; i < files.size(); ++i)
    if (scanned.faults.is_good(i))
      scanned.builder.add(stream_of(entries[i], files[i]));
    else
      scanned.builder.watch({.path = entries[i].path, .file = never});
  for (const auto& [watched, state] : listed->watched)
    scanned.builder.watch({.path = watched, .file = state});
  return scanned;
}

// Makes an index, and writes it if it can be written.
Result<Index, CatalogError> make(IndexPlace& place, const AudioIndexSettings& settings, bool folder,
                                 const std::string& base) {
  const bool written = place.begin();
  auto scanned = scan(place, settings, folder, base, written);
  if (!scanned) return scanned.error();
  const AudioFaults& faults = scanned->faults;
  if (faults.good() == 0) return CatalogError{faults.text()};
  const FrameType type{.values = faults.channels(), .rate = faults.rate()};
  auto bytes = scanned->builder.finish(type, scanned->settled);
  const std::string file = written ? place.commit(bytes) : std::string();
  if (faults.any()) {
    if (!settings.skips) return CatalogError{faults.text()};
    settings.skips(faults.text());
  }
  if (!file.empty()) bytes = std::vector<std::byte>();
  auto index = file.empty() ? Index::from(std::move(bytes)) : Index::map(file);
  if (!index)
    return CatalogError{(settings.files.empty() ? settings.path : settings.files.front()) +
                        ": has a file that cannot be trained with" +
                        (file.empty() ? "" : ", or its index was replaced meanwhile")};
  return std::move(*index);
}

}  // namespace

Result<AudioIndex, CatalogError> audio_index(const AudioIndexSettings& settings) {
  const std::string& path = settings.path;
  if (!settings.files.empty()) {
    const std::string parent = common_parent(settings.files);
    IndexPlace nowhere;
    auto made = make(nowhere, settings, false, parent);
    if (!made) return made.error();
    return AudioIndex{std::move(*made), {}, parent};
  }
  const bool folder = fs::is_directory(path);
  const fs::path parent = fs::path(path).parent_path();
  const std::string base = folder ? path : parent.empty() ? "." : parent.native();
  IndexPlace place(base, folder ? "index" : fs::path(path).filename().native() + ".index");
  for (Index& index : place.read()) {
    const auto compared = index.size() <= settings.checked ? Compared::all : Compared::watched_only;
    if (index.is_mixed() && !settings.mixed) continue;
    if (is_current(index, base, compared)) return AudioIndex{std::move(index), path, base};
  }
  auto made = make(place, settings, folder, base);
  if (!made) return made.error();
  return AudioIndex{std::move(*made), path, base};
}

bool is_manifest_name(std::string_view name) {
  return name.ends_with(".tsv") || name.ends_with(".csv") || name.ends_with(".jsonl") ||
         name.ends_with(".ndjson") || name.ends_with(".json");
}

}  // namespace millrace::training
