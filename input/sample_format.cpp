// SPDX-License-Identifier: Apache-2.0
#include "input/sample_format.h"

#include <span>

namespace millrace {
namespace {

std::span<const SampleFormat> allowed(bool features) {
  using enum SampleFormat;
  static constexpr SampleFormat of_audio[] = {s16le, s24le, f32le, mulaw, alaw, opus};
  static constexpr SampleFormat of_features[] = {f32le, f16le};
  if (features) return of_features;
  return of_audio;
}

std::string listed(std::span<const SampleFormat> formats) {
  std::string list(name_of(formats.front()));
  for (const SampleFormat format : formats.subspan(1)) {
    list += format == formats.back() ? " or " : ", ";
    list += name_of(format);
  }
  return list;
}

}  // namespace

Result<SampleFormat, FormatError> parse_sample_format(std::string_view name, bool features) {
  for (const SampleFormat format : allowed(features))
    if (name == name_of(format)) return format;
  // The name comes from the peer, with any length and content: it is not repeated.
  return FormatError{"format of " + std::string(features ? "features" : "audio") + " must be " +
                     listed(allowed(features))};
}

}  // namespace millrace
