// SPDX-License-Identifier: Apache-2.0
#include "commands/datasets/verify_streams.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/shared_work.h"
#include "training/filling/streams/finite_frames.h"

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

}  // namespace

std::vector<BadStream> verify_streams(const Catalog& catalog,
                                      const std::function<void(std::uint64_t)>& progress) {
  // The reader of a thread, and its findings.
  struct Thread {
    std::unique_ptr<CatalogReader> reader;
    std::vector<BadStream> bad{};
  };
  std::vector<Thread> threads(std::clamp<std::uint64_t>(
      std::thread::hardware_concurrency(), 1, std::max<std::uint64_t>(1, catalog.size())));
  for (Thread& thread : threads) thread.reader = catalog.reader();
  share_work(
      catalog.size(), threads.size() - 1, "verifier",
      [&](std::uint64_t thread, std::uint64_t stream) {
        if (auto fault = fault_of(catalog, *threads[thread].reader, stream))
          threads[thread].bad.push_back({.stream = stream, .message = std::move(fault->message)});
      },
      [&](std::uint64_t taken) { progress(std::min(catalog.size(), taken)); });
  std::vector<BadStream> bad;
  for (Thread& thread : threads) std::ranges::move(thread.bad, std::back_inserter(bad));
  std::ranges::sort(bad, {}, &BadStream::stream);
  return bad;
}

}  // namespace millrace
