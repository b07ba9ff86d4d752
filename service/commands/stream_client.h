// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <iosfwd>
#include <string>

#include "base/result.h"
#include "transport/client.h"

namespace millrace {

// How files are streamed.
struct StreamPlan {
  ServiceUrl url;
  StreamRequest request;  // but for what the file decides: format, rate, channels
  Duration packet = std::chrono::milliseconds(100);  // of audio in a message
  bool realtime = false;  // as a microphone would; else as fast as the service reads
};

// Streams one audio file: opens, sends, ends, and prints each message of the service on `out` as it
// comes. Done well when the service closed the stream after its last result; else says why not.
// `plan` and `out` outlive it.
Task<Result<void, std::string>> stream_file(Executor executor, const StreamPlan& plan,
                                            std::string path, std::ostream& out);

}  // namespace millrace
