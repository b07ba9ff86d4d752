// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "monitoring/service_stats.h"
#include "recording/writer/recorder_notices.h"
#include "service/log/log.h"
#include "service/log/log_writer.h"

namespace millrace {

// Writes the notices of one thread of the recorder to the log. Confined to that thread, except for
// its stats.
class RecorderLog final : public recording::RecorderNotices {
 public:
  // `writer` must outlive it. `on_sealed` is called for each file that is or was sealed,
  // `on_opened` with the number of the next stream.
  explicit RecorderLog(
      LogWriter& writer, std::function<void(recording::FileNumber)> on_sealed = [](auto) {},
      std::function<void(std::uint64_t)> on_opened = [](auto) {});

  void opened(std::uint64_t next_stream) override { on_opened_(next_stream); }
  void found(recording::FileNumber file) override { on_sealed_(file); }
  void skipped(std::string_view file, std::string_view why) override;
  void shared(unsigned mode) override;
  void recovered(const recording::Recovered& what) override;
  void sealed(recording::FileNumber file) override { on_sealed_(file); }
  void left_unsealed(recording::FileNumber file, std::string_view why) override;
  void suspended(std::string_view why) override;
  void resumed() override;
  void dropped(std::uint64_t slices, recording::DropReason reason) override;
  void failed(std::string_view why) override;
  void rewritten(recording::FileNumber file, std::uint64_t bytes) override;
  void deleted(const recording::Deleted& what) override;
  void waits_for_process() override;
  void waits_for_clock() override;

  const ThreadStats& stats() const { return stats_; }

 private:
  ThreadStats stats_;
  Log log_;
  const std::function<void(recording::FileNumber)> on_sealed_;
  const std::function<void(std::uint64_t)> on_opened_;
};

}  // namespace millrace
