// SPDX-License-Identifier: Apache-2.0
#include "replay/selection.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace millrace {

void select_by_pipeline(const std::string& pipeline, std::vector<recording::StreamParts>& streams) {
  const auto of_it = [&](const auto& parts) { return parts.front().meta.pipeline == pipeline; };
  if (std::ranges::any_of(streams, of_it)) std::erase_if(streams, std::not_fn(of_it));
}

std::vector<recording::StreamMeta> metas_of(const recording::Recordings& recordings,
                                            std::span<const recording::StreamParts> streams) {
  std::vector<recording::StreamMeta> all;
  std::string run;
  std::int64_t shift = 0;
  for (const recording::StreamParts& parts : streams) {
    recording::StreamMeta meta = parts.front().meta;
    std::string its_run = recordings.run_of(parts.front().first_file);
    if (!all.empty() && its_run != run) {
      const std::int64_t apart =
          std::max<std::int64_t>(0, meta.opened_wall - all.back().opened_wall);
      shift = all.back().opened_steady + apart - meta.opened_steady;
    }
    meta.opened_steady += shift;
    run = std::move(its_run);
    all.push_back(std::move(meta));
  }
  return all;
}

std::string growing_notice(std::uint64_t streams) {
  return std::to_string(streams) + (streams == 1 ? " stream is" : " streams are") +
         " still being recorded: replayed up to now";
}

}  // namespace millrace
