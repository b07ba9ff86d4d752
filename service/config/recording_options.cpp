// SPDX-License-Identifier: Apache-2.0
#include "service/config/recording_options.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include "service/config/toml/units.h"

namespace millrace {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t mebi = std::size_t{1} << 20;
constexpr std::size_t tebi = std::size_t{1} << 40;

}  // namespace

RecordingOptions read_recording(Section& recording) {
  RecordingOptions options;
  options.directory = recording.file("directory");
  const bool former_name = recording.has("segment");
  if (former_name && recording.has("file_size"))
    recording.wrong("segment", "is the former name of file_size: leave it out");
  const char* const file_size = former_name ? "segment" : "file_size";
  options.file_size = recording.bytes(file_size, options.file_size, mebi, (64 << 10) * mebi);
  options.commit = recording.time("commit", options.commit, 10ms, 10s);
  options.queue = recording.bytes("queue", options.queue, mebi, tebi);
  options.keep = recording.bytes("keep", options.keep, mebi, 1024 * tebi);
  options.keep_for = recording.time("keep_for", options.keep_for, 1s, 87'600h);
  options.min_free = recording.bytes("min_free", options.min_free, 0, 1024 * tebi);
  if (options.keep < options.file_size)
    recording.wrong("keep",
                    "must be at least file_size, which is " + readable_bytes(options.file_size));
  recording.refuse_unknown();
  return options;
}

void check_recording(Section& recording, const Options& options) {
  const std::size_t pages = options.listen.threads * least_recording_pages;
  const bool is_used = std::ranges::any_of(options.pipelines, [](const PipelineOptions& pipeline) {
    return pipeline.record.has_value();
  });
  if (is_used && options.recording.queue < pages * recording_page)
    recording.wrong("queue", "must be at least " + readable_bytes(pages * recording_page) +
                                 ", as listen.threads is " +
                                 std::to_string(options.listen.threads));
}

std::optional<RecordRule> read_record(Section& section) {
  constexpr std::string_view allowed =
      "must be true, false, or a table, like { share = 0.05, answers = true }";
  if (!section.has_table("record")) {
    if (section.flag("record", false, allowed)) return RecordRule{};
    return std::nullopt;
  }
  Section record = section.section("record", allowed);
  RecordRule rule;
  rule.share = record.number("share", rule.share, 1);
  rule.answers = record.flag("answers", rule.answers);
  record.refuse_unknown();
  return rule;
}

}  // namespace millrace
