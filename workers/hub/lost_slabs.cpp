// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/lost_slabs.h"

#include <utility>

namespace millrace {

void LostSlabs::keep(std::unique_ptr<WorkerSlabs> slabs, std::shared_ptr<PeerProcess> process) {
  slabs->stop();
  Share bytes;
  if (!slabs->properties().thread) {
    bytes = std::move(slabs->properties().bytes);
    maker_.free(std::move(slabs));
  }
  const auto entry =
      kept_.insert(kept_.end(), {std::move(slabs), std::move(bytes), std::move(process)});
  entry->process->when_ended([this, entry] {
    if (entry->slabs) maker_.free(std::move(entry->slabs));
    kept_.erase(entry);
  });
}

}  // namespace millrace
