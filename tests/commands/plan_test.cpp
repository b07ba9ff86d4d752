// SPDX-License-Identifier: Apache-2.0
#include "commands/console/commands.h"

#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "tests/commands/run_command.h"
#include "tests/support/temporary_directory.h"

namespace millrace {
namespace {

using test::CommandOutput;
using test::run_command;

namespace json = boost::json;

class LengthsFile {
 public:
  std::string file(const std::string& content) const {
    std::ofstream(path_ / "lengths.json") << content;
    return path_ / "lengths.json";
  }

 private:
  TemporaryDirectory path_;
};

// The output of the command for streams of these lengths.
CommandOutput run_plan(const std::string& lengths, std::vector<std::string> arguments) {
  const LengthsFile directory;
  arguments.insert(arguments.begin(), {"plan", "--lengths", directory.file(lengths)});
  return run_command(add_plan_command, arguments);
}

std::string batches(const std::string& lengths, const std::vector<std::string>& arguments) {
  const CommandOutput output = run_plan(lengths, arguments);
  CHECK(output.err == "");
  CHECK(output.exit_code == 0);
  return output.out;
}

std::string refusal(const std::string& lengths, const std::vector<std::string>& arguments) {
  const CommandOutput output = run_plan(lengths, arguments);
  CHECK(output.exit_code == 1);
  CHECK(output.out == "");
  return output.err;
}

TEST_CASE("plan prints a line for each batch of a stateful epoch") {
  CHECK(batches("[8, 4, 4]", {"--mode", "stateful", "--spec", "size=4", "--slots", "2"}) ==
        "[[0,0,4],[1,0,4]]\n[[0,4,8],[2,0,4]]\n");
}

TEST_CASE("plan prints the batches of one rank") {
  const std::vector<std::string> rank{"--mode", "stateful", "--spec", "size=4", "--slots",
                                      "2",      "--world",  "2",      "--rank", "1"};
  CHECK(batches("[8, 4, 4]", rank) == "[[1,0,4]]\n[[2,0,4]]\n");
}

TEST_CASE("plan prints stateless batches, and whole streams with size=0") {
  CHECK(batches("[5, 3]", {"--mode", "stateless", "--spec", "size=3", "--max-seqs", "2"}) ==
        "[[0,0,3],[0,3,5]]\n[[1,0,3]]\n");
  CHECK(batches("[5, 3]", {"--mode", "stateless", "--spec", "size=0", "--batch-size", "7"}) ==
        "[[0,0,5]]\n[[1,0,3]]\n");
}

TEST_CASE("plan prints RETURNN's batches of every vector") {
  std::ifstream file(MILLRACE_CONFORMANCE "/returnn.json");
  const json::value vectors = json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
  for (const json::value& one : vectors.at("batch").as_array()) {
    const auto& limits = one.at("opts").as_object();
    std::vector<std::string> arguments{"--spec", "size=" + json::serialize(one.at("size")) +
                                                     ",step=" + json::serialize(one.at("step"))};
    for (const auto& [key, option] : {std::pair{"max_seqs", "--max-seqs"},
                                      {"batch_size", "--batch-size"},
                                      {"packed_batch_size", "--packed-batch-size"}})
      if (limits.contains(key) && !limits.at(key).is_null())
        arguments.insert(arguments.end(), {option, json::serialize(limits.at(key))});
    for (const std::string backend : {"classic", "torch"}) {
      auto all = arguments;
      all.insert(all.end(), {"--mode", "returnn-" + backend});
      std::string expected;
      for (const json::value& batch : one.at(backend).as_array())
        expected += json::serialize(batch) + "\n";
      CHECK(batches(json::serialize(one.at("lens")), all) == expected);
    }
  }
}

TEST_CASE("plan shuffles with a seed, another way in each epoch") {
  const std::string lengths = "[1,2,3,4,5,6,7,8,9,10,11,12]";
  const auto epoch = [&](const std::string& number) {
    return batches(lengths, {"--mode", "stateless", "--spec", "size=0", "--max-seqs", "12",
                             "--seed", "1", "--epoch", number});
  };
  CHECK(epoch("0") == epoch("0"));
  CHECK(epoch("0") != epoch("1"));
}

TEST_CASE("plan prints whole streams by length, in order or in groups") {
  CHECK(batches("[5, 3, 9]", {"--mode", "returnn-torch", "--spec", "size=0", "--max-seqs", "2",
                              "--order", "sorted"}) == "[[1,0,3],[0,0,5]]\n[[2,0,9]]\n");
  CHECK(batches("[5, 9, 5, 9]", {"--mode", "stateless", "--spec", "size=0", "--max-seqs", "2",
                                 "--buckets", "2"}) == "[[0,0,5],[2,0,5]]\n[[1,0,9],[3,0,9]]\n");
}

TEST_CASE("plan selects a part of the streams, and divides long ones") {
  const std::vector<std::string> rest{"--mode", "stateless", "--spec", "size=0", "--max-seqs", "4"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), rest.begin(), rest.end());
    return more;
  };
  CHECK(batches("[5, 3]", with({"--max-stream", "2"})) ==
        "[[0,0,2],[1,0,2],[2,0,1],[3,0,2]]\n[[4,0,1]]\n");
  const std::string train = batches("[1,2,3,4]", with({"--split", "a=0.4,b=0.2"}));
  const std::string part = batches("[1,2,3,4]", with({"--split", "a=0.4,b=0.2", "--part", "a"}));
  CHECK(train.size() + part.size() < batches("[1,2,3,4]", rest).size() + 4);
  CHECK(refusal("[1]", with({"--split", "a"})) ==
        "millrace plan: --split: \"a\" must be NAME=FRACTION; separate several by commas\n");
  CHECK(refusal("[1]", with({"--part", "a"})) ==
        "millrace plan: --part: part = \"a\" needs split, like {\"valid\": 0.05}\n");
}

TEST_CASE("plan warns of padding, and names a number of slots") {
  const CommandOutput output =
      run_plan("[100, 4, 4, 4]", {"--mode", "stateful", "--spec", "size=4", "--slots", "2"});
  CHECK(output.exit_code == 0);
  CHECK(output.err ==
        "millrace plan: warning: 44.0 % of the rows are padding with slots = 2: slots = 1 gives at "
        "most 5.0 %\n");
}

TEST_CASE("the warning of padding names a length to divide long streams, which suffices") {
  std::string lengths = "[172800000";  // three hours
  for (int i = 0; i < 300; ++i) lengths += "," + std::to_string(16'000 * (1 + i % 20));
  std::vector<std::string> options{"--mode", "stateful", "--spec", "size=1600", "--slots", "16"};
  CHECK(run_plan(lengths + "]", options).err ==
        "millrace plan: warning: 91.9 % of the rows are padding with slots = 16: slots = 1 gives "
        "at most 5.0 %; max_stream = \"20s\" divides the long streams\n");
  options.insert(options.end(), {"--max-stream", "20s"});
  CHECK(run_plan(lengths + "]", options).err == "");
}

TEST_CASE("plan refuses wrong options by name") {
  CHECK(refusal("[]", {"--mode", "stateful", "--spec", "size=4", "--slots", "1"}) ==
        "millrace plan: --streams or --lengths: streams has no streams\n");
  CHECK(
      refusal("[4]", {"--mode", "stateful", "--spec", "size=4", "--slots", "2"}) ==
      "millrace plan: --slots: slots = 2 is more than the 1 streams of an epoch: each slot needs a "
      "stream\n");
  CHECK(
      refusal("[4, 4, 4]",
              {"--mode", "stateful", "--spec", "size=4", "--slots", "3", "--world", "2"}) ==
      "millrace plan: --world: world = 2 does not divide slots, which is 3: each rank gets as many "
      "slots\n");
  CHECK(refusal("[4]",
                {"--mode", "stateful", "--spec", "size=4", "--slots", "1", "--max-seqs", "2"}) ==
        "millrace plan: --max-seqs: rows = 2 cannot be set with mode = \"stateful\": a batch has a "
        "row "
        "for each slot of its rank; the key for their number is slots\n");
  CHECK(refusal("[4]", {"--mode", "stateless", "--spec", "size"}) ==
        "millrace plan: --spec: \"size\" must be KEY=VALUE; separate several by commas\n");
  CHECK(refusal("[4]", {"--mode", "stateless", "--spec", "size=0,left=3", "--max-seqs", "2"}) ==
        "millrace plan: --spec: size=0, whole streams, cannot be combined with other keys\n");
  CHECK(refusal("[4]",
                {"--mode", "stateless", "--spec", "size=4", "--seed", "x", "--max-seqs", "2"}) ==
        "millrace plan: --seed: \"x\" must be a whole number of at least 0\n");
  CHECK(refusal("{}", {"--mode", "stateless", "--spec", "size=4"})
            .find("must be a JSON array of lengths in frames\n") != std::string::npos);
  CHECK(refusal("[-1]", {"--mode", "stateless", "--spec", "size=4"})
            .find(": -1 must be a whole number from 0 to") != std::string::npos);
}

}  // namespace
}  // namespace millrace
