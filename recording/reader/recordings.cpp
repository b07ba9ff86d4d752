// SPDX-License-Identifier: Apache-2.0
#include "recording/reader/recordings.h"

#include <algorithm>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/file_descriptor.h"
#include "recording/reader/recording_files.h"

namespace millrace::recording {
namespace {

// The parts of a stream follow each other without a loss.
bool continues(const StreamPart& before, const StreamPart& after) {
  return after.first_slice == before.first_slice + before.slices && after.begin == before.end;
}

}  // namespace

struct Recordings::Impl {
  explicit Impl(Directory directory) : files(std::move(directory)) {}

  RecordingFiles files;
  std::uint64_t changes = 0;
  std::vector<std::string> problems{};
  std::vector<CatalogPart> live{};  // parts in files that are not sealed, by stream and file
  bool live_read = false;
  std::vector<RecordedStream> streams{};
  bool streams_read = false;

  void forget() {
    ++changes;
    live.clear();
    streams.clear();
    live_read = streams_read = false;
  }
  void read_live();
  std::vector<CatalogPart> live_of(std::uint64_t number);
  std::vector<CatalogPart> parts_of(std::uint64_t number);
  void read_streams();
  void add(std::vector<CatalogPart>& parts, std::vector<RecordedStream>& to) const;
};

void Recordings::Impl::read_live() {
  if (std::exchange(live_read, true)) return;
  for (const auto& [number, indexed] : files.unsealed()) {
    const auto& channels = indexed->file.channels();
    for (const StreamPart& part : indexed->file.parts()) {
      const auto meta = channels.find(part.channel);
      if (meta == channels.end() || meta->second.number != part.stream) continue;
      live.push_back({.meta = meta->second, .file = number, .part = part});
    }
  }
  std::ranges::stable_sort(live, {}, [](const CatalogPart& part) { return part.part.stream; });
}

std::vector<CatalogPart> Recordings::Impl::live_of(std::uint64_t number) {
  read_live();
  std::vector<CatalogPart> found;
  auto part = std::ranges::lower_bound(live, number, {},
                                       [](const CatalogPart& one) { return one.part.stream; });
  for (; part != live.end() && part->part.stream == number; ++part) found.push_back(*part);
  return found;
}

// By file.
std::vector<CatalogPart> Recordings::Impl::parts_of(std::uint64_t number) {
  auto parts = files.with_catalog([&](Catalog& catalog) { return catalog.of(number); });
  std::erase_if(parts, [&](const CatalogPart& part) { return !files.is_sealed(part.file); });
  for (CatalogPart& part : live_of(number)) parts.push_back(std::move(part));
  std::ranges::sort(parts, {}, &CatalogPart::file);
  return parts;
}

// Adds the stream that has these parts. Requires: there is a part.
void Recordings::Impl::add(std::vector<CatalogPart>& parts, std::vector<RecordedStream>& to) const {
  if (files.removed().contains(parts.front().part.stream)) return;
  std::ranges::sort(parts, {}, &CatalogPart::file);
  const StreamPart& first = parts.front().part;
  const StreamPart& last = parts.back().part;
  RecordedStream& stream = to.emplace_back();
  stream.first_file = parts.front().file;
  stream.last_file = parts.back().file;
  stream.whole = first.first_event == 0 && first.first_slice == 0 && last.closed && last.complete;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const StreamPart& part = parts[i].part;
    stream.frames += part.frames;
    stream.end = std::max(stream.end, part.end);
    if (part.lost || (i > 0 && !continues(parts[i - 1].part, part))) stream.whole = false;
  }
  const std::string run = files.run_of(stream.last_file);
  stream.open = !last.closed && !run.empty() && run == files.live_run();
  stream.meta = std::move(parts.front().meta);
}

void Recordings::Impl::read_streams() {
  if (std::exchange(streams_read, true)) return;
  read_live();
  files.with_catalog([&](Catalog& catalog) {
    streams.clear();
    std::vector<CatalogPart> parts;
    auto unsealed = live;
    auto next = unsealed.begin();
    const auto finish = [&](std::uint64_t stream) {
      for (; next != unsealed.end() && next->part.stream == stream; ++next)
        parts.push_back(std::move(*next));
      add(parts, streams);
      parts.clear();
    };
    // The streams of unsealed files alone that come before this one.
    const auto finish_before = [&](std::uint64_t stream) {
      while (next != unsealed.end() && next->part.stream < stream) finish(next->part.stream);
    };
    catalog.each([&](CatalogPart& part) {
      if (!files.is_sealed(part.file)) return;
      if (!parts.empty() && parts.front().part.stream != part.part.stream)
        finish(parts.front().part.stream);
      finish_before(part.part.stream);
      parts.push_back(std::move(part));
    });
    if (!parts.empty()) finish(parts.front().part.stream);
    while (next != unsealed.end()) finish(next->part.stream);
  });
}

Recordings::Recordings(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Recordings::~Recordings() = default;

Result<std::unique_ptr<Recordings>, std::string> Recordings::open(const std::string& path) {
  raise_descriptor_limit();
  auto directory = Directory::open(path, Directory::For::reading);
  if (!directory) return directory.error();
  try {
    auto impl = std::make_unique<Impl>(std::move(*directory));
    impl->files.refresh();
    impl->problems = impl->files.problems();
    return std::unique_ptr<Recordings>(new Recordings(std::move(impl)));
  } catch (const std::system_error& error) {
    return path + ": " + error.what();
  }
}

const Directory& Recordings::directory() const { return impl_->files.directory(); }

bool Recordings::refresh() {
  const bool changed = impl_->files.refresh();
  impl_->problems = impl_->files.problems();
  if (changed) impl_->forget();
  return changed;
}

const std::vector<RecordedStream>& Recordings::streams() {
  impl_->read_streams();
  return impl_->streams;
}

std::optional<RecordedStream> Recordings::find(std::uint64_t number) {
  std::vector<CatalogPart> parts = impl_->parts_of(number);
  std::vector<RecordedStream> found;
  if (!parts.empty()) impl_->add(parts, found);
  return found.empty() ? std::nullopt : std::optional(std::move(found.front()));
}

std::vector<RecordedStream> Recordings::find(const std::string& name) {
  std::vector<RecordedStream> found;
  for (const RecordedStream& stream : streams())
    if (stream.meta.name == name) found.push_back(stream);
  return found;
}

const std::vector<std::string>& Recordings::problems() const { return impl_->problems; }

std::shared_ptr<RecordingFile> Recordings::file(FileNumber number) {
  const auto indexed = impl_->files.indexed(number);
  return indexed ? std::shared_ptr<RecordingFile>(*indexed, &(*indexed)->file) : nullptr;
}

const std::vector<FileNumber>& Recordings::files() const { return impl_->files.numbers(); }

Result<std::shared_ptr<IndexedFile>, std::string> Recordings::indexed(FileNumber number) {
  return impl_->files.indexed(number);
}

std::vector<FileNumber> Recordings::files_of(std::uint64_t stream) {
  std::vector<FileNumber> numbers;
  for (const CatalogPart& part : impl_->parts_of(stream)) numbers.push_back(part.file);
  return numbers;
}

std::uint64_t Recordings::changes() const { return impl_->changes; }

std::string Recordings::run_of(FileNumber file) const { return impl_->files.run_of(file); }

const std::string& Recordings::live_run() const { return impl_->files.live_run(); }

}  // namespace millrace::recording
