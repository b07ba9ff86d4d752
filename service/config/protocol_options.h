// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "service/config/options.h"
#include "service/config/toml/section.h"

namespace millrace {

// Reads the tables [[protocol]] of `root`; if there are none, every protocol that needs no listener
// of its own. Requires: [listen] and the pipelines have been read into `options`.
std::vector<ProtocolOptions> read_protocols(Section& root, const Options& options);

}  // namespace millrace
