// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/lost_slabs.h"

#include <utility>

namespace millrace {

void LostSlabs::keep(std::unique_ptr<WorkerSlabs> slabs, std::shared_ptr<PeerProcess> process) {
  slabs->stop();
  Share bytes;
  if (!slabs->notes().thread) {
    bytes = std::move(slabs->notes().bytes);
    maker_.free(std::move(slabs));
  }
  const auto kept =
      kept_.insert(kept_.end(), {std::move(slabs), std::move(bytes), std::move(process)});
  kept->process->when_gone([this, kept] {
    if (kept->slabs) maker_.free(std::move(kept->slabs));
    kept_.erase(kept);
  });
}

}  // namespace millrace
