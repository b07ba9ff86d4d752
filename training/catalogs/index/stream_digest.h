// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/companion.h"
#include "base/event.h"
#include "base/frame_type.h"
#include "training/contract/catalog.h"

namespace millrace::training {

// The digest of a catalog: a 64-bit FNV-1a hash of lengths, names, meta, events and the frame type.
// It does not depend on the machine, or on the times and places of files.
class StreamDigest {
 public:
  explicit StreamDigest(std::uint64_t begin = 0xcbf29ce484222325) : hash_(begin) {}

  void add(std::uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8)
      add_byte(static_cast<std::uint8_t>(number >> shift));
  }
  void add(std::string_view text) {
    add(std::uint64_t{text.size()});
    for (const char c : text) add_byte(static_cast<std::uint8_t>(c));
  }
  void add_stream(std::uint64_t frames, std::string_view name, std::string_view meta,
                  std::span<const InnerEvent> events) {
    add(frames);
    add(name);
    add(meta);
    add(std::uint64_t{events.size()});
    for (const InnerEvent& inner : events) {
      add(std::uint64_t{static_cast<std::uint8_t>(inner.event.kind)} << 8 |
          static_cast<std::uint8_t>(inner.event.cause));
      add(inner.event.count);
      add(inner.frame);
      add(std::uint64_t{inner.event.mark.has_value()});
      add(inner.event.mark.value_or(0));
      if (inner.event.opened_anew()) add(inner.event.rows);
    }
  }
  void add_companion(const CompanionFormat& format) {
    add(format.name);
    add(std::uint64_t{static_cast<std::uint8_t>(format.element)});
    add(std::uint64_t{format.values});
    add(std::uint64_t{format.frames_per_entry});
    add(std::uint64_t{format.entries_per_frame});
  }
  void add_type(const FrameType& type) {
    add(std::uint64_t{static_cast<std::uint8_t>(type.element)} << 1 | (type.features ? 1u : 0u));
    add(std::uint64_t{type.values});
    add(std::bit_cast<std::uint64_t>(type.rate));
  }

  std::uint64_t value() const { return hash_; }

 private:
  void add_byte(std::uint8_t byte) { hash_ = (hash_ ^ byte) * 0x100000001b3; }

  std::uint64_t hash_;
};

}  // namespace millrace::training
