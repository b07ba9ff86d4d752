// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/returned.h"
#include "workers/hub/mailbox.h"

namespace millrace {

// What comes back to the thread on which streams live.
using ReturnBox = Mailbox<Returned>;

}  // namespace millrace
