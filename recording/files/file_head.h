// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "recording/files/segment_writer.h"

namespace millrace::recording {

// The metadata record `millrace` of a segment file (docs/recording_format.md). MCAP has no checksum
// for metadata, so `crc` has one: CRC-32 of the other keys and values, each followed by a zero
// byte, in the order of the keys, as 8 hex digits.
std::map<std::string, std::string> to_metadata(const FileHead& head);

// A head that is not valid, or that a later version wrote. `format` is 0 if the metadata is
// damaged.
struct HeadError {
  int format = 0;
};
Result<FileHead, HeadError> head_from(std::map<std::string, std::string> metadata);

}  // namespace millrace::recording
