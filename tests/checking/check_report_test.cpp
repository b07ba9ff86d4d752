// SPDX-License-Identifier: Apache-2.0
#include "checking/check_report.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/checking/plan/streams.h"

using namespace millrace;
using namespace millrace::checking;

namespace {

Answer json(const std::string& text) { return {.kind = Answer::Kind::json, .data = text}; }

// Streams "a" and "b" with rows 0 and 1 (12 frames in bodies of 6) and the END row.
struct Reported {
  std::vector<CheckedStream> streams;
  std::vector<Stage> stages{{"alone", "", {}}, {"together", "They are mixed.", {}}};

  Reported() {
    for (const char* name : {"a", "b"})
      streams.emplace_back(counted_frames(12, name), FrameType(), ChunkRule{.spec = {.size = 6}},
                           CheckedStream::Events(), std::vector<std::uint64_t>());
    for (std::uint32_t stream = 0; stream < 2; ++stream)
      for (std::uint32_t row = 0; row < 3; ++row) {
        PlannedBatch& alone = stages[0].batches.emplace_back();
        (row < 2 ? alone.framed : alone.marks)
            .push_back({stream, row, stream, StreamId{stream + 1}, row == 0});
        alone.rows = row < 2;
        alone.width = 6;
        if (stream == 1) continue;
        PlannedBatch& both = stages[1].batches.emplace_back();
        auto& rows = row < 2 ? both.framed : both.marks;
        rows.push_back({1, row, 1, StreamId{11}, row == 0});
        rows.push_back({0, row, 7, StreamId{10}, row == 0});
        both.rows = row < 2 ? 4 : 0;
        both.width = 6;
      }
  }

  CheckReport report(StageAnswers together, double tolerance = 0) const {
    CheckReport made(streams, stages, 2, tolerance);
    made.add({{{json("1"), json("2"), {}}, {json("3"), json("4"), {}}}, {}});
    made.add({std::move(together), {}});
    return made;
  }
};

}  // namespace

TEST_CASE_METHOD(Reported, "equal answers do not differ") {
  const CheckReport same = report({{json("1"), json("2"), {}}, {json("3"), json("4"), {}}});
  CHECK_FALSE(same.differs());
  CHECK(same.answered() == 4);
  CHECK(same.table() ==
        "stage      batches      rows   different\n"
        "alone            6         6\n"
        "together         3         6           0\n");
}

TEST_CASE_METHOD(Reported, "the first row that differs is described with its batch") {
  const CheckReport other = report({{json("1"), json("5"), {}}, {json("3"), json("4"), json("6")}});
  REQUIRE(other.differs());
  CHECK(other.difference() ==
        "The first answer that differs is that of stream \"a\" row 1, 3.000 s to 6.000 s.\n"
        "  alone             2\n"
        "  here              5\n"
        "  stage             together\n"
        "  batch             2 rows, this is number 1; 2 padding rows; beside \"b\" row 1\n"
        "  tensor            4 rows, width 6; alone 1 row, width 6\n"
        "  slot              7, which was not used before\n"
        "  worker            the first one\n"
        "  rows that differ  1, 1 of 3\n"
        "They are mixed.\n");
  CHECK(other.table().ends_with("together         3         6           2\n"));
}

TEST_CASE_METHOD(
    Reported, "the report names the stream that had the slot, the flags, and the former worker") {
  stages[1].batches[0].worker = 1;
  const CheckReport other = report({{json("1"), json("2"), {}}, {json("3"), json("7"), {}}});
  CHECK_THAT(other.difference(),
             Catch::Contains("slot              1, which had \"b\" row 2 before"));
  CHECK_THAT(other.difference(),
             Catch::Contains("the first one; \"b\" row 0 was at the other one"));
  const CheckReport first = report({{json("0"), json("2"), {}}, {json("3"), json("4"), {}}});
  CHECK_THAT(first.difference(), Catch::Contains("flags START,RESET,SEGMENT, reason start."));
}

TEST_CASE_METHOD(Reported, "answers within the tolerance do not differ") {
  CHECK_FALSE(report({{json("1.1"), json("2"), {}}, {json("3"), json("4"), {}}}, 0.2).differs());
}

TEST_CASE_METHOD(Reported, "small differences of numbers in larger batches suggest a tolerance") {
  const std::string suggests = "try --tolerance 1e-4.\n";
  CHECK_THAT(report({{json("1"), json("2.0001"), {}}, {json("3"), json("4"), {}}}).difference(),
             Catch::EndsWith(suggests));
  CHECK_THAT(report({{json("1"), json("2.01"), {}}, {json("3"), json("4.0001"), {}}}).difference(),
             Catch::EndsWith("They are mixed.\n"));
  stages[1].batches[1].rows = 1;
  CHECK_THAT(report({{json("1"), json("2.0001"), {}}, {json("3"), json("4"), {}}}).difference(),
             Catch::EndsWith("They are mixed.\n"));
}

TEST_CASE_METHOD(Reported, "the texts of a stream may differ by a part of all their characters") {
  const Answer text{.kind = Answer::Kind::text, .data = "abcde"};
  const Answer other{.kind = Answer::Kind::text, .data = "axxde"};
  const auto differs = [&](const StageAnswers& together) {
    CheckReport made(streams, stages, 2, 0.2);
    made.add({{{text, text, {}}, {text, text, {}}}, {}});
    made.add({together, {}});
    return made.differs();
  };
  CHECK_FALSE(differs({{other, text, {}}, {text, other, {}}}));
  CHECK(differs({{text, text, {}}, {other, other, {}}}));
}

TEST_CASE_METHOD(Reported, "of long answers the part that differs is shown") {
  const std::string text(500, 'x');
  CheckReport made(streams, stages, 2, 0);
  made.add({{{json("\"" + text + "a\""), {}, {}}, {{}, {}, {}}}, {}});
  made.add({{{json("\"" + text + "b\""), {}, {}}, {{}, {}, {}}}, {}});
  CHECK_THAT(made.difference(), Catch::Contains("…" + std::string(40, 'x') + "a\"\n"));
}

TEST_CASE_METHOD(Reported, "errors of streams alone are counted") {
  CheckReport made(streams, stages, 2, 0);
  made.add(
      {{{{.kind = Answer::Kind::error, .data = "no model"}, json("1"), {}}, {{}, {}, {}}}, {}});
  CHECK(made.answered() == 2);
  CHECK(made.failed() == 1);
  CHECK(made.first_error() == "no model");
}

TEST_CASE_METHOD(Reported, "distinct answers are those of rows with an answer or an endpoint") {
  CheckReport made(streams, stages, 2, 0);
  made.add({{{json("1"), json("1"), {}}, {json("1"), {.endpoint = true}, {}}}, {}});
  CHECK(made.distinct() == 2);
}

TEST_CASE_METHOD(Reported, "each copy of a stream has its own answers") {
  stages[1].batches[0].framed[1].copy = 1;
  const CheckReport other = report(
      {{json("0"), json("2"), {}}, {json("3"), json("4"), {}}, {json("5"), {}, {}}, {{}, {}, {}}});
  CHECK_THAT(other.difference(), Catch::Contains("  here              5\n"));
  CHECK(other.table().ends_with("together         3         6           1\n"));
}

TEST_CASE_METHOD(Reported, "the largest differences within the tolerance are named") {
  CHECK(report({{json("1"), json("2"), {}}, {json("3"), json("4"), {}}}, 0.5).margin().empty());
  CHECK(report({{json("1"), json("2.5"), {}}, {json("3"), json("4.1"), {}}}, 0.5).margin() ==
        "Differences: numbers by up to 0.2.\n");
  CheckReport made(streams, stages, 2, 0.5);
  const Answer text{.kind = Answer::Kind::text, .data = "abcde"};
  const Answer other{.kind = Answer::Kind::text, .data = "axxde"};
  made.add({{{text, text, {}}, {text, text, {}}}, {}});
  made.add({{{text, other, {}}, {text, text, {}}}, {}});
  CHECK(made.margin() == "Differences: texts by up to 0.2 of the characters of a stream.\n");
}

TEST_CASE_METHOD(Reported, "the messages that the rows of the batch carry are shown") {
  streams[1].post(1, {.position = 6, .text = R"({"a":1})", .set = true});
  streams[0].post(1, {.position = 6, .text = "[2]", .set = false});
  CHECK_THAT(
      report({{json("1"), json("5"), {}}, {json("3"), json("4"), {}}}).difference(),
      Catch::Contains("  messages          set {\"a\":1} to \"b\" row 1, [2] to \"a\" row 1\n"));
}
