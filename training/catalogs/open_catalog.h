// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/companion.h"
#include "base/frame_type.h"
#include "base/result.h"
#include "training/catalogs/index/audio_index.h"
#include "training/catalogs/index/catalog_error.h"
#include "training/catalogs/index/catalog_progress.h"
#include "training/contract/catalog.h"

namespace millrace::training {

// A companion that the batches shall have.
struct CompanionSource {
  std::string name;  // the key of the tensor
  // A member of the streams' `meta` (a field of the manifest), or a folder. If the first stream has
  // the member, it is that. Its value is the path of a file, relative to the manifest, or a JSON
  // array. A folder has a file for each stream, with the stream's name and the extension .npy or
  // that of an audio format.
  std::string from;
  // Needed only if the lengths of the streams fit several ratios. At most one of them is given.
  std::optional<std::uint32_t> frames_per_entry{};
  std::optional<std::uint32_t> entries_per_frame{};
  // The type of JSON arrays. Default: s32 if the values of the first stream are integers, otherwise
  // f32. Files have their own type, and must have this one if it is given.
  std::optional<CompanionElement> element{};
  bool operator==(const CompanionSource&) const = default;
};

using CatalogWarning = std::function<void(const std::string& sentence)>;

struct CatalogSettings {
  // One of these, detected:
  // - A folder of audio files in the formats of libsndfile, with its subfolders, sorted by path.
  //   Names that begin with a dot are left out. A stream's name is its path in the folder without
  //   the extension.
  // - A manifest of audio files, in the order of its lines. `.tsv`: the first line has the names of
  //   the fields. `.jsonl`, `.ndjson`, `.json`: a JSON object per line. The field `path` (or
  //   `audio_filepath`) is the file, relative to the manifest. The field `name` is the name of the
  //   stream; default: the path without the extension. All other fields are `meta`.
  // - A directory of recordings. Streams that are still being recorded are left out. Missing parts
  //   are gaps with the cause `recorder`. The client's options are `meta`.
  //   `.csv` is the same as `.tsv`, with commas.
  // - An audio file. Its name is that of the stream.
  std::string path;
  // Instead of `path`: audio files. A stream's name is that below the common parent of all files.
  std::vector<std::string> files{};

  // The values of the frames. Default: of audio files `deep` if one has more than 16 bits,
  // otherwise s16; of recordings, which are not converted, those that were recorded.
  std::optional<Element> frames{};
  Element deep = Element::f32;
  std::optional<double> rate{};             // the rate that the streams must have
  std::optional<std::uint32_t> channels{};  // the values per frame that they must have
  // Audio files of other rates and channels are converted as the service does it for its clients:
  // to `rate` and `channels`, or to those of most files.
  bool convert = false;
  // WAV files of 16 bits are mapped, and read in place. That takes less time, but if
  // others cut such a file, or its disk fails, SIGBUS ends the process.
  bool mapped = false;
  std::string pipeline{};  // only the recordings of this pipeline; empty: all

  // Recordings: the rows end where the events of a stream end them. If not, of a stream that was
  // lost and opened anew, the frames that two parts have come once, and it has no events.
  bool cuts_events = true;

  // Recordings: only the streams of a former Catalog::extent(); empty: all.
  std::string extent{};

  std::vector<CompanionSource> companions{};

  // Compare every file with the index, also in catalogs of more than `most_checked` files.
  bool check_all = false;

  // If set, audio files that cannot be used are left out, and it is called with a text that names
  // them.
  SkippedFiles skips{};

  // Called on the thread of open_catalog(), and only if an index is made. If it throws,
  // open_catalog() throws the same, and writes nothing.
  CatalogProgress progress{};

  // Called on this thread with a sentence that names the files that are converted, if there are
  // some.
  CatalogWarning warn{};
};

using OpenedCatalog = Result<std::shared_ptr<const Catalog>, CatalogError>;

// Opens a catalog of files. Its lengths and names are in an index file, which is mapped. The index
// is in the folder `.millrace` beside the data, or, if that cannot be written, in the user's cache.
// It is made if it does not exist, is damaged, or is not that of the files: a size or a time of a
// file differs, or a file was added or removed. In catalogs of more than `most_checked` files, a
// changed file is only found when its stream is opened.
//
// The error is for input that cannot be used: no such path, no files, files of several rates
// without `convert`, a damaged header. Throws std::system_error if the disk fails.
OpenedCatalog open_catalog(const CatalogSettings& settings);

// True if the path has the name of an audio file: several of them are one catalog.
bool is_file_of_audio(std::string_view path);

inline constexpr std::uint64_t most_checked = 20'000;

// Names the streams without frames, which are in no batch: the first 20, and the number of all.
// nullopt: there are none.
std::optional<std::string> empty_streams_text(const Catalog& catalog);

// Writes the audio files of a catalog that open_catalog() opened without companions as a manifest
// of JSON lines, without the streams `left_out`, which are sorted. Paths are absolute.
Result<void, CatalogError> write_manifest(const Catalog& catalog, const std::string& path,
                                          const std::vector<std::uint64_t>& left_out);

// The catalogs as one, with Catalog::parts. They must have the same frame type and the same
// companions. Requires: at least one.
OpenedCatalog join(std::vector<std::shared_ptr<const Catalog>> catalogs);

// The catalog with companions from files, for catalogs that have none. Paths in `meta` are relative
// to `base`; empty: to the current directory. open_catalog() does it for its own catalogs.
OpenedCatalog with_companions(std::shared_ptr<const Catalog> catalog,
                              const std::vector<CompanionSource>& sources, const std::string& base);

}  // namespace millrace::training
