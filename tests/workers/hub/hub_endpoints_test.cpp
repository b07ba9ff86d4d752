// SPDX-License-Identifier: Apache-2.0
// The endpoints in the answers of workers reach their streams.
#include <catch2/catch.hpp>

#include "tests/workers/hub/hub_fixture.h"

using namespace millrace;
using namespace millrace::test;

namespace {

const Answer ends{.endpoint = true};

// The rows that were done since the last call, with an E after those whose answer has an endpoint.
std::string done_rows(HubUnderTest& h) {
  std::string text;
  for (const Returned& one : std::exchange(h.back, {}))
    if (const auto* done = std::get_if<RowDone>(&one.what))
      text += (text.empty() ? "" : " ") + std::to_string(number(one.stream)) + "." +
              std::to_string(done->seq) + (done->answer.endpoint ? "E" : "");
  return text;
}

}  // namespace

TEST_CASE("each stream receives the endpoint of its own row, also without another answer") {
  HubUnderTest h;
  Link& worker = h.attach();
  for (const std::uint64_t stream : {1, 2}) h.open(stream);
  h.row(1);
  h.row(2);
  h.mark(2, flag::last);
  h.done(worker, worker.receive<HandedBatch>().id, {{Answer::Kind::text, "yes"}});
  h.done(worker, worker.receive<HandedBatch>().id, {ends});
  h.done(worker, worker.receive<HandedBatch>().id, {}, {ends});
  CHECK(done_rows(h) == "1.0 2.0E 2.1E");
  CHECK(h.stats.results[ResultStatus::ok].value() == 1);
}

TEST_CASE("rows that are handed over again have the endpoint of the second answer") {
  HubUnderTest h;
  h.open(1);
  h.row(1);
  h.row(1);
  Link& first = h.attach();
  const BatchId batch = first.receive<HandedBatch>().id;
  h.hub.lost(first, WorkerFailure::disconnect);
  h.done(first, batch, {ends});  // too late
  Link& second = h.attach();
  h.done(second, second.receive<HandedBatch>().id);
  h.done(second, second.receive<HandedBatch>().id, {ends});
  CHECK(done_rows(h) == "1.0 1.1E");
}

TEST_CASE("the endpoints of a batch that is done twice are those of the first time") {
  HubUnderTest h;
  Link& worker = h.attach();
  h.open(1);
  h.row(1);
  const BatchId batch = worker.receive<HandedBatch>().id;
  h.done(worker, batch);
  h.done(worker, batch, {ends});
  CHECK(done_rows(h) == "1.0");
}

TEST_CASE("a row that fails because workers were lost over it ends no segment") {
  HubUnderTest h;
  h.open(1);
  h.row(1);
  for (int i = 0; i < 2; ++i) {
    Link& worker = h.attach();
    (void)worker.receive<HandedBatch>();
    h.hub.lost(worker, WorkerFailure::disconnect);
    h.run();
  }
  CHECK(done_rows(h) == "1.0");
}
