// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/companion.h"
#include "base/frame_type.h"
#include "base/result.h"
#include "training/contract/catalog.h"

namespace millrace::training {

// The companion of one stream. Confined to one thread.
class CompanionArray {
 public:
  struct Shape {
    CompanionElement element = CompanionElement::f32;
    std::uint64_t values = 1;  // per entry
    std::uint64_t entries = 0;
    bool operator==(const Shape&) const = default;
  };

  virtual ~CompanionArray() = default;
  virtual const Shape& shape() const = 0;
  // As FrameReader::entries(). Requires: they are entries of the array.
  virtual Result<Bytes, ReadError> entries(EntryRange range) = 0;
  // Memory that it keeps, in bytes, without mapped files.
  virtual std::size_t memory() const = 0;
  // False if its file was cut, replaced or deleted, as far as that is known.
  virtual bool is_current() = 0;
  virtual void put_away() {}
  // File descriptors that it keeps, except those of a StoredFile.
  virtual std::size_t descriptors() const = 0;
};

using OpenedArray = Result<std::unique_ptr<CompanionArray>, ReadError>;

// A `.npy` file. The first axis is the entries.
OpenedArray open_npy(const std::string& path);
// An audio file: an entry is a frame, with values of the type `element`.
OpenedArray open_audio_array(const std::string& path, Element element);
// A JSON array of numbers, or of arrays of numbers. `label` names it in errors. Default of
// `element`: s32 if all values are integers that fit, otherwise f32.
OpenedArray parse_json_array(std::string_view text, const std::string& label,
                             const std::optional<CompanionElement>& element);

}  // namespace millrace::training
