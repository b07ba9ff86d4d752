// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "training/catalogs/companion_files.h"
#include "training/catalogs/companion_ratio.h"

namespace millrace::training {
namespace {

constexpr std::uint64_t most_opened = 1000;

class FormatSearch {
 public:
  FormatSearch(const Catalog& catalog, const CompanionFiles& files)
      : catalog_(catalog), files_(files), given_(files.source()) {
    format_.name = given_.name;
    format_.frames_per_entry = given_.frames_per_entry.value_or(1);
    format_.entries_per_frame = given_.entries_per_frame.value_or(1);
  }

  Result<CompanionFormat, CatalogError> find() {
    if (given_.frames_per_entry && given_.entries_per_frame)
      return fault("give only one of frames_per_entry and entries_per_frame");
    if (given_.frames_per_entry == 0u || given_.entries_per_frame == 0u)
      return fault("frames_per_entry and entries_per_frame must be at least 1");
    // The longest streams determine the ratio best. Those of equal lengths come last: they show
    // nothing new.
    std::vector<std::uint64_t> streams(std::min(catalog_.size(), most_opened));
    std::iota(streams.begin(), streams.end(), std::uint64_t{0});
    const auto length = [this](std::uint64_t stream) { return catalog_.frames(stream); };
    std::ranges::stable_sort(streams, std::ranges::greater(), length);
    std::vector<std::uint64_t> first, others;
    for (const std::uint64_t stream : streams)
      (first.empty() || length(first.back()) != length(stream) ? first : others).push_back(stream);
    for (const std::uint64_t stream : first) {
      if (done() && (is_given() || ratio_.is_certain())) break;
      if (const auto added = add(stream); !added) return added.error();
    }
    for (const std::uint64_t stream : others) {
      if (done()) break;
      if (const auto added = add(stream); !added) return added.error();
    }
    if (!typed_) return fault("no stream has frames");
    if (!is_given() && !ratio_.found())
      return fault("the lengths fit " + ratio_.text() +
                   ": give frames_per_entry or entries_per_frame");
    if (!is_given()) ratio_.set(format_);
    return format_;
  }

 private:
  bool is_given() const { return given_.frames_per_entry || given_.entries_per_frame; }
  bool done() const { return typed_ && (is_given() || ratio_.found()); }

  Result<void, CatalogError> add(std::uint64_t stream) {
    const auto array = files_.open(stream);
    if (!array) return fault(array.error().message);
    const CompanionArray::Shape& shape = (*array)->shape();
    if (shape.entries > 0 && !typed_) {
      if (given_.element && *given_.element != shape.element)
        return fault(files_.label(stream) + ": has values of another type");
      format_.element = shape.element;
      format_.values = static_cast<std::uint32_t>(shape.values);
      typed_ = true;
    }
    if (is_given() || ratio_.add(catalog_.frames(stream), shape.entries)) return {};
    return fault(files_.label(stream) + ": has " + std::to_string(shape.entries) + " entries for " +
                 std::to_string(catalog_.frames(stream)) +
                 " frames: no whole number of frames per entry, or of entries per frame, fits; put "
                 "tokens and "
                 "texts into meta");
  }

  CatalogError fault(const std::string& reason) const {
    return {"companion \"" + given_.name + "\": " + reason};
  }

  const Catalog& catalog_;
  const CompanionFiles& files_;
  const CompanionSource& given_;
  CompanionFormat format_;
  CompanionRatio ratio_;
  bool typed_ = false;
};

}  // namespace

Result<CompanionFormat, CatalogError> find_format(const Catalog& catalog,
                                                  const CompanionFiles& files) {
  return FormatSearch(catalog, files).find();
}

}  // namespace millrace::training
