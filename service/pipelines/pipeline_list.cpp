// SPDX-License-Identifier: Apache-2.0
#include "service/pipelines/pipeline_list.h"

#include <cstdint>

#include "schemas/json_text.h"
#include "service/pipelines/request_check.h"

namespace millrace {

std::string pipeline_list(std::span<const PipelineOptions> pipelines) {
  std::string out = R"({"pipelines":[)";
  for (const PipelineOptions& pipeline : pipelines) {
    const FrameType& frames = pipeline.frames;
    append_string(out += out.ends_with('[') ? R"({"name":)" : R"(,{"name":)", pipeline.name);
    append_number(out += R"(,"rate":)", frames.rate);
    append_number(out += frames.features ? R"(,"dim":)" : R"(,"channels":)",
                  std::uint64_t{frames.values});
    append_string(out += R"(,"chunk":)", readable_sizes(pipeline));
    out += '}';
  }
  return out += "]}";
}

}  // namespace millrace
