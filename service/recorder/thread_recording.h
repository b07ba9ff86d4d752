// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/time.h"
#include "input/client_format.h"
#include "recording/format/stream_meta.h"
#include "recording/writer/page_pool.h"
#include "recording/writer/page_writer.h"
#include "recording/writer/stats.h"
#include "schemas/stream_request.h"
#include "service/config/options.h"
#include "streams/stream_tap.h"

namespace millrace {

// True if the rule selects the stream. The draw depends on the name alone, so all services that
// have the same rule record the same streams. It is independent of the sizes that a pipeline draws.
bool selects(const RecordRule& rule, std::string_view stream);

// One io thread's part of the recording: makes the taps of its streams, and hands their records to
// the recorder. Confined to that thread, except for its stats.
class ThreadRecording {
 public:
  // `pages` and `next_stream` are shared by all threads, and must outlive it. `thread` is its
  // index. The number of a stream is the next one of `next_stream`; while it is 0, the numbers are
  // not known. `commit` is the time between commits.
  ThreadRecording(recording::PagePool& pages, std::size_t thread,
                  std::atomic<std::uint64_t>& next_stream, Duration commit);

  // The tap of a new stream; null if the stream is not to be recorded. `request` has the name of
  // the stream. `resumable`: it may survive its connection. Throws std::bad_alloc.
  std::unique_ptr<StreamTap> tap(
      const StreamRequest& request, const PipelineOptions& pipeline, const ClientFormat& format,
      Time now, const std::optional<recording::ResumableKey>& resumable = std::nullopt);

  // Hands a partly filled page to the recorder. Call it every `hand_over_period()`, and when the
  // thread has finished its streams. False: last records of streams wait for room in the queue.
  bool hand_over() { return pages_.hand_over(); }
  Duration hand_over_period() const { return commit_ / 2; }
  // While `sheds`, nothing is recorded, because memory is short.
  void shed(bool sheds) { pages_.shed(sheds); }

  const recording::TapStats& stats() const { return stats_; }

 private:
  recording::TapStats stats_;
  recording::PageWriter pages_;
  std::atomic<std::uint64_t>& next_stream_;
  const Duration commit_;
};

}  // namespace millrace
