// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/index/audio_scan.h"

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include "base/shared_work.h"
#include "input/audio_file.h"
#include "training/catalogs/index/file_states.h"
#include "training/catalogs/index/missing_file.h"

namespace millrace::training {
namespace {

constexpr std::uint64_t scanned_by_a_thread = 64;
constexpr unsigned most_threads = 16;
constexpr std::uint64_t files_between_calls = 16;

}  // namespace

ScannedFile scan_file(const std::string& path) {
  ScannedFile found;
  const auto state = state_of(path);  // before its content, so that a later change is seen
  auto file = AudioFile::open(path);
  if (!file) {
    found.error = file.error() + missing_file_hint(path);
    return found;
  }
  found.file = state.value_or(FileState{});
  found.rate = file->rate();
  found.channels = file->channels();
  if (file->frames()) {
    found.frames = *file->frames();
  } else {
    const auto frames = file->skip(std::numeric_limits<std::uint64_t>::max());
    if (frames)
      found.frames = *frames;
    else
      found.error = frames.error();
  }
  found.place = file->place();
  found.deep = file->is_deep();
  if (found.error.empty() && found.frames >= Index::most_frames)
    found.error = "has an impossible length in its header";
  if (found.error.empty() && (found.rate <= 0 || found.rate >= Index::most_rate))
    found.error = "has an impossible rate in its header";
  if (found.error.empty() && (found.channels == 0 || found.channels > Index::most_channels))
    found.error = "has an impossible number of channels in its header";
  return found;
}

std::vector<ScannedFile> scan_files(std::size_t files, const PathOf& path, const KnownFile& known,
                                    const CatalogProgress& progress) {
  std::vector<ScannedFile> found(files);
  const std::uint64_t total = std::max<std::uint64_t>(1, files);
  const std::uint64_t others =
      std::min<std::uint64_t>({files / scanned_by_a_thread, most_threads,
                               std::max(1u, std::thread::hardware_concurrency()) - 1});
  share_work(
      files, others, "catalog",
      [&](std::uint64_t, std::uint64_t i) {
        auto same = known(i);
        found[i] = same ? std::move(*same) : scan_file(path(i));
      },
      [&, own = 0u](std::uint64_t taken) mutable {
        if (progress && own++ % files_between_calls == 0)
          progress(std::min(total, taken - 1), total);
      });
  if (progress) progress(total, total);
  return found;
}

}  // namespace millrace::training
