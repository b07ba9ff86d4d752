// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/recorded/extent.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "recording/reader/recordings.h"
#include "recording/reader/stream_parts.h"
#include "training/catalogs/recorded/read_stream.h"

namespace millrace::training {
namespace {

namespace json = boost::json;
using recording::Recordings;

constexpr std::size_t most_missing = 1000;  // ranges in an extent

// The numbers of recordings, from a text.
struct Extent {
  std::uint64_t last = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> missing{};

  bool has(std::uint64_t number) const {
    return number <= last && std::ranges::none_of(missing, [&](const auto& range) {
             return number >= range.first && number <= range.second;
           });
  }
};

std::optional<Extent> parse(const std::string& text) try {
  const json::value parsed = json::parse(text);
  Extent extent{.last = parsed.at("last").to_number<std::uint64_t>()};
  for (const json::value& range : parsed.at("missing").as_array())
    extent.missing.emplace_back(range.at(0).to_number<std::uint64_t>(),
                                range.at(1).to_number<std::uint64_t>());
  return extent;
} catch (const std::exception&) {
  return std::nullopt;
}

// A stream of the index, with those of its recordings that an extent has.
struct FormerStream {
  std::uint64_t place = 0;
  std::vector<std::uint64_t> numbers{};
  bool unchanged = false;  // these are all of its recordings
};

// In the order in which an index of that time had them.
std::vector<FormerStream> former_streams(const Index& index, const Extent& extent) {
  std::vector<FormerStream> streams;
  for (std::uint64_t i = 0; i < index.size(); ++i) {
    FormerStream stream{.place = i};
    const auto parts = parts_of(index, i);
    for (const IndexedPart& part : parts)
      if (extent.has(part.number)) stream.numbers.push_back(part.number);
    stream.unchanged = stream.numbers.size() == parts.size();
    if (!stream.numbers.empty()) streams.push_back(std::move(stream));
  }
  std::ranges::sort(streams, {}, [](const FormerStream& stream) {
    return *std::ranges::min_element(stream.numbers);
  });
  return streams;
}

}  // namespace

std::string extent_of(const Index& index) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < index.size(); ++i)
    for (const IndexedPart& part : parts_of(index, i)) numbers.push_back(part.number);
  std::ranges::sort(numbers);
  json::array missing;
  std::uint64_t next = 0;
  for (const std::uint64_t number : numbers) {
    if (number > next) missing.push_back(json::array{next, number - 1});
    next = number + 1;
  }
  const auto more = missing.size() > most_missing ? missing.size() - most_missing : 0;
  missing.erase(missing.begin(), missing.begin() + static_cast<std::ptrdiff_t>(more));
  return json::serialize(json::object{{"last", next - 1}, {"missing", std::move(missing)}});
}

std::optional<Index> within(const Index& index, const std::string& folder,
                            const std::string& extent) {
  const auto numbers = parse(extent);
  if (!numbers) return std::nullopt;
  std::unique_ptr<Recordings> recordings;
  IndexBuilder builder;
  const auto streams = former_streams(index, *numbers);
  for (const FormerStream& stream : streams) {
    if (stream.unchanged) {
      builder.add(index.stream(stream.place), index.events(stream.place),
                  index.parts(stream.place));
      continue;
    }
    if (!recordings) {
      auto opened = Recordings::open(folder);
      if (!opened) return std::nullopt;
      recordings = std::move(*opened);
    }
    recording::StreamParts parts;
    for (const std::uint64_t number : stream.numbers)
      if (auto part = recordings->find(number)) parts.push_back(std::move(*part));
    if (parts.empty()) continue;  // deleted meanwhile
    const ReadStream read = read_stream(*recordings, parts);
    builder.add(read.facts, read.events, read.parts);
  }
  if (streams.empty()) return std::nullopt;
  return Index::from(builder.finish(index.frame_type(), true));
}

}  // namespace millrace::training
