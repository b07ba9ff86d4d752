// SPDX-License-Identifier: Apache-2.0
// A worker of another project: it has nothing of Millrace but the installed files.
#include <millrace/worker.h>

#include <cstdio>
#include <vector>

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
