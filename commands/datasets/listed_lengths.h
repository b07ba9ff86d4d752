// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "training/contract/catalog.h"

namespace millrace {

// A catalog of lengths: streams of audio without frames, to look at a plan. Stream i has its number
// as its name. Immutable.
class ListedLengths final : public training::Catalog {
 public:
  // Reads a JSON array of lengths in frames. The error is a sentence that names the file.
  static Result<ListedLengths, std::string> read(const std::string& path);

  const FrameType& frame_type() const override { return type_; }
  std::uint64_t size() const override { return lengths_.size(); }
  std::uint64_t frames(std::uint64_t stream) const override { return lengths_[stream]; }
  std::string name(std::uint64_t stream) const override { return std::to_string(stream); }
  std::uint64_t digest() const override { return 0; }
  // There is nothing to read.
  std::unique_ptr<training::CatalogReader> reader() const override { return nullptr; }

 private:
  explicit ListedLengths(std::vector<std::uint64_t> lengths) : lengths_(std::move(lengths)) {}

  FrameType type_;
  std::vector<std::uint64_t> lengths_;
};

}  // namespace millrace
