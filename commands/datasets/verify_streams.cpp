// SPDX-License-Identifier: Apache-2.0
#include "commands/datasets/verify_streams.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <thread>

#include "training/filling/finite_frames.h"

namespace millrace {
namespace {

using training::Catalog;
using training::CatalogReader;
using training::ReadError;

constexpr std::uint64_t block = 65'536;  // frames that are read at once

std::optional<ReadError> fault_of(const Catalog& catalog, CatalogReader& reader,
                                  std::uint64_t stream) {
  const auto opened = reader.open(stream);
  if (!opened) return opened.error();
  const std::uint64_t frames = catalog.frames(stream);
  for (std::uint64_t at = 0; at < frames; at += block) {
    const auto read = (*opened)->frames(at, std::min(block, frames - at));
    if (!read) return read.error();
    if (const auto bad = training::first_not_finite(catalog.frame_type(), *read))
      return training::not_finite(**opened, at + *bad);
  }
  return std::nullopt;
}

constexpr std::uint64_t all_taken = std::numeric_limits<std::uint64_t>::max() / 2;

// Verifies the next streams that no thread has taken.
class Verifier {
 public:
  Verifier(const Catalog& catalog, std::atomic<std::uint64_t>& taken)
      : catalog_(catalog), taken_(taken), reader_(catalog.reader()) {}

  // False: all streams are taken.
  bool verify_one() {
    // Relaxed: the results are read after the threads are joined.
    const std::uint64_t stream = taken_.fetch_add(1, std::memory_order_relaxed);
    if (stream >= catalog_.size()) return false;
    if (auto fault = fault_of(catalog_, *reader_, stream))
      bad.push_back({.stream = stream, .message = std::move(fault->message)});
    return true;
  }

  // As verify_one() until all streams are taken. An exception is kept, and stops all verifiers.
  void verify_all() {
    try {
      while (verify_one()) {
      }
    } catch (...) {
      thrown = std::current_exception();
      taken_.store(all_taken);
    }
  }

  std::vector<BadStream> bad;
  std::exception_ptr thrown;

 private:
  const Catalog& catalog_;
  std::atomic<std::uint64_t>& taken_;
  const std::unique_ptr<CatalogReader> reader_;
};

}  // namespace

std::vector<BadStream> verify_streams(const Catalog& catalog,
                                      const std::function<void(std::uint64_t)>& progress) {
  std::atomic<std::uint64_t> taken = 0;
  std::vector<std::unique_ptr<Verifier>> verifiers;
  const std::uint64_t threads = std::clamp<std::uint64_t>(
      std::thread::hardware_concurrency(), 1, std::max<std::uint64_t>(1, catalog.size()));
  for (std::uint64_t i = 0; i < threads; ++i)
    verifiers.push_back(std::make_unique<Verifier>(catalog, taken));
  // Ends the other threads if this one throws.
  struct Stop {
    std::atomic<std::uint64_t>& taken;
    ~Stop() { taken.store(all_taken); }
  };
  {
    std::vector<std::jthread> others;
    const Stop stop{taken};
    for (std::uint64_t i = 1; i < threads; ++i)
      others.emplace_back([verifier = verifiers[i].get()] { verifier->verify_all(); });
    while (verifiers.front()->verify_one())
      progress(std::min(catalog.size(), taken.load(std::memory_order_relaxed)));
  }
  for (const auto& verifier : verifiers)
    if (verifier->thrown) std::rethrow_exception(verifier->thrown);
  std::vector<BadStream> bad;
  for (const auto& verifier : verifiers) std::ranges::move(verifier->bad, std::back_inserter(bad));
  std::ranges::sort(bad, {}, &BadStream::stream);
  return bad;
}

}  // namespace millrace
