// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "training/contract/catalog.h"

namespace millrace::training {

// A catalog of lengths and events, without frames. Stream i has the name "stream i".
class ListedCatalog final : public Catalog {
 public:
  ListedCatalog() = default;
  explicit ListedCatalog(std::vector<std::uint64_t> lengths) : lengths_(std::move(lengths)) {}

  void add_events(std::uint64_t stream, std::vector<InnerEvent> events) {
    events_.resize(lengths_.size());
    events_[stream] = std::move(events);
  }
  void set_parts(std::vector<std::uint64_t> parts) { parts_ = std::move(parts); }

  const FrameType& frame_type() const override { return type_; }
  std::uint64_t size() const override { return lengths_.size(); }
  std::uint64_t frames(std::uint64_t stream) const override { return lengths_[stream]; }
  std::string name(std::uint64_t stream) const override {
    return "stream " + std::to_string(stream);
  }
  bool has_events(std::uint64_t stream) const override {
    return stream < events_.size() && !events_[stream].empty();
  }
  std::vector<InnerEvent> events(std::uint64_t stream) const override {
    return has_events(stream) ? events_[stream] : std::vector<InnerEvent>{};
  }
  std::uint64_t digest() const override { return digest_of_lengths(); }
  std::vector<std::uint64_t> parts() const override {
    return parts_.empty() ? std::vector<std::uint64_t>{0, size()} : parts_;
  }
  // Plans read no frames.
  std::unique_ptr<CatalogReader> reader() const override { return nullptr; }

 private:
  std::uint64_t digest_of_lengths() const {
    std::uint64_t digest = 0xcbf29ce484222325;
    for (const std::uint64_t length : lengths_) digest = (digest ^ length) * 0x100000001b3;
    return digest;
  }

  FrameType type_;
  std::vector<std::uint64_t> lengths_;
  std::vector<std::vector<InnerEvent>> events_;
  std::vector<std::uint64_t> parts_;
};

}  // namespace millrace::training
