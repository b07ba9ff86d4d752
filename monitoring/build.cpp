// SPDX-License-Identifier: Apache-2.0
#include "monitoring/build.h"

namespace millrace {

Build build() {
  return {
      .version = MILLRACE_VERSION, .revision = MILLRACE_REVISION, .compiler = MILLRACE_COMPILER};
}

}  // namespace millrace
