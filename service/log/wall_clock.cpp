// SPDX-License-Identifier: Apache-2.0
#include "service/log/wall_clock.h"

namespace millrace {

Duration wall_clock() { return std::chrono::system_clock::now().time_since_epoch(); }

}  // namespace millrace
