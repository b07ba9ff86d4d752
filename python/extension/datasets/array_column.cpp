// SPDX-License-Identifier: Apache-2.0
#include "python/extension/datasets/array_column.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <utility>

#include "input/value_kernels.h"
#include "python/extension/datasets/array_types.h"
#include "python/extension/datasets/ensured_gil.h"
#include "python/extension/datasets/python_failure.h"
#include "python/extension/text.h"

namespace millrace::python {
namespace {

namespace nb = nanobind;
using training::DataFault;
using training::ReadError;
using training::StoredFile;

// Python reads at least this much at once: a call costs about as much as a copy of this.
constexpr std::size_t block_bytes = 128 << 10;

constexpr std::size_t most_open = 256;  // files of a column that no reader needs, per thread

}  // namespace

ArrayColumn::ArrayColumn(nb::object source, ItemType type)
    : source_(std::move(source)),
      type_(std::move(type)),
      has_places_(nb::hasattr(source_.get(), "place")) {
  const nb::object pool = nb::getattr(source_.get(), "pool", nb::none());
  if (pool.is_none()) return;
  pool_ = nb::cast<std::shared_ptr<training::ProcessPool>>(pool);
  number_ = nb::cast<std::uint32_t>(source_.get().attr("source"));
}

void ArrayColumn::add(std::uint64_t length) {
  const std::uint64_t stream = streams_++;
  if (!has_places_) return;
  const nb::object place = source_.get().attr("place")(stream);
  Place& added = places_.emplace_back();
  if (place.is_none()) return;
  if (!nb::isinstance<nb::tuple>(place)) {
    const ArrayBytes bytes(place);
    if (bytes.get().size() != length * type_.bytes) return;
    added = {reinterpret_cast<std::uint64_t>(bytes.get().data()), in_memory};
    return;
  }
  const auto path = bytes_of(place[0]);
  const auto [found, is_new] =
      numbers_.try_emplace(path, static_cast<std::uint32_t>(files_.size()));
  if (is_new) files_.push_back(path);
  added = {nb::cast<std::uint64_t>(place[1]), found->second};
}

Result<ArrayFiles::File, ReadError> ArrayFiles::open(std::uint32_t number) {
  if (const auto found = open_.find(number); found != open_.end()) {
    if (found->second->is_current()) return found->second;
    open_.erase(found);
    std::erase(order_, number);
  }
  auto opened = StoredFile::open(column_.files_[number], column_.type_.mapped);
  if (!opened) return opened.error();
  auto file = std::make_shared<const StoredFile>(std::move(*opened));
  order_.push_back(number);
  open_.emplace(number, file);
  if (order_.size() > most_open) {
    open_.erase(order_.front());
    order_.pop_front();
  }
  return file;
}

Result<ArrayReader, ReadError> ArrayReader::open(ArrayFiles& files, std::uint64_t stream,
                                                 std::uint64_t length) {
  const ArrayColumn& column = files.column_;
  ArrayReader reader(column, stream, length);
  if (column.places_.empty()) return reader;
  const ArrayColumn::Place& place = column.places_[stream];
  if (place.file == ArrayColumn::in_python) return reader;
  const std::size_t bytes = length * column.type_.bytes;
  if (place.file == ArrayColumn::in_memory) {
    reader.in_place_ = Bytes(reinterpret_cast<const std::byte*>(place.offset), bytes);
    return reader;
  }
  auto file = files.open(place.file);
  if (!file) return file.error();
  const std::uint64_t size = (*file)->size();
  if (place.offset > size || size - place.offset < bytes)
    return ReadError{DataFault::length, column.files_[place.file] + ": is shorter than its index"};
  reader.file_ = std::move(*file);
  reader.offset_ = place.offset;
  return reader;
}

Result<Bytes, ReadError> ArrayReader::read(std::uint64_t begin, std::uint64_t count) {
  const std::size_t size = column_->type_.bytes;
  if (in_place_ || file_) {
    const auto items =
        in_place_ ? Result<Bytes, ReadError>(in_place_->subspan(begin * size, count * size))
                  : file_->read(offset_ + begin * size, count * size, file_block_);
    if (!items) return items;
    if (const auto checked = check(*items, begin); !checked) return checked.error();
    return items;
  }
  const std::uint64_t have = block_.size() / size;
  if (begin < block_begin_ || begin + count > block_begin_ + have)
    if (const auto fetched = fetch(begin, count); !fetched) return fetched.error();
  return Bytes(block_).subspan((begin - block_begin_) * size, count * size);
}

std::string ArrayReader::file() const {
  return file_ ? column_->files_[column_->places_[stream_].file] : std::string();
}

Result<void, ReadError> ArrayReader::fetch(std::uint64_t begin, std::uint64_t count) {
  const std::size_t size = column_->type_.bytes;
  const std::uint64_t wanted =
      std::min(length_ - begin, std::max<std::uint64_t>(count, block_bytes / size));
  block_.clear();
  auto items = call(begin, wanted);
  if (!items) return std::move(items).error();
  if (items->size() != wanted * size)
    return ReadError{DataFault::length, column_->type_.noun + ": read() returned " +
                                            std::to_string(items->size()) + " bytes instead of " +
                                            std::to_string(wanted * size)};
  block_ = std::move(*items);
  block_begin_ = begin;
  auto checked = check(block_, begin);
  if (!checked) block_.clear();
  return checked;
}

Result<std::vector<std::byte>, ReadError> ArrayReader::call(std::uint64_t begin,
                                                            std::uint64_t count) const {
  if (!column_->pool_ || !column_->pool_->is_usable()) return call_here(begin, count);
  constexpr std::size_t alignment = 64;
  auto values = column_->pool_->call({.request = "{\"source\":" + std::to_string(column_->number_) +
                                                 ",\"stream\":" + std::to_string(stream_) +
                                                 ",\"begin\":" + std::to_string(begin) +
                                                 ",\"count\":" + std::to_string(count),
                                      .given = {},
                                      .room = count * column_->type_.bytes + alignment,
                                      .fault = DataFault::read,
                                      .name = column_->type_.noun});
  if (!values) return std::move(values).error();
  return values->empty() ? std::vector<std::byte>() : std::move(values->front());
}

Result<std::vector<std::byte>, ReadError> ArrayReader::call_here(std::uint64_t begin,
                                                                 std::uint64_t count) const {
  const EnsuredGil held;
  try {
    const nb::object array =
        called([&] { return column_->source_.get().attr("read")(stream_, begin, count); });
    const ArrayBytes bytes(array);
    return std::vector<std::byte>(bytes.get().begin(), bytes.get().end());
  } catch (nb::python_error& error) {
    return failure_of(error, DataFault::read, column_->type_.noun);
  }
}

Result<void, ReadError> ArrayReader::check(Bytes items, std::uint64_t begin) const {
  const ItemType& type = column_->type_;
  if (!type.floats || all_finite(*type.floats, items)) return {};
  std::uint64_t first = 0;
  while (all_finite(*type.floats, items.subspan(first * type.bytes, type.bytes))) ++first;
  return ReadError{DataFault::format, type.noun + ": a value at " + std::to_string(begin + first) +
                                          " is NaN or infinite"};
}

}  // namespace millrace::python
