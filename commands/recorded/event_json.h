// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "recording/reader/stream_reader.h"

namespace millrace::recordings {

// The member of a line of `streams.jsonl` with the items of a kind (RecordedItem::index).
std::string_view array_of(std::size_t kind);

// Appends an item of a recorded stream as a JSON object. Pure.
//
//   {"event":"flush","count":0,"cause":"client","mark":7,"position":48000,"at":3.25}
//   {"event":"message","count":6,…,"at":3.5,"data":"Hugo"}
//   {"answer":"json","seq":4,"batch":17,"data":…}
//   {"message":"text","seq":4,"number":0,"data":…}
//   {"closed":"end","complete":true,"rows":8,"frames":12800,"lost":0,"digest":"0a1b2c3d"}
//
// `position` is that of the stream before the event. `at` is the time since the stream was opened,
// in seconds. `count` is as in `millrace chunk --events`. `data` is a JSON value for `json` and
// events, a string for `text` and `error`, and base64 for `bytes`.
void append_item(std::string& line, const recording::RecordedItem& item,
                 std::int64_t opened_steady);

// {"begin":48000,"end":56000,"events":12,"why":"not recorded: queue_full"}
void append_missing(std::string& line, const recording::MissingPart& part);

// JSON text as it is; text that is not JSON as a JSON string; empty text as null.
void append_json(std::string& line, std::string_view text);

}  // namespace millrace::recordings
