// SPDX-License-Identifier: Apache-2.0
#include "workers/lost_slabs.h"

#include <utility>

namespace millrace {

void LostSlabs::keep(std::unique_ptr<LaneFeed> feed, Share bytes,
                     std::unique_ptr<PeerProcess> process) {
  feed->stop();
  const auto kept =
      kept_.insert(kept_.end(), Kept{std::move(feed), std::move(bytes), std::move(process)});
  kept->process->when_gone([this, kept] { kept_.erase(kept); });
}

}  // namespace millrace
