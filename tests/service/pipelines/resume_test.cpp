// SPDX-License-Identifier: Apache-2.0
// Streams that outlive their connections: tokens, refusals and slots.
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <utility>

#include "schemas/server_messages.h"
#include "service/log/wall_clock.h"
#include "tests/service/pipelines/admission_under_test.h"

using namespace millrace;
using test::Link;

namespace {

class ResumeTest : public AdmissionUnderTest {
 public:
  explicit ResumeTest(std::uint64_t connections = 3) : AdmissionUnderTest(connections) {
    shared.end_waiting = [this](const DetachedList::Entry& entry) {
      admission->resumables().end_waiting(entry);
    };
  }

  using Client = AdmissionUnderTest::Client;

  Client& open_resumable(std::string name) { return open({.id = std::move(name), .resume = true}); }
  static ServerMessage ready(Client& client) {
    const auto messages = client.received();
    REQUIRE(!messages.empty());
    auto ready = parse_server_message(messages.front());
    REQUIRE(ready);
    REQUIRE(ready->type == ServerMessage::Type::ready);
    return *ready;
  }
  Client& resume(const std::string& name, const std::string& token, Resumption from = {}) {
    from.token = token;
    return open({.id = name, .resume = true, .resumption = std::move(from)});
  }
  // The status with which the request is refused; 101 if it is accepted.
  static unsigned status(const Client& client) { return client.error ? client.error->status : 101; }
};

}  // namespace

TEST_CASE_METHOD(ResumeTest,
                 "a token continues its stream, and the next ready has the next token") {
  Client& first = open_resumable("kitchen");
  const std::string token = ready(first).resume;
  CHECK(token.size() == resume_token_size);
  send_row(first);
  disconnect(first);
  CHECK(stats().detached.value() == 1);
  CHECK(live() == 1);
  const auto again = ready(resume("kitchen", token));
  CHECK(again.resumed == true);
  CHECK(again.frames == 4);
  CHECK(again.resume != token);
  CHECK(stats().detached.value() == 0);
  CHECK(stats().resumed[ResumedState::kept].value() == 1);
  CHECK(live() == 1);
}

TEST_CASE_METHOD(ResumeTest, "a stream without resume ends with its connection") {
  Client& client = open({.id = "kitchen"});
  CHECK(ready(client).resume.empty());
  send_row(client);
  disconnect(client);
  CHECK(stats().detached.value() == 0);
  CHECK_FALSE(shared.names.find("kitchen"));
}

TEST_CASE_METHOD(ResumeTest, "a token is for one stream and one connection") {
  Client& first = open_resumable("kitchen");
  const std::string token = ready(first).resume;
  send_row(first);
  CHECK(status(resume("garden", token)) == 403);
  CHECK(status(resume("kitchen", (token[0] == 'x' ? "y" : "x") + token.substr(1))) != 101);
  CHECK(status(resume("kitchen", "short")) == 400);
  Client& second = resume("kitchen", token);
  CHECK(status(second) == 101);
  send_row(second);
  Client& third = resume("kitchen", token);
  REQUIRE(third.error);
  CHECK(third.error->status == 409);
  CHECK(code_of(*third.error) == ErrorCode::conflict);
  CHECK(third.error->reason == Refusal::resume);
}

TEST_CASE_METHOD(ResumeTest, "a stream without a known key is not known any more") {
  const std::string token = ready(open_resumable("kitchen")).resume;
  shared.resume_keys.replace(std::make_shared<const ResumeKeys>(ResumeKeys::random()));
  Client& client = resume("kitchen", token);
  REQUIRE(client.error);
  CHECK(client.error->status == 404);
  CHECK(code_of(*client.error) == ErrorCode::unknown_stream);
}

TEST_CASE_METHOD(ResumeTest, "a stream continues only with the parameters of its open") {
  Client& first = open_resumable("kitchen");
  const std::string token = ready(first).resume;
  send_row(first);
  StreamRequest other{.id = "kitchen", .rate = 8000, .resume = true, .resumption = Resumption{}};
  other.resumption->token = token;
  CHECK(status(open(other)) == 400);
  CHECK(status(resume("kitchen", token, {.n = 1})) == 400);
  CHECK(status(resume("kitchen", token)) == 101);
}

TEST_CASE_METHOD(ResumeTest, "a stream that is gone is opened anew where the client continues") {
  Client& first = open_resumable("kitchen");
  const std::string token = ready(first).resume;
  send_row(first);
  disconnect(first);
  admission->resumables().sweep(Clock::now() + std::chrono::seconds(16));
  run();
  CHECK(stats().detached.value() == 0);
  const ResumePoint place{.seq = 1, .frames = 4, .commands = 2, .begin = 4};
  const auto again = ready(resume("kitchen", token, {.n = 1, .point = place}));
  CHECK(again.resumed == false);
  CHECK(again.frames == 4);
  CHECK(again.commands == 2);
  CHECK(stats().resumed[ResumedState::lost].value() == 1);
}

TEST_CASE_METHOD(ResumeTest, "until a stream that was opened anew has input its state is lost") {
  const std::string token = ready(open_resumable("kitchen")).resume;
  admission->resumables().drain();
  const Resumption from{.n = 1, .point = {.seq = 1, .frames = 4, .begin = 4}};
  clients.back().stream.reset();
  CHECK(ready(resume("kitchen", token, from)).resumed == false);
  Client& second = resume("kitchen", token, from);  // the `ready` before was lost
  const auto again = ready(second);
  CHECK(again.resumed == false);
  send_row(second);
  CHECK(ready(resume("kitchen", again.resume, from)).resumed == true);
}

TEST_CASE("of ten thousand streams that wait a new one ends only the first") {
  constexpr std::uint64_t many = 10'000;
  ResumeTest service(many);
  for (std::uint64_t i = 0; i < many; ++i) {
    service.hub().stream_budget().set_limit(many);  // the hub sets its own at each event
    auto& client = service.open_resumable("s" + std::to_string(i));
    REQUIRE(client.stream);
    service.send_row(client);
    service.disconnect(client);
  }
  CHECK(service.stats().detached.value() == many);
  CHECK(ResumeTest::status(service.open({.id = "new"})) == 101);
  service.run();
  CHECK(service.stats().detached.value() == many - 1);
  service.admission->resumables().sweep(Clock::now() + std::chrono::seconds(16));
  CHECK(service.stats().detached.value() == 0);
}

TEST_CASE_METHOD(ResumeTest, "a place whose frame does not have its position is refused") {
  Client& first = open_resumable("kitchen");
  const std::string token = ready(first).resume;
  disconnect(first);
  const ResumePoint place{.seq = 1, .frames = 3, .begin = 4};
  CHECK(status(resume("kitchen", token, {.point = place})) == 400);
}

TEST_CASE_METHOD(ResumeTest, "a new stream takes the slot of the one that has waited longest") {
  Link& worker = attach();
  Client& oldest = open_resumable("oldest");
  Client& other = open_resumable("other");
  send_row(oldest);
  send_row(other);
  answer(worker);
  CHECK(status(open({.id = "new"})) == 503);
  disconnect(oldest);
  disconnect(other);
  CHECK(status(open({.id = "new"})) == 101);
  run();
  CHECK(stats().detached.value() == 1);
  CHECK_FALSE(shared.names.find("oldest"));
  CHECK(shared.names.find("other"));
}

TEST_CASE_METHOD(ResumeTest,
                 "at the limit of connections a new stream ends the longest waiting one") {
  Link& worker = attach();
  Client& oldest = open_resumable("oldest");
  Client& other = open({.pipeline = "features", .id = "other", .resume = true});
  CHECK(status(open({.pipeline = "features", .id = "third"})) == 101);
  send_row(oldest);
  answer(worker);
  other.stream->flush({}, Clock::now());
  CHECK(status(open({.pipeline = "features", .id = "new"})) == 503);
  disconnect(oldest);
  disconnect(other);
  CHECK_FALSE(admission->refusal({.pipeline = "features"}, {}));
  CHECK(stats().detached.value() == 1);
  CHECK(status(open({.pipeline = "features", .id = "new"})) == 101);
  run();
  answer(worker);  // the end of the oldest one
  CHECK_FALSE(shared.names.find("oldest"));
  CHECK(shared.names.find("other"));
  CHECK(shared.connections.taken() == 3);
}

TEST_CASE_METHOD(ResumeTest, "a new stream that needs a slot and a connection ends one stream") {
  Link& worker = attach();
  Client& features = open({.pipeline = "features", .id = "features", .resume = true});
  Client& first = open_resumable("first");
  Client& second = open_resumable("second");
  features.stream->flush({}, Clock::now());
  send_row(first);
  send_row(second);
  answer(worker);
  disconnect(features);
  CHECK(admission->refusal({}, {})->message == "the pipeline has no free slot for another stream");
  CHECK(status(open({.id = "new"})) == 503);
  CHECK(shared.names.find("features"));
  CHECK(shared.connections.taken() == 3);
  disconnect(first);
  disconnect(second);
  CHECK_FALSE(admission->refusal({}, {}));
  CHECK(status(open({.id = "new"})) == 101);
  CHECK_FALSE(shared.names.find("first"));
  CHECK(shared.names.find("second"));
  CHECK(shared.names.find("features"));
}

TEST_CASE_METHOD(ResumeTest, "the error of a request with a token is known and changes nothing") {
  Client& first = open_resumable("kitchen");
  const std::string token = ready(first).resume;
  send_row(first);
  const auto request = [](std::string name, std::string shown, Resumption from = {}) {
    from.token = std::move(shown);
    return StreamRequest{.id = std::move(name), .resume = true, .resumption = std::move(from)};
  };
  const auto refusal = [&](const StreamRequest& asked) {
    const auto error = admission->refusal(asked, {});
    return error ? error->status : 101;
  };
  CHECK(refusal(request("kitchen", "short")) == 400);
  CHECK(refusal(request("kitchen", token, {.n = 9})) == 400);
  CHECK(refusal(request("garden", token)) == 403);
  StreamRequest elsewhere = request("kitchen", token);
  elsewhere.pipeline = "none";
  CHECK(refusal(elsewhere) == 404);
  CHECK(refusal(request("kitchen", token)) == 101);
  CHECK(first.received().empty());  // no conflict
  Client& second = resume("kitchen", token);
  send_row(second);
  CHECK(refusal(request("kitchen", token)) == 409);
  const std::string next = ready(second).resume;
  disconnect(second);
  CHECK(refusal(request("kitchen", next)) == 101);
  CHECK(stats().detached.value() == 1);
  admission->resumables().sweep(Clock::now() + std::chrono::seconds(16));
  CHECK(refusal(request("kitchen", next)) == 101);
  CHECK(refusal(request("kitchen", next, {.point = {.begin = 7}})) == 400);
  CHECK(open({.id = "kitchen"}).stream);
  CHECK(refusal(request("kitchen", next)) == 409);
  shared.resume_keys.replace(std::make_shared<const ResumeKeys>(ResumeKeys::random()));
  CHECK(refusal(request("kitchen", next)) == 404);
  CHECK_THAT(log(), !Catch::Contains("token refused"));
}

TEST_CASE_METHOD(ResumeTest,
                 "a stream that has continued elsewhere gives its places to its client") {
  Client& first = open_resumable("kitchen");
  const std::string token = ready(first).resume;
  send_row(first);
  open({.id = "garden"});
  const std::string newer = shared.resume_keys.get()->sign(
      {.epoch = 1, .opening = 5, .stream = *shared.names.find("kitchen")->key},
      {.name = "kitchen", .pipeline = "default", .tenant = {}}, wall_clock());
  StreamRequest request{.id = "kitchen", .resume = true, .resumption = Resumption{}};
  request.resumption->token = newer;
  CHECK_FALSE(admission->refusal(request, {}));
  CHECK(first.received().empty());
  const auto again = ready(resume("kitchen", newer));
  CHECK(again.resumed == false);
  CHECK(first.received().size() == 1);  // the conflict
}

TEST_CASE_METHOD(ResumeTest, "places that another stream has taken are not given a second time") {
  Link& worker = attach();
  Client& first = open_resumable("kitchen");
  send_row(first);
  answer(worker);
  open({.id = "garden"});
  disconnect(first);
  shared.end_waiting = [](const DetachedList::Entry&) {};  // its thread has not ended it yet
  CHECK(status(open({.id = "new"})) == 101);
  const std::string newer = shared.resume_keys.get()->sign(
      {.epoch = 1, .opening = 5, .stream = *shared.names.find("kitchen")->key},
      {.name = "kitchen", .pipeline = "default", .tenant = {}}, wall_clock());
  CHECK(status(resume("kitchen", newer)) == 503);
  CHECK_FALSE(shared.names.find("kitchen"));
}

TEST_CASE_METHOD(ResumeTest, "a stream that waits keeps its name") {
  Client& first = open_resumable("kitchen");
  send_row(first);
  disconnect(first);
  Client& other = open({.id = "kitchen"});
  REQUIRE(other.error);
  CHECK(other.error->status == 409);
  CHECK(other.error->retry_after.has_value());
}

TEST_CASE_METHOD(ResumeTest, "the thread of a stream is found by its name") {
  Client& first = open_resumable("kitchen");
  send_row(first);
  const StreamRequest request{.id = "kitchen", .resume = true, .resumption = Resumption{}};
  CHECK(admission->thread_of(request, {}) == std::nullopt);
  ReturnBox others{io, 10, [](std::vector<Returned>&) {}};
  const ThreadAdmission elsewhere(pipelines, {shared, others, *logged.log, 1, 2, nullptr});
  CHECK(elsewhere.thread_of(request, {}) == 0);
}

TEST_CASE_METHOD(ResumeTest, "a refused request changes nothing for the stream that waits") {
  Client& first = open_resumable("kitchen");
  const std::string token = ready(first).resume;
  send_row(first);
  disconnect(first);
  CHECK(status(resume("kitchen", token, {.n = 9})) == 400);
  CHECK(status(resume("kitchen", token, {.n = 9})) == 400);
  CHECK(stats().detached.value() == 1);
  CHECK(ready(resume("kitchen", token)).resumed == true);
}
