// SPDX-License-Identifier: Apache-2.0
#include "service/replay/selection.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <optional>

namespace millrace {
namespace {

std::optional<std::uint64_t> number_of(const std::string& text) {
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<recording::RecordedStream> found(recording::Recordings& recordings,
                                             const std::string& entry) {
  if (const auto number = number_of(entry))
    if (const auto stream = recordings.find(*number)) return {*stream};
  return recordings.find(entry);
}

}  // namespace

Result<std::vector<recording::RecordedStream>, std::string> select_streams(
    recording::Recordings& recordings, const std::vector<std::string>& which,
    const std::string& pipeline) {
  std::map<std::uint64_t, recording::RecordedStream> selected;
  const auto add = [&](const recording::RecordedStream& stream) {
    if (pipeline.empty() || stream.meta.pipeline == pipeline)
      selected.emplace(stream.meta.number, stream);
  };
  if (which.empty()) std::ranges::for_each(recordings.streams(), add);
  for (const std::string& entry : which) {
    const auto streams = found(recordings, entry);
    if (streams.empty())
      return recordings.directory().path() + ": has no stream with the number or name \"" + entry +
             "\"; see millrace recordings ls";
    std::ranges::for_each(streams, add);
  }
  if (selected.empty())
    return recordings.directory().path() +
           (pipeline.empty() ? ": has no streams" : ": has no such stream of pipeline " + pipeline);
  std::vector<recording::RecordedStream> streams;
  for (auto& [number, stream] : selected) streams.push_back(std::move(stream));
  return streams;
}

void select_by_pipeline(const std::string& pipeline,
                        std::vector<recording::RecordedStream>& streams) {
  const auto of_it = [&](const auto& stream) { return stream.meta.pipeline == pipeline; };
  if (std::ranges::any_of(streams, of_it)) std::erase_if(streams, std::not_fn(of_it));
}

std::vector<recording::StreamMeta> metas_of(std::span<const recording::RecordedStream> streams) {
  std::vector<recording::StreamMeta> all;
  for (const recording::RecordedStream& stream : streams) all.push_back(stream.meta);
  return all;
}

std::string growing_notice(std::uint64_t streams) {
  return std::to_string(streams) + (streams == 1 ? " stream is" : " streams are") +
         " still being recorded: replayed up to now";
}

}  // namespace millrace
