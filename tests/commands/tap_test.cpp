// SPDX-License-Identifier: Apache-2.0
#include "commands/console/commands.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <sstream>
#include <string>
#include <thread>

#include "commands/console/command_line.h"
#include "commands/console/termination.h"
#include "commands/output/tap_lines.h"
#include "recording/format/checksums.h"
#include "tests/workers/library/fake_service.h"

using namespace millrace;

namespace {

constexpr const char* framed_line =
    R"({"stream":"mic-7","seq":0,"begin":0,"left":0,"size":3,"right":0,)"
    R"("flags":["START","RESET","SEGMENT"],"reason":"start","gap":0,"mark":null,"slot":5,)"
    R"("batch":1})";
constexpr const char* marker_line =
    R"({"stream":"mic-7","seq":1,"begin":3,"left":0,"size":0,"right":0,)"
    R"("flags":["LAST"],"reason":null,"gap":0,"mark":7,"slot":5,"batch":1})";

HandedBatch tapped_batch(std::uint64_t id) {
  HandedBatch batch = example_batch(id);
  batch.marks[0].mark = 7;
  batch.opened = {{.stream = StreamId{11}, .slot = 5, .name = "mic-7", .options = ""}};
  return batch;
}

// A batch as a worker receives it, with a tensor of 2 rows of 3 values.
struct ReceivedBatch {
  explicit ReceivedBatch(HandedBatch message) : batch(std::move(message), {}, {}) {
    std::memcpy(tensor.data(), "123456789...", tensor.size());
    BatchArrays arrays;
    arrays.data = tensor;
    batch = WorkerBatch(batch.release(), arrays, {});
  }
  std::array<std::byte, 12> tensor{};
  WorkerBatch batch;
};

// Formats a batch of a worker whose batches may have 2 or 3 columns.
void format(TapLines& lines, const HandedBatch& batch, RowColumns columns = {}) {
  const std::uint32_t widths[] = {2, 3};
  lines.format(ReceivedBatch(batch).batch, columns, widths);
}

// Runs `tap` on its own thread. After join(): what it printed.
class RunningTap {
 public:
  explicit RunningTap(const FakeService& service) : RunningTap(service.url()) {}
  explicit RunningTap(const std::string& url) {
    thread_ = std::jthread([this, url] {
      CommandLine program;
      add_tap_command(program, console_);
      program.run({"tap", "--url", url}, console_);
    });
  }

  void join() { thread_.join(); }
  std::string printed() const { return out_.str(); }
  std::string warnings() const { return err_.str(); }
  int exit_code() const { return console_.exit_code; }

 private:
  const BlockedSignals blocked_;
  std::ostringstream out_, err_;
  Console console_{out_, err_};
  std::jthread thread_;
};

std::string lines(std::initializer_list<std::string> parts) {
  std::string all;
  for (const auto& part : parts) all += part + "\n";
  return all;
}

}  // namespace

TEST_CASE("crc32c is that of iSCSI") {
  const std::string digits = "123456789";
  CHECK(recording::crc32c(std::as_bytes(std::span(digits))) == 0xe3069283);
  CHECK(recording::crc32c({}) == 0);
}

TEST_CASE("each row of a batch is one line of JSON, marker rows last") {
  TapLines tap_lines(false);
  format(tap_lines, tapped_batch(1));
  REQUIRE(tap_lines.framed().size() == 1);
  REQUIRE(tap_lines.marks().size() == 1);
  CHECK(tap_lines.framed()[0] == Answer{Answer::Kind::json, framed_line});
  CHECK(tap_lines.marks()[0] == Answer{Answer::Kind::json, marker_line});
}

TEST_CASE("a checksum covers the bytes of the row, and is null for a marker row") {
  TapLines tap_lines(true);
  format(tap_lines, tapped_batch(1));
  // recording::crc32c("123456")
  CHECK_THAT(tap_lines.framed()[0].data, Catch::EndsWith(R"("batch":1,"crc32c":"41357186"})"));
  CHECK_THAT(tap_lines.marks()[0].data, Catch::EndsWith(R"("batch":1,"crc32c":null})"));
}

TEST_CASE("a checksum covers the row in the narrowest tensor that holds the row") {
  TapLines tap_lines(true);
  HandedBatch batch = tapped_batch(1);
  batch.framed[0].size = 1;  // with its context it needs 2 columns
  format(tap_lines, batch, {.context = 1});
  // recording::crc32c("1234")
  CHECK_THAT(tap_lines.framed()[0].data, Catch::EndsWith(R"("crc32c":"f63af4ee"})"));
}

TEST_CASE("a row has the messages of the client that it carries") {
  TapLines tap_lines(true);
  HandedBatch batch = tapped_batch(1);
  batch.posts = {{StreamId{11}, 0, 0, R"({"a":1})", true},
                 {StreamId{11}, 1, 3, "\"b\""},
                 {StreamId{11}, 1, 3, "\n[1,\n2]"},
                 {StreamId{12}, 0, 0, "\"of another stream\""}};
  format(tap_lines, batch);
  CHECK_THAT(tap_lines.framed()[0].data,
             Catch::EndsWith(R"(,"messages":[{"position":0,"data":{"a":1},"set":true}],)"
                             R"("crc32c":"41357186"})"));
  CHECK_THAT(
      tap_lines.marks()[0].data,
      Catch::EndsWith(R"(,"messages":[{"position":3,"data":"b"},{"position":3,"data": [1, 2]}],)"
                      R"("crc32c":null})"));
}

TEST_CASE("a stream keeps its name until it ends") {
  TapLines tap_lines(false);
  format(tap_lines, tapped_batch(1));
  HandedBatch batch = example_batch(2);
  batch.marks[0].flags = flag::last | flag::end;
  format(tap_lines, batch);
  CHECK_THAT(tap_lines.marks()[0].data, Catch::StartsWith(R"({"stream":"mic-7",)"));
}

TEST_CASE("tap prints a batch before it answers it with the same lines") {
  FakeService service;
  RunningTap tap(service);
  service.expect_worker();
  service.send_welcome();
  service.send(tapped_batch(1));
  const Done done = service.receive<Done>();
  CHECK(tap.printed() == lines({framed_line, marker_line}));
  CHECK(done.answers == std::vector<Answer>{{Answer::Kind::json, framed_line}});
  CHECK(done.mark_answers == std::vector<Answer>{{Answer::Kind::json, marker_line}});
  service.send(Bye{});
  tap.join();
  CHECK(tap.warnings() == "");
}

TEST_CASE(
    "tap sends Bye when another worker is attached, and watches when its streams have moved") {
  FakeService service;
  RunningTap tap(service);
  service.expect_worker();
  CHECK_FALSE(service.hello().watch);
  service.send_welcome();
  service.send(Company{1});
  (void)service.receive<Bye>();
  service.send(Bye{});
  service.hang_up();
  service.expect_worker();
  CHECK(service.hello().watch);
  service.welcome.slabs = 0;
  service.send_welcome();
  HandedBatch batch = tapped_batch(1);
  const std::array<std::byte, 12> tensor{};
  batch.tensor = tensor;
  service.send(batch);
  service.send(Bye{});
  service.hang_up();
  tap.join();
  CHECK(tap.printed() == lines({framed_line, marker_line}));
  CHECK(tap.warnings() == "");
}

TEST_CASE("at SIGTERM tap answers its batches, sends Bye and returns") {
  FakeService service;
  RunningTap tap(service);
  service.expect_worker();
  service.send_welcome();
  service.send(tapped_batch(1));
  (void)service.receive<Done>();
  ::kill(::getpid(), SIGTERM);
  (void)service.receive<Bye>();
  tap.join();
  CHECK(tap.printed() == lines({framed_line, marker_line}));
  CHECK(tap.warnings() == "");
}

TEST_CASE("SIGTERM ends a tap that waits for a service, after a line about the wait") {
  const TemporaryDirectory directory;
  RunningTap tap("unix:" + (directory / "workers.sock"));
  ::kill(::getpid(), SIGTERM);
  tap.join();
  CHECK(tap.exit_code() == 0);
  CHECK_THAT(tap.warnings(), Catch::StartsWith("millrace tap: no service at unix:") &&
                                 Catch::EndsWith("waiting for up to 30s\n"));
}

TEST_CASE("tap reports an error if the service ends") {
  FakeService service;
  RunningTap tap(service);
  service.expect_worker();
  service.send_welcome();
  service.hang_up();
  tap.join();
  CHECK(tap.exit_code() == 1);
  CHECK_THAT(tap.warnings(), Catch::Contains("closed the connection"));
}
