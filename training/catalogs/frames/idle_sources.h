// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace millrace::training {

// The files of a thread that were read last and are not in use. A stream that is opened again for
// its next row is then not decoded from its beginning, and the file of one that is opened again in
// the next epoch is at hand. Those that have been unused for longest are closed if there
// are too many. `Source` has the functions is_current(), put_away(), memory() and descriptors().
// Confined to one thread.
template <class Source>
class IdleSources {
 public:
  static constexpr std::size_t most_files = 256;
  static constexpr std::size_t most_descriptors = 64;
  static constexpr std::size_t most_memory = 256 << 20;  // bytes

  // The file of a stream. Null: it is not idle, or not current any more.
  std::unique_ptr<Source> take(std::uint64_t stream) {
    const auto found = std::ranges::find(idle_, stream, &Idle::stream);
    if (found == idle_.end()) return nullptr;
    auto source = remove(found);
    return source->is_current() ? std::move(source) : nullptr;
  }

  void put(std::uint64_t stream, std::unique_ptr<Source> source) {
    source->put_away();
    memory_ += source->memory();
    descriptors_ += source->descriptors();
    idle_.push_back({.stream = stream, .source = std::move(source)});
    while (idle_.size() > most_files || memory_ > most_memory || descriptors_ > most_descriptors)
      remove(idle_.begin());
  }

 private:
  struct Idle {
    std::uint64_t stream = 0;
    std::unique_ptr<Source> source;
  };

  std::unique_ptr<Source> remove(typename std::vector<Idle>::iterator which) {
    auto source = std::move(which->source);
    idle_.erase(which);
    memory_ -= source->memory();
    descriptors_ -= source->descriptors();
    return source;
  }

  std::vector<Idle> idle_;  // by the time of their last use
  std::size_t memory_ = 0;  // bytes
  std::size_t descriptors_ = 0;
};

}  // namespace millrace::training
