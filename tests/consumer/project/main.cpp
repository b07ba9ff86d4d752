// SPDX-License-Identifier: Apache-2.0
// Somebody else's worker: it knows nothing of Millrace but what is installed.
#include <cstdio>
#include <vector>

#include "workers/library/worker.h"

namespace {

// What a worker does when there is a service; here it only has to compile and link.
void serve(millrace::Worker& worker) {
  while (auto batch = worker.next()) {
    const std::vector<millrace::Answer> answers(batch->framed().size());
    worker.done(*batch, answers);
  }
}

}  // namespace

int main() {
  try {
    millrace::Worker worker("unix:no-service-here.sock", {.pipeline = "vad", .wait = {}});
    serve(worker);
  } catch (const millrace::WorkerError& error) {
    std::puts(error.what());
    return 0;
  }
  return 1;
}
