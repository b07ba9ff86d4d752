// SPDX-License-Identifier: Apache-2.0
#include "service/replay/selection.h"

#include <algorithm>
#include <functional>

namespace millrace {

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
