// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "training/catalogs/index/manifest.h"

namespace millrace::training {

// The fields of a manifest that say which audio of a file is meant. All of them are honoured or
// refused: a stream must not be other audio than its line says.

// True for `offset` and `duration`, which are honoured.
bool is_part_field(std::string_view field);
// Sets one of them. Empty, or why the value is not one.
std::string set_part_field(ManifestEntry& entry, std::string_view field, double value);

// True for a field that chooses a part of the file in another way, if its value is a number, a
// time, or a list or an object: start, end_ms, segmentStart, channel_idx, or a list
// named segment.
bool is_refused_field(std::string_view field, bool is_list);
std::string refused_field_text(std::string_view field);

// The number that a text is; spaces around it and a plus do not count. nullopt: it is no number.
std::optional<double> number_in(std::string_view text);
// True for text that begins with a number, such as 0:01 and 1.5s. Other text is a word.
bool is_number_or_time(std::string_view text);

}  // namespace millrace::training
