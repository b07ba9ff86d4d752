// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/arrays/companion_array.h"

#include <algorithm>
#include <utility>

#include "training/catalogs/arrays/npy_header.h"
#include "training/catalogs/frames/frame_source.h"
#include "training/catalogs/frames/stored_file.h"
#include "training/catalogs/index/audio_scan.h"

namespace millrace::training {
namespace {

using Shape = CompanionArray::Shape;
constexpr std::uint64_t most_values = std::uint64_t{1} << 20;  // per entry

// nullopt: the product is too large, or the array has no axis.
std::optional<Shape> shape_of(const NpyHeader& header) {
  if (header.shape.empty() || header.shape.front() >= std::uint64_t{1} << 48) return std::nullopt;
  Shape shape{.element = header.element, .entries = header.shape.front()};
  for (std::size_t axis = 1; axis < header.shape.size(); ++axis) {
    if (header.shape[axis] == 0 || header.shape[axis] > most_values / shape.values)
      return std::nullopt;
    shape.values *= header.shape[axis];
  }
  return shape;
}

class NpyArray final : public CompanionArray {
 public:
  NpyArray(StoredFile file, const Shape& shape, std::uint64_t begin)
      : file_(std::move(file)), shape_(shape), begin_(begin) {}

  const Shape& shape() const override { return shape_; }
  Result<Bytes, ReadError> entries(EntryRange range) override {
    const std::uint64_t entry = size_of(shape_.element) * shape_.values;
    return file_.read(begin_ + range.begin * entry, range.count * entry, block_);
  }
  std::size_t memory() const override { return block_.memory(); }
  bool is_current() override { return file_.is_current(); }
  std::size_t descriptors() const override { return 0; }
  void put_away() override { block_.clear(); }

 private:
  StoredFile file_;
  StoredFile::Block block_;
  const Shape shape_;
  const std::uint64_t begin_;
};

class AudioArray final : public CompanionArray {
 public:
  AudioArray(std::unique_ptr<FrameSource> source, const Shape& shape)
      : source_(std::move(source)), shape_(shape) {}
  const Shape& shape() const override { return shape_; }
  Result<Bytes, ReadError> entries(EntryRange range) override {
    return source_->frames(range.begin, range.count);
  }
  std::size_t memory() const override { return source_->memory(); }
  bool is_current() override { return source_->is_current(); }
  void put_away() override { source_->put_away(); }
  std::size_t descriptors() const override { return source_->descriptors(); }

 private:
  const std::unique_ptr<FrameSource> source_;
  const Shape shape_;
};

CompanionElement companion_element(Element element) {
  switch (element) {
    case Element::s16: return CompanionElement::s16;
    case Element::f16: return CompanionElement::f16;
    case Element::f32: break;
  }
  return CompanionElement::f32;
}

}  // namespace

OpenedArray open_npy(const std::string& path) {
  auto file = StoredFile::open(path);
  if (!file) return file.error();
  StoredFile::Block block;
  const auto head = file->read(0, std::min<std::uint64_t>(file->size(), longest_npy_header), block);
  if (!head) return head.error();
  const auto header = parse_npy_header(*head);
  if (!header) return ReadError{DataFault::format, path + ": " + header.error()};
  const auto shape = shape_of(*header);
  if (!shape) return ReadError{DataFault::format, path + ": has a shape that is not supported"};
  const std::uint64_t entry = size_of(shape->element) * shape->values;
  if (header->begin > file->size() || shape->entries > (file->size() - header->begin) / entry)
    return ReadError{DataFault::length, path + ": ends before its last entry"};
  return std::make_unique<NpyArray>(std::move(*file), *shape, header->begin);
}

OpenedArray open_audio_array(const std::string& path, Element element) {
  const ScannedFile scanned = scan_file(path);
  if (!scanned.error.empty()) return ReadError{DataFault::read, path + ": " + scanned.error};
  auto source = open_frames({.path = path,
                             .frames = scanned.frames,
                             .channels = scanned.channels,
                             .place = scanned.place,
                             .element = element});
  if (!source) return source.error();
  const Shape shape{
      .element = companion_element(element), .values = scanned.channels, .entries = scanned.frames};
  return std::make_unique<AudioArray>(std::move(*source), shape);
}

}  // namespace millrace::training
