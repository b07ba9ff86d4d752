// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "input/sample_format.h"
#include "python/extension/datasets/kept_object.h"
#include "training/catalogs/frames/stored_file.h"
#include "training/contract/catalog.h"
#include "training/processes/process_pool.h"

namespace millrace::python {

// The items of a column: frames, or entries of a companion.
struct ItemType {
  std::size_t bytes = 0;  // size of an item
  std::optional<SampleFormat> floats =
      {};                 // type of its values, if reads check that they are finite
  bool mapped = false;    // files are mapped, as StoredFile::open()
  std::string noun = {};  // for errors: "frames", or "companion 'vad'"
};

// Arrays of Python, one for each stream. An array in memory is read in place, and one in a file is
// read from there, without the GIL. Others are read in blocks by a call of Python.
//
// The Python object has `read(stream, begin, count)`, which returns a contiguous array of the
// column's type, and `place(stream)`: an array in memory, a pair of path and offset, or None. It
// keeps the arrays in memory. With `pool` and `source`, the processes of the pool read for it: it
// is the function of this number.
//
// Immutable after the last add(), and thread-safe then.
class ArrayColumn {
 public:
  ArrayColumn(nanobind::object source, ItemType type);

  // Adds the next stream, with `length` items. Requires: the GIL. Throws the error of place().
  void add(std::uint64_t length);

  const ItemType& type() const { return type_; }

 private:
  friend class ArrayFiles;
  friend class ArrayReader;
  static constexpr std::uint32_t in_python = 0xffff'ffff, in_memory = 0xffff'fffe;

  // The offset in a file, or the address in memory.
  struct Place {
    std::uint64_t offset = 0;
    std::uint32_t file = in_python;  // number in files_
  };

  KeptObject source_;
  std::shared_ptr<training::ProcessPool> pool_;  // null: this process reads
  std::uint32_t number_ = 0;                     // that the source has in the pool
  ItemType type_;
  bool has_places_;
  std::vector<Place> places_;  // empty: all are read by Python
  std::uint64_t streams_ = 0;
  std::vector<std::string> files_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  // indexes of files_
};

// The open files of a column. A file stays open while a reader has it. Those that were opened last
// stay longer: several streams may be in one file. Confined to one thread.
class ArrayFiles {
 public:
  explicit ArrayFiles(const ArrayColumn& column) : column_(column) {}

 private:
  friend class ArrayReader;
  using File = std::shared_ptr<const training::StoredFile>;
  Result<File, training::ReadError> open(std::uint32_t number);

  const ArrayColumn& column_;
  std::unordered_map<std::uint32_t, File> open_;
  std::deque<std::uint32_t> order_;  // the keys of open_, in the order of opening
};

// Reads one stream of a column. Confined to one thread.
class ArrayReader {
 public:
  // The error is for a file that is missing or too short.
  static Result<ArrayReader, training::ReadError> open(ArrayFiles& files, std::uint64_t stream,
                                                       std::uint64_t length);

  // The items [begin, begin + count), valid until the next call. Requires: they are in the stream.
  Result<Bytes, training::ReadError> read(std::uint64_t begin, std::uint64_t count);
  // The path of its file. Empty without a file.
  std::string file() const;
  std::size_t memory() const { return block_.capacity() + file_block_.memory(); }

 private:
  ArrayReader(const ArrayColumn& column, std::uint64_t stream, std::uint64_t length)
      : column_(&column), stream_(stream), length_(length) {}
  Result<void, training::ReadError> fetch(std::uint64_t begin, std::uint64_t count);
  Result<std::vector<std::byte>, training::ReadError> call(std::uint64_t begin,
                                                           std::uint64_t count) const;
  Result<std::vector<std::byte>, training::ReadError> call_here(std::uint64_t begin,
                                                                std::uint64_t count) const;
  Result<void, training::ReadError> check(Bytes items, std::uint64_t begin) const;

  const ArrayColumn* column_;
  std::uint64_t stream_, length_;
  ArrayFiles::File file_;
  std::uint64_t offset_ = 0;  // in the file
  training::StoredFile::Block file_block_;
  std::optional<Bytes> in_place_;
  std::vector<std::byte> block_;
  std::uint64_t block_begin_ = 0;
};

}  // namespace millrace::python
