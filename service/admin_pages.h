// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "service/stream_table.h"
#include "transport/http_message.h"

namespace millrace {

// What the admin listener says, as JSON.

// 200 where the process works, otherwise 503 and why it is to be started again.
HttpAnswer alive_page(const std::vector<std::string>& reasons);
// 200 where nothing speaks against taking streams, otherwise 503 and why not.
HttpAnswer ready_page(const std::vector<std::string>& reasons);
HttpAnswer missing_page();

// A live stream.
struct StreamLine {
  std::string name;
  std::string pipeline;
  std::uint64_t frames = 0;  // position
  double signal_s = 0;       // the same in seconds
  double age_s = 0;
  bool paused = false;
  bool connected = true;  // its client is still there
};

// Requires: called on the table's thread.
std::vector<StreamLine> list_streams(const StreamTable& table);
HttpAnswer streams_list_page(const std::vector<StreamLine>& lines);

}  // namespace millrace
