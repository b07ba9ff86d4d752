// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/conversions.h"

#include <utility>

#include "input/files/converted_file.h"
#include "input/resamplers/resampler.h"
#include "training/catalogs/index/audio_faults.h"
#include "training/catalogs/index/stream_digest.h"

namespace millrace::training {
namespace {

// The first of some files, and the number of all.
class ListedFiles {
 public:
  explicit ListedFiles(std::size_t most) : most_(most) {}
  void add(const std::string& file, const char* before) {
    if (count_++ < most_) text_ += before + file;
  }
  std::size_t count() const { return count_; }
  std::string text(const char* before) const {
    return count_ <= most_ ? text_ : text_ + before + std::to_string(count_ - most_) + " more";
  }

 private:
  const std::size_t most_;
  std::size_t count_ = 0;
  std::string text_;
};

constexpr std::size_t most_named = 3;

}  // namespace

std::uint64_t frames_of(const IndexedStream& stream, const FrameType& type) {
  if (stream.rate == type.rate) return stream.frames;
  return converted_frames(stream.frames, {stream.rate, static_cast<std::uint32_t>(type.rate)});
}

std::uint64_t digest_of(const Index& index, const FrameType& type) {
  StreamDigest digest(index.digest());
  digest.add_type(type);
  const FrameType usual = index.frame_type();
  if (!index.is_mixed() && usual.rate == type.rate && usual.values == type.values)
    return digest.value();
  for (std::uint64_t i = 0; i < index.size(); ++i) {
    const IndexedStream stream = index.stream(i);
    if (!is_converted(stream, type)) continue;
    for (const std::uint64_t number :
         {i, std::uint64_t{stream.rate}, std::uint64_t{stream.channels}})
      digest.add(number);
  }
  return digest.value();
}

Conversions conversions_of(const AudioCatalog& catalog) {
  const FrameType& type = catalog.frame_type();
  ListedFiles converted(most_named), faults(AudioFaults::most_listed);
  for (std::uint64_t i = 0; i < catalog.size(); ++i) {
    const IndexedStream stream = catalog.index().stream(i);
    if (!is_converted(stream, type)) continue;
    const std::string fault = ConvertedFile::fault(stream.rate, stream.channels, type);
    if (!fault.empty())
      faults.add(catalog.path(i) + ": " + fault, "\n  ");
    else
      converted.add(catalog.path(i) + " (" + format_text(stream.rate, stream.channels) + ")",
                    converted.count() > 0 ? ", " : "");
  }
  const std::string of_all = " of " + std::to_string(catalog.size()) + " files ";
  Conversions found;
  if (faults.count() > 0)
    found.fault = std::to_string(faults.count()) + of_all + "cannot be converted to " +
                  format_text(type.rate, type.values) + ":" + faults.text("\n  and ");
  if (converted.count() > 0)
    found.text = std::to_string(converted.count()) + of_all +
                 (converted.count() == 1 ? "is" : "are") + " converted to " +
                 format_text(type.rate, type.values) + ": " + converted.text(" and ");
  return found;
}

}  // namespace millrace::training
