// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "transport/http/message.h"

namespace millrace {

// Whether the service accepts new streams, in sentences for people. A value.
struct Readiness {
  struct Pipeline {
    std::string name;
    bool required = true;  // without a worker of it, the service is not ready
    bool has_worker = false;
  };

  std::vector<std::string> service{};      // reasons to accept no streams, of the whole service
  std::vector<std::string> impairments{};  // faults that do not keep it from accepting streams
  std::vector<Pipeline> pipelines{};

  // The reasons of the service and of its required pipelines; empty if the service is ready.
  std::vector<std::string> reasons() const;
  // The impairments, and a sentence for each optional pipeline without a worker.
  std::vector<std::string> degraded() const;
};

// /readyz: 200 if the service is ready, otherwise 503 with the reasons. /readyz?pipeline=NAME is
// the same for one pipeline, required or not; 404 for an unknown name, and 400 for any
// other parameter.
HttpAnswer ready_page(const Readiness& readiness, std::string_view target);
// /status, for the live page: always 200, as browsers report other answers as errors. A pipeline
// without a worker is `unready` if it is required, otherwise `degraded`.
HttpAnswer status_page(const Readiness& readiness, bool draining);

}  // namespace millrace
