// SPDX-License-Identifier: Apache-2.0
#include "training/filling/streams/open_stream.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "training/filling/streams/finite_frames.h"

namespace millrace::training {

namespace {

// Bytes that are read at once: to be copied, and to be checked. A reader keeps what it has read.
constexpr std::size_t part = 16 << 20, checked = 256 << 10;

ReadError function_failed(std::string message) {
  return {.fault = DataFault::function, .message = std::move(message)};
}

// `needed`: frames or entries, of `size` bytes.
ReadError wrong_length(const std::string& what, std::size_t bytes, std::uint64_t needed,
                       std::size_t size) {
  std::string found = std::to_string(bytes / size) + " " + what;
  if (bytes % size > 0) found += " and a part of another";
  return {.fault = DataFault::length,
          .message = "the function returned " + found + "; needed: " + std::to_string(needed)};
}

// A copy of `count` frames or entries, of `size` bytes. `read` returns a part of them. In parts,
// because a reader keeps memory for the longest part.
template <class Read>
Result<std::vector<std::byte>, ReadError> copy_of(std::uint64_t count, std::size_t size,
                                                  const Read& read) {
  std::vector<std::byte> copy;
  const std::uint64_t step = std::max<std::uint64_t>(1, part / size);
  for (std::uint64_t at = 0; at < count; at += step) {
    const Result<Bytes, ReadError> bytes = read(at, std::min(step, count - at));
    if (!bytes) return bytes.error();
    copy.insert(copy.end(), bytes->begin(), bytes->end());
  }
  return copy;
}

// Fails if StreamFunction::frames() gave another number when the epoch was distributed.
Result<Bytes, ReadError> content_part(Bytes content, std::size_t begin, std::size_t count) {
  if (begin <= content.size() && count <= content.size() - begin)
    return content.subspan(begin, count);
  return ReadError{DataFault::length,
                   "the function gives the stream another length than at the begin of the epoch"};
}

}  // namespace

OpenStream::OpenStream(const Catalog& catalog, const StreamCopy& stream,
                       std::unique_ptr<FrameReader> reader)
    : catalog_(&catalog),
      stream_(stream),
      frame_bytes_(catalog.frame_type().bytes()),
      reader_(std::move(reader)) {}

Result<OpenStream, ReadError> OpenStream::open(const Catalog& catalog, CatalogReader& reader,
                                               StreamFunction* function, const StreamCopy& stream) {
  auto opened = reader.open(stream.stream);
  if (!opened) return std::move(opened).error();
  OpenStream result(catalog, stream, std::move(*opened));
  if (function)
    if (auto changed = result.change(*function); !changed) return std::move(changed).error();
  return result;
}

Result<void, ReadError> OpenStream::change(StreamFunction& function) {
  const std::uint64_t frames = catalog_->frames(stream_.stream);
  const auto companions = catalog_->companions();
  StreamFunction::Content content;
  auto copied = copy_of(frames, frame_bytes_, [&](std::uint64_t at, std::uint64_t count) {
    auto read = reader_->frames(at, count);
    if (read)
      if (auto finite = check_finite(*read, at); !finite) read = std::move(finite).error();
    return read;
  });
  if (!copied) return std::move(copied).error();
  content.frames = std::move(*copied);
  for (std::size_t i = 0; i < companions.size(); ++i) {
    copied = copy_of(companions[i].entries_of(frames), companions[i].entry_bytes(),
                     [&](std::uint64_t at, std::uint64_t count) {
                       return reader_->entries(i, {.begin = at, .count = count});
                     });
    if (!copied) return std::move(copied).error();
    content.companions.push_back(std::move(*copied));
  }
  reader_.reset();
  std::uint64_t needed = 0;
  try {
    needed = function.frames(stream_, frames);
    if (auto changed = function.change(stream_, content); !changed) return changed;
  } catch (const std::exception& error) {
    return function_failed(error.what());
  }
  if (content.frames.size() != needed * frame_bytes_)
    return wrong_length("frames", content.frames.size(), needed, frame_bytes_);
  if (content.companions.size() != companions.size())
    return function_failed("the function returned " + std::to_string(content.companions.size()) +
                           " companions; needed: " + std::to_string(companions.size()));
  for (std::size_t i = 0; i < companions.size(); ++i) {
    const std::uint64_t entries = companions[i].entries_of(needed);
    const std::size_t size = companions[i].entry_bytes();
    if (content.companions[i].size() != entries * size)
      return wrong_length("entries of the companion " + companions[i].name,
                          content.companions[i].size(), entries, size);
  }
  content_ = std::move(content);
  return {};
}

Result<Bytes, ReadError> OpenStream::frames(std::uint64_t begin, std::uint64_t count) {
  if (!content_) return reader_->frames(begin, count);
  return content_part(content_->frames, begin * frame_bytes_, count * frame_bytes_);
}

void OpenStream::read_ahead(std::uint64_t begin, std::uint64_t count) {
  if (content_) return;
  (void)frames(begin, count);
  const auto companions = catalog_->companions();
  for (std::size_t i = 0; i < companions.size(); ++i)
    (void)entries(i, companions[i].entries_in(begin, count));
}

Result<void, ReadError> OpenStream::check(std::uint64_t begin, std::uint64_t count) {
  const auto read = frames(begin, count);
  if (!read) return read.error();
  if (auto finite = check_finite(*read, begin); !finite) return finite;
  const auto companions = catalog_->companions();
  for (std::size_t i = 0; i < companions.size(); ++i)
    if (const auto found = entries(i, companions[i].entries_in(begin, count)); !found)
      return found.error();
  return {};
}

// Parts become shorter until one bad frame is left.
Result<void, ReadError> OpenStream::check_until(std::uint64_t frame) {
  std::uint64_t most = std::max<std::uint64_t>(1, checked / frame_bytes_);
  while (good_ < frame) {
    const std::uint64_t count = std::min(most, frame - good_);
    auto good = check(good_, count);
    if (!good && count == 1) return good;
    if (good)
      good_ += count;
    else
      most = count / 2;
  }
  return {};
}

std::size_t OpenStream::memory() const {
  if (!content_) return reader_->memory();
  std::size_t memory = content_->frames.size();
  for (const auto& companion : content_->companions) memory += companion.size();
  return memory;
}

Result<void, ReadError> OpenStream::check_finite(Bytes frames, std::uint64_t begin) const {
  const auto bad = first_not_finite(catalog_->frame_type(), frames);
  if (!bad) return {};
  if (!content_) return not_finite(*reader_, begin + *bad);
  return function_failed("the function returned a value that is NaN or infinite, in frame " +
                         std::to_string(begin + *bad));
}

Result<Bytes, ReadError> OpenStream::entries(std::size_t companion, EntryRange range) {
  if (!content_) return reader_->entries(companion, range);
  const std::size_t bytes = catalog_->companions()[companion].entry_bytes();
  return content_part(content_->companions[companion], range.begin * bytes, range.count * bytes);
}

}  // namespace millrace::training
