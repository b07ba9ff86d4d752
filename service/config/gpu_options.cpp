// SPDX-License-Identifier: Apache-2.0
#include "service/config/gpu_options.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gpu/cuda/cuda.h"
#include "service/config/memory_bounds.h"
#include "service/config/toml/units.h"

namespace millrace {

namespace {

constexpr std::string_view devices_allowed =
    R"(must be "auto", "host", or a list of devices, each once, like ["cuda:0"] or ["GPU-..."])";

// True for cuda:N (CUDA's index of a device) and for a UUID, which never changes.
bool names_device(std::string_view name) {
  constexpr std::string_view counted = "cuda:";
  if (!name.starts_with(counted)) return name.starts_with("GPU-") || name.starts_with("MIG-");
  name.remove_prefix(counted.size());
  return !name.empty() && name.size() < 4 &&
         std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

bool are_devices(std::vector<std::string> names) {
  std::ranges::sort(names);
  return !names.empty() && std::ranges::all_of(names, names_device) &&
         std::ranges::adjacent_find(names) == names.end();
}

void read_devices(Section& gpu, DeviceRule& rule) {
  const auto value = gpu.text_or_texts("devices", "auto", devices_allowed);
  const auto* word = std::get_if<std::string>(&value);
  if (!word) {
    rule.use = DeviceRule::Use::listed;
    rule.listed = std::get<std::vector<std::string>>(value);
    if (!are_devices(rule.listed)) gpu.wrong("devices", std::string(devices_allowed));
  } else if (*word == "host") {
    rule.use = DeviceRule::Use::host;
  } else if (*word != "auto") {
    gpu.wrong("devices", std::string(devices_allowed));
  }
}

}  // namespace

DeviceRule read_gpu(Section& gpu, const LimitOptions& limits) {
  DeviceRule rule;
  read_devices(gpu, rule);
  rule.slab_bytes =
      gpu.bytes("slab_bytes", cuda::whole_blocks(limits.slab_bytes), 2 << 20, 1ull << 40);
  rule.pageable = gpu.one_of("pageable", "allow", {"allow", "refuse"}) == "allow";
  gpu.refuse_unknown();
  return rule;
}

void check_gpu(Section& gpu, const Options& options) {
  if (options.gpu.use == DeviceRule::Use::host) return;
  for (const PipelineOptions& pipeline : options.pipelines) {
    const std::size_t slabs = cuda::whole_blocks(memory_bounds(pipeline, options.limits).slabs);
    if (slabs > options.gpu.slab_bytes)
      return gpu.wrong("slab_bytes", "must be at least " + rounded_bytes(slabs) +
                                         ", the slabs of one worker of pipeline " + pipeline.name);
  }
}

}  // namespace millrace
