// SPDX-License-Identifier: Apache-2.0
#include "workers/lost_slabs.h"

#include <utility>

namespace millrace {

void LostSlabs::keep(Feed feed, std::shared_ptr<PeerProcess> process) {
  feed.lane->stop();
  if (!feed.thread) {
    Share bytes = std::move(feed.bytes);
    feeds_.free(std::exchange(feed, {}));
    feed.bytes = std::move(bytes);
  }
  const auto kept = kept_.insert(kept_.end(), Kept{std::move(feed), std::move(process)});
  kept->process->when_gone([this, kept] {
    if (kept->feed.lane) feeds_.free(std::move(kept->feed));
    kept_.erase(kept);
  });
}

}  // namespace millrace
