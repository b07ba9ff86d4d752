// SPDX-License-Identifier: Apache-2.0
// A failed batch: its rows, and the states of their streams.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/workers/library/fake_service.h"
#include "workers/library/lost_states.h"
#include "workers/library/worker.h"

using namespace millrace;

namespace {

// A batch with one row with frames in this slot, as the service writes it, without RESET.
HandedBatch row_in_slot(FakeService& service, std::uint64_t id, std::uint32_t slot) {
  HandedBatch batch = example_batch(id);
  batch.framed[0].slot = slot;
  batch.framed[0].flags = 0;
  batch.framed[0].reason = 0;
  const SlabLayout layout = layout_of({.rows = 2, .marks = 1, .width = 3});
  std::ranges::fill(service.slab(0).subspan(layout.flags, 512), std::byte{0});
  return batch;
}

struct Reset {
  int flags, in_array, reason, flags_in_array;
  bool operator==(const Reset&) const = default;
};
Reset reset_of(const WorkerBatch& batch) {
  const auto& row = batch.framed().at(0);
  return {row.flags & flag::reset, batch.reset()[0], row.reason, batch.flags()[0]};
}
constexpr int worker_lost = static_cast<int>(ResetReason::worker_lost);

}  // namespace

TEST_CASE_METHOD(BusyWorker, "each row of a batch that failed gets the error") {
  worker.fail(*batch, "KeyError: 'xx'");
  const auto done = service.receive<Done>();
  const std::vector<Answer> errors{{Answer::Kind::error, "KeyError: 'xx'"}};
  CHECK(done.answers == errors);
  CHECK(done.mark_answers == errors);
}

TEST_CASE("after a batch that failed the next row of each of its slots carries RESET, once") {
  FakeService service;
  Worker worker = service.attach();
  service.send(row_in_slot(service, 1, 5));
  auto failed = worker.next();
  CHECK(reset_of(*failed) == Reset{0, 0, 0, 0});
  worker.fail(*failed, "failed");
  const auto next = [&](std::uint64_t id, std::uint32_t slot) {
    service.send(row_in_slot(service, id, slot));
    auto batch = worker.next();
    const Reset reset = reset_of(*batch);
    worker.done(*batch);
    return reset;
  };
  CHECK(next(2, 4) == Reset{0, 0, 0, 0});
  CHECK(next(3, 5) == Reset{flag::reset, 1, worker_lost, flag::reset});
  CHECK(next(4, 5) == Reset{0, 0, 0, 0});
}

TEST_CASE("a batch that was received before the batch ahead of it failed carries RESET too") {
  FakeService service;
  Worker worker = service.attach();
  for (const std::uint64_t id : {1, 2}) service.send(row_in_slot(service, id, 5));
  auto first = worker.next();
  worker.fail(*first, "failed");
  CHECK(reset_of(*worker.next()).reason == worker_lost);
}

TEST_CASE("a row that carries RESET anyway keeps its reason, and the next one has no RESET") {
  FakeService service;
  Worker worker = service.attach();
  service.send(row_in_slot(service, 1, 5));
  auto batch = worker.next();
  worker.fail(*batch, "failed");
  service.send(example_batch(2));
  batch = worker.next();
  CHECK(batch->framed()[0].reason == 1);
  worker.done(*batch);
  service.send(row_in_slot(service, 3, 5));
  CHECK(reset_of(*worker.next()) == Reset{0, 0, 0, 0});
}

// On a device the flags are copied once more to slabs that the service has copied.
TEST_CASE("a batch with an added RESET is marked as such at each attempt to take it") {
  FakeService service;
  Worker worker = service.attach();
  LostStates lost;
  service.send(row_in_slot(service, 1, 5));
  auto batch = worker.next();
  lost.add_resets(*batch);
  CHECK_FALSE(batch->has_added_reset());
  lost.add(*batch);
  for (int attempt = 0; attempt < 2; ++attempt) {
    lost.add_resets(*batch);
    CHECK(batch->has_added_reset());
    WorkerBatch back = std::move(*batch);  // as a batch that waits to be taken
    batch = std::move(back);
  }
}
