// SPDX-License-Identifier: Apache-2.0
#include "input/sample_format.h"

namespace millrace {

Result<SampleFormat, FormatError> parse_sample_format(std::string_view name, bool features) {
  const SampleFormat other = features ? SampleFormat::f16le : SampleFormat::f32le;
  for (SampleFormat format : {default_format(features), other})
    if (name == name_of(format)) return format;
  // The name comes from the peer, with any length and content: it is not repeated.
  return FormatError{"format of " + std::string(features ? "features" : "audio") + " must be " +
                     std::string(name_of(default_format(features))) + " or " +
                     std::string(name_of(other))};
}

}  // namespace millrace
