// SPDX-License-Identifier: Apache-2.0
// A worker of another project, which has only the installed files of Millrace.
#include <millrace/worker.h>

#include <cstdio>
#include <vector>

namespace {

// The loop of a worker. Not called: it only has to compile and link.
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
