// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace millrace {

// The pipelines of a protocol whose clients name models.
struct ModelPipelines {
  std::string pipeline = "default";                          // that of all other models
  std::map<std::string, std::string, std::less<>> models{};  // the pipeline of each model

  const std::string& of(std::string_view model) const {
    const auto found = models.find(model);
    return found == models.end() ? pipeline : found->second;
  }
  bool operator==(const ModelPipelines&) const = default;
};

}  // namespace millrace
