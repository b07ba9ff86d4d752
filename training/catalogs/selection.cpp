// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/selection.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "chunker/lengths.h"
#include "chunker/mix.h"
#include "training/catalogs/excerpts.h"
#include "training/catalogs/index/stream_digest.h"

namespace millrace::training {
namespace {

using Streams = std::vector<std::uint32_t>;

std::string_view part_of(std::string_view unit, const std::vector<SplitPart>& split) {
  StreamDigest digest;
  digest.add(unit);
  // From 0 to 1. FNV alone gives similar texts similar numbers.
  double drawn = static_cast<double>(mix(digest.value()) >> 11) * 0x1p-53;
  for (const SplitPart& part : split) {
    if (drawn < part.fraction) return part.name;
    drawn -= part.fraction;
  }
  return rest_part;
}

Streams streams_of(const Catalog& catalog, const Selection& selection) {
  if (selection.split.empty()) {
    Streams all(catalog.size());
    std::iota(all.begin(), all.end(), 0u);
    return all;
  }
  Streams streams;
  for (std::uint32_t i = 0; i < catalog.size(); ++i)
    if (part_of(catalog.unit(i), selection.split) == selection.part) streams.push_back(i);
  return streams;
}

// The number of streams in each of the joined catalogs.
std::vector<std::uint64_t> counts_of(const Catalog& catalog, const Streams& streams) {
  std::vector<std::uint64_t> counts;
  const auto borders = catalog.parts();
  for (std::size_t i = 1; i < borders.size(); ++i)
    counts.push_back(static_cast<std::uint64_t>(std::ranges::count_if(
        streams, [&](std::uint32_t s) { return s >= borders[i - 1] && s < borders[i]; })));
  return counts;
}

// With a split, it depends on the streams of the part alone, also if the other parts have none.
std::uint64_t digest_of(const Catalog& catalog, const Streams& streams, const Selection& selection,
                        std::uint64_t longest) {
  StreamDigest digest;
  if (selection.split.empty()) {
    digest.add(catalog.digest());
  } else {
    for (const std::uint64_t count : counts_of(catalog, streams)) digest.add(count);
    digest.add_type(catalog.frame_type());
    for (const CompanionFormat& format : catalog.companions()) digest.add_companion(format);
    for (const std::uint32_t stream : streams) {
      digest.add_stream(catalog.frames(stream), catalog.name(stream), catalog.meta(stream),
                        catalog.events(stream));
      if (const std::uint64_t format = catalog.converted_from(stream); format != 0)
        digest.add(format);
    }
  }
  digest.add(longest);
  return digest.value();
}

PlanError wrong_limit(const Catalog& catalog, std::uint64_t longest, const std::string& sentence) {
  return {"max_stream", "max_stream = \"" +
                            readable(static_cast<double>(longest) / catalog.frame_type().rate) +
                            "s\", which is " + std::to_string(longest) + " frames, " + sentence};
}

Result<void, PlanError> check_limit(const Catalog& catalog, const Streams& streams,
                                    std::uint64_t longest) {
  for (const CompanionFormat& format : catalog.companions())
    if (longest % format.frames_per_entry != 0)
      return wrong_limit(catalog, longest,
                         "must be a multiple of the " + std::to_string(format.frames_per_entry) +
                             " frames of an entry of the companion \"" + format.name + "\"");
  std::uint64_t excerpts = 0;
  for (const std::uint32_t stream : streams) excerpts += catalog.frames(stream) / longest + 1;
  if (excerpts >> 31 > 0)
    return wrong_limit(catalog, longest,
                       "must be longer: it gives " + std::to_string(excerpts) + " streams");
  return {};
}

// An error if a part of a stream has the name of another stream, which has the form of such names.
Result<void, PlanError> check_names(const Catalog& catalog, const Streams& streams,
                                    const Excerpts& excerpts, std::uint64_t longest) {
  std::unordered_set<std::string> names;
  for (const std::uint32_t stream : streams)
    if (std::string name = catalog.name(stream);
        name.ends_with('s') && name.find('@') != std::string::npos)
      names.insert(std::move(name));
  for (std::uint64_t i = 0; !names.empty() && i < excerpts.size(); ++i)
    if (const auto place = excerpts.place(i); place.begin > 0 && names.contains(excerpts.name(i)))
      return wrong_limit(catalog, longest,
                         "gives a part of \"" + catalog.name(place.stream) + "\" the name \"" +
                             excerpts.name(i) + "\", which another stream has: rename one of them");
  return {};
}

}  // namespace

Result<std::shared_ptr<const Catalog>, PlanError> select_streams(
    std::shared_ptr<const Catalog> catalog, const Selection& selection) {
  const Streams streams = streams_of(*catalog, selection);
  if (streams.empty() && catalog->size() > 0)
    return PlanError{"part", "part = \"" + selection.part + "\" has none of the " +
                                 std::to_string(catalog->size()) + " streams"};
  const bool divides =
      selection.longest > 0 && std::ranges::any_of(streams, [&](std::uint32_t stream) {
        return catalog->frames(stream) > selection.longest;
      });
  if (!divides && selection.split.empty()) return catalog;
  if (divides)
    if (const auto checked = check_limit(*catalog, streams, selection.longest); !checked)
      return checked.error();
  const std::uint64_t longest = divides ? selection.longest : 0;
  const std::uint64_t digest = digest_of(*catalog, streams, selection, longest);
  auto excerpts = std::make_shared<const Excerpts>(catalog, streams, longest, digest);
  if (longest > 0)
    if (const auto checked = check_names(*catalog, streams, *excerpts, longest); !checked)
      return checked.error();
  return std::shared_ptr<const Catalog>(std::move(excerpts));
}

}  // namespace millrace::training
