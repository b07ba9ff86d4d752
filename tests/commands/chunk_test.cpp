// SPDX-License-Identifier: Apache-2.0
#include "commands/console/commands.h"

#include <sndfile.h>

#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "commands/console/command_line.h"
#include "tests/commands/run_command.h"
#include "tests/support/temporary_directory.h"

namespace millrace {
namespace {

using test::CommandOutput;
using test::run_command;

namespace json = boost::json;

CommandOutput run_chunk(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "chunk");
  return run_command(add_chunk_command, arguments);
}

std::string rows(const std::vector<std::string>& arguments) {
  const CommandOutput output = run_chunk(arguments);
  CHECK(output.err == "");
  CHECK(output.exit_code == 0);
  return output.out;
}

std::string refusal(const std::vector<std::string>& arguments) {
  const CommandOutput output = run_chunk(arguments);
  CHECK(output.exit_code == 1);
  return output.err;
}

// The files of one test.
struct ChunkFiles {
  TemporaryDirectory path;

  std::string text(const std::string& content) const {
    const std::string file = path / "events.json";
    std::ofstream(file) << content;
    return file;
  }
  std::string config(const std::string& content) const {
    const std::string file = path / "millrace.toml";
    std::ofstream(file) << content;
    return file;
  }
  std::string wav(const std::vector<float>& values, int channels, int rate, int kind) const {
    const std::string file = path / "audio.wav";
    SF_INFO format{};
    format.samplerate = rate;
    format.channels = channels;
    format.format = SF_FORMAT_WAV | kind;
    SNDFILE* out = sf_open(file.c_str(), SFM_WRITE, &format);
    sf_write_float(out, values.data(), static_cast<sf_count_t>(values.size()));
    sf_close(out);
    return file;
  }
};

// The samples 1 … n, which are exact in every format.
std::vector<float> ramp(int n) {
  std::vector<float> values;
  for (int i = 1; i <= n; ++i) values.push_back(static_cast<float>(i) / 32768);
  return values;
}

std::string spec_text(const json::object& spec) {
  std::string text;
  for (const auto& [key, value] : spec) {
    if (!text.empty()) text += ',';
    text += std::string(key) + '=' +
            (value.is_string() ? std::string(value.as_string()) : json::serialize(value));
  }
  return text;
}

json::value vectors(const std::string& name = "chunks.json") {
  std::ifstream in(MILLRACE_CONFORMANCE "/" + name);
  return json::parse(std::string(std::istreambuf_iterator<char>(in), {}));
}

// The rows as lines, with `values` as their last elements.
std::string lines(const json::array& rows, const json::array& values) {
  std::string text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    json::array row = rows[i].as_array();
    row.push_back(values[i]);
    text += json::serialize(row) + '\n';
  }
  return text;
}

TEST_CASE("chunk: --values gives the rows and values of every conformance case") {
  const ChunkFiles directory;
  const json::value all = vectors();
  for (const json::value& one : all.at("values").as_array()) {
    json::object spec = one.at("spec").as_object();
    spec["align"] = one.at("align");
    spec["pad"] = one.at("pad");
    const std::string events = directory.text(json::serialize(one.at("events")));
    CHECK(rows({"--spec", spec_text(spec), "--events", events, "--values"}) ==
          lines(one.at("rows").as_array(), one.at("values").as_array()));
  }
}

TEST_CASE("chunk: --events gives the rows of every conformance case of a stream opened anew") {
  const ChunkFiles directory;
  const json::value all = vectors("opens.json");
  for (const json::value& one : all.at("cases").as_array()) {
    const std::string events = directory.text(json::serialize(one.at("events")));
    std::string expected;
    for (const json::value& row : one.at("rows").as_array())
      expected += json::serialize(row) + '\n';
    CHECK(rows({"--spec", spec_text(one.at("spec").as_object()), "--events", events}) == expected);
  }
}

TEST_CASE("chunk: --frames sets the length of the stream") {
  CHECK(rows({"--spec", "size=4,left=1", "--frames", "6"}) ==
        "[0,0,0,4,0,7,0]\n[1,4,1,2,0,48,0]\n");
  CHECK(rows({"--spec", "size=4,left=1", "--frames", "5", "--values"}) ==
        "[0,0,0,4,0,7,0,[0,1,2,3,4]]\n[1,4,1,1,0,48,0,[4,5,0,0,0]]\n");
  CHECK(rows({"--spec", "size=4", "--frames", "0", "--values"}) == "[0,0,0,0,0,55,0,null]\n");
}

TEST_CASE("chunk: times are converted to frames at the rate") {
  CHECK(rows({"--spec", "size=1s", "--frames", "16000"}) ==
        "[0,0,0,16000,0,7,0]\n[1,16000,0,0,0,48,0]\n");
  CHECK(rows({"--spec", "size=80ms", "--rate", "12.5", "--frames", "1"}) ==
        "[0,0,0,1,0,7,0]\n[1,1,0,0,0,48,0]\n");
}

TEST_CASE("chunk: a rule may have sizes, which size events have") {
  const ChunkFiles directory;
  const std::string events = directory.text(R"([["size",2],["frames",6],["end",0]])");
  const std::string spec = "size=4,sizes=2+4,rule=random,seed=7,per=stream";
  CHECK(rows({"--spec", spec, "--events", events, "--values"}) ==
        "[0,0,0,2,0,7,0,[1,2,0,0]]\n[1,2,0,2,0,0,0,[3,4,0,0]]\n[2,4,0,2,0,0,0,[5,6,0,0]]\n"
        "[3,6,0,0,0,48,0,null]\n");
  CHECK(rows({"--spec", "rule=random,size=80ms,sizes=40ms..1s/40ms", "--frames", "0"}) ==
        "[0,0,0,0,0,55,0]\n");
  CHECK(refusal({"--spec", "size=4,sizes=4+2", "--frames", "4"}) ==
        "millrace chunk: sizes = \"4+2\" must be 2 to 16 lengths of at least 1 frame in ascending "
        "order, or a range\n");
}

TEST_CASE("chunk: a preset counts frames of the model, or with --rate frames of audio") {
  CHECK(rows({"--preset", "zipformer-32", "--frames", "45"}) ==
        "[0,0,0,32,13,7,0]\n[1,32,0,13,0,48,0]\n");
  CHECK(rows({"--preset", "moshi-80ms", "--frames", "5"}) == "[0,0,0,5,0,55,0]\n");
  CHECK(rows({"--preset", "zipformer-32", "--rate", "16000", "--frames", "7440"}) ==
        "[0,0,0,5120,2320,7,0]\n[1,5120,0,2320,0,48,0]\n");
}

TEST_CASE("chunk: a row is as wide as the largest size that the events set") {
  const ChunkFiles directory;
  const std::string events =
      directory.text(R"([["frames",1],["size",1],["frames",1],["size",3],["end",0]])");
  CHECK(rows({"--spec", "size=2", "--events", events, "--values"}) ==
        "[0,0,0,1,0,7,0,[1,0,0]]\n[1,1,0,1,0,0,0,[2,0,0]]\n[2,2,0,0,0,48,0,null]\n");
}

TEST_CASE("chunk: events after the end are ignored, and a stream may stay open") {
  const ChunkFiles directory;
  CHECK(rows({"--spec", "size=2", "--events",
              directory.text(R"([["abort",0],["nonsense",-1]])")}) == "[0,0,0,0,0,119,0]\n");
  CHECK(rows({"--spec", "size=2", "--events", directory.text(R"([["frames",3]])")}) ==
        "[0,0,0,2,0,7,0]\n");
}

TEST_CASE("chunk: a file gives its frames and its samples") {
  const ChunkFiles directory;
  const std::string file = directory.wav(ramp(5), 1, 8000, SF_FORMAT_PCM_16);
  CHECK(rows({"--spec", "size=3", file}) == "[0,0,0,3,0,7,0]\n[1,3,0,2,0,48,0]\n");
  CHECK(rows({"--spec", "size=3,pad=repeat", file, "--values"}) ==
        "[0,0,0,3,0,7,0,[1,2,3]]\n[1,3,0,2,0,48,0,[4,5,5]]\n");
}

TEST_CASE("chunk: a frame of several channels is an array") {
  const ChunkFiles directory;
  const std::string file = directory.wav(ramp(6), 2, 8000, SF_FORMAT_PCM_24);
  CHECK(rows({"--spec", "size=2", file, "--values"}) ==
        "[0,0,0,2,0,7,0,[[1,2],[3,4]]]\n[1,2,0,1,0,48,0,[[5,6],[0,0]]]\n");
}

TEST_CASE("chunk: samples that are too loud are clamped, not wrapped") {
  const ChunkFiles directory;
  const std::string file = directory.wav({2, -2, 0.5}, 1, 8000, SF_FORMAT_FLOAT);
  CHECK(rows({"--spec", "size=3", file, "--values"}) ==
        "[0,0,0,3,0,7,0,[32767,-32768,16384]]\n[1,3,0,0,0,48,0,null]\n");
}

TEST_CASE("chunk: a file longer than a block keeps its context") {
  const ChunkFiles directory;
  const std::string file =
      directory.wav(std::vector<float>(50000, 1.0F / 32768), 1, 16000, SF_FORMAT_PCM_16);
  CHECK(rows({"--spec", "size=1s,left=2s", file}) ==
        "[0,0,0,16000,0,7,0]\n[1,16000,16000,16000,0,0,0]\n[2,32000,32000,16000,0,0,0]\n"
        "[3,48000,32000,2000,0,48,0]\n");
  const std::string shown = rows({"--spec", "size=1s,left=2s", file, "--values"});
  CHECK(std::count(shown.begin(), shown.end(), '1') > 16000 + 32000 + 48000 + 34000);
}

TEST_CASE("chunk: --rate must be the rate of the file, because only --config converts it") {
  const ChunkFiles directory;
  const std::string file = directory.wav(ramp(5), 1, 8000, SF_FORMAT_PCM_16);
  CHECK(rows({"--spec", "size=1ms", "--rate", "8000", file}) == "[0,0,0,5,0,55,0]\n");
  CHECK(refusal({"--spec", "size=1ms", "--rate", "16000", file}) ==
        "millrace chunk: " + file +
            ": has 8000 frames per second; --rate must be the same: only --config converts the "
            "rate\n");
  CHECK(refusal({"--preset", "silero-16k", file}) ==
        "millrace chunk: preset = \"silero-16k\" takes audio at 16000 frames per second, not audio "
        "at 8000 frames per second\n");
}

TEST_CASE("chunk: --config cuts by the pipeline's rule, at its rate and in its type") {
  const ChunkFiles directory;
  const std::string config = directory.config(
      "[[pipeline]]\nname = \"a\"\nchunk = { size = 4 }\nrate = 8000\nframes = \"f32\"\n"
      "[[pipeline]]\nname = \"b\"\nrate = 16000\nchunk = { size = \"100ms\" }\n");
  const std::string file = directory.wav(ramp(6), 1, 8000, SF_FORMAT_PCM_16);
  CHECK(rows({"--config", config, "--pipeline", "a", file, "--values"}) ==
        "[0,0,0,4,0,7,0,[3.0517578e-05,6.1035156e-05,9.1552734e-05,0.00012207031]]\n"
        "[1,4,0,2,0,48,0,[0.00015258789,0.00018310547,0,0]]\n");
  const std::string second =
      directory.wav(std::vector<float>(8000, 0.25F), 2, 8000, SF_FORMAT_PCM_16);
  const std::string cut = rows({"--config", config, "--pipeline", "b", second});
  CHECK(std::count(cut.begin(), cut.end(), '\n') == 6);  // 0.5 s, and the end
  CHECK(cut.ends_with("[5,8000,0,0,0,48,0]\n"));
  CHECK(refusal({"--config", config, file}) ==
        "millrace chunk: " + config + ": has no pipeline default\n");
}

TEST_CASE("chunk: --plot draws each chunk and the reasons of markers") {
  const ChunkFiles directory;
  const std::string file = directory.wav(ramp(9), 1, 8000, SF_FORMAT_PCM_16);
  const std::string plot = directory.path / "plot.svg";
  CHECK(rows({"--spec", "size=3", file, "--plot", plot}) ==
        "[0,0,0,3,0,7,0]\n[1,3,0,3,0,0,0]\n[2,6,0,3,0,0,0]\n[3,9,0,0,0,48,0]\n");
  std::ifstream in(plot);
  const std::string svg(std::istreambuf_iterator<char>(in), {});
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
  for (const char* text :
       {">0</text>", ">1</text>", ">2</text>", ">RESET start</text>", ">LAST END</text>"})
    CHECK(svg.find(text) != svg.npos);
  CHECK(svg.find(">3</text>") == svg.npos);
  CHECK(refusal({"--spec", "size=3", file, "--plot", directory.path / "no/plot.svg"}) ==
        "millrace chunk: " + (directory.path / "no/plot.svg") + ": cannot be written\n");
}

TEST_CASE("chunk: a missing or superfluous option is an error") {
  const std::string rule =
      "millrace chunk: exactly one of --spec, --preset and --config must be given\n";
  CHECK(refusal({"--frames", "4"}) == rule);
  CHECK(refusal({"--spec", "size=4", "--preset", "silero-16k", "--frames", "4"}) == rule);
  const std::string stream =
      "millrace chunk: exactly one of FILE, --frames and --events must be given\n";
  CHECK(refusal({"--spec", "size=4"}) == stream);
  CHECK(refusal({"--spec", "size=4", "--frames", "4", "--events", "x"}) == stream);
}

TEST_CASE("chunk: a wrong rule, count or rate is named") {
  CHECK(refusal({"--spec", "size=4,left", "--frames", "4"}) ==
        "millrace chunk: --spec: \"left\" must be KEY=VALUE; separate several by commas\n");
  CHECK(refusal({"--spec", "size=0", "--frames", "4"}) ==
        "millrace chunk: size = \"0\" must be at least 1 frame\n");
  for (const char* count : {"-1", "x", "1.5", "9007199254740993"}) {
    CHECK(refusal({"--spec", "size=4", "--frames", count}) ==
          "millrace chunk: --frames: \"" + std::string(count) +
              "\" must be a whole number from 0 to 9007199254740992\n");
  }
  for (const char* rate : {"0", "-1", "nan", "inf"}) {
    CHECK(refusal({"--spec", "size=4", "--frames", "4", "--rate", rate}) ==
          "millrace chunk: --rate: must be above 0 and at most 1e9 frames per second\n");
  }
}

TEST_CASE("chunk: a file that cannot be read is named") {
  const ChunkFiles directory;
  const std::string missing = directory.path / "missing";
  CHECK(refusal({"--spec", "size=4", missing}) ==
        "millrace chunk: " + missing + ": cannot be read as audio: No such file or directory\n");
  CHECK(refusal({"--spec", "size=4", "--events", missing}) ==
        "millrace chunk: " + missing + ": cannot be read\n");
  CHECK(refusal({"--spec", "size=4", "--events", directory.path.path()}) ==
        "millrace chunk: " + directory.path.path() + ": cannot be read\n");
  CHECK(refusal({"--spec", "size=4", directory.text("[]")}).find("cannot be read as audio") !=
        std::string::npos);
}

TEST_CASE("chunk: an invalid event is named") {
  const ChunkFiles directory;
  const auto refused = [&](const std::string& events, const std::string& spec = "size=4") {
    const std::string file = directory.text(events);
    const std::string output = refusal({"--spec", spec, "--events", file});
    const std::string begin = "millrace chunk: " + file + ": ";
    CHECK(output.starts_with(begin));
    return output.substr(begin.size());
  };
  CHECK(refused("") == "is not JSON: incomplete JSON\n");
  CHECK(refused("[") == "is not JSON: incomplete JSON\n");
  CHECK(refused("1") == "must be a JSON array of events\n");
  CHECK(refused("{}") == "must be a JSON array of events, or lines of millrace recordings show\n");
  CHECK(refused(R"([["frames",1],["frames"]])") ==
        "event 1: must be a pair of an event and a count, like [\"frames\", 1600]\n");
  CHECK(refused(R"([["stop",0]])") ==
        "event 0: \"stop\" must be \"frames\", \"size\", \"flush\", \"reset\", \"gap\", "
        "\"message\", \"set\", \"end\" or \"abort\"\n");
  CHECK(refused(R"([["frames",-1]])") == "event 0: -1 must be a whole number, at least 0\n");
  CHECK(refused(R"([["frames","1"]])") == "event 0: \"1\" must be a whole number, at least 0\n");
  CHECK(refused(R"([["gap",0]])") == "event 0: a gap must have at least 1 frame\n");
  CHECK(refused(R"([["size",2]])", "size=4,step=2") ==
        "event 0: step = \"2\" must be 0 if sizes change\n");
  CHECK(refused(R"([["gap",9007199254740992],["frames",1]])") ==
        "event 1: the stream must have at most 9007199254740992 frames\n");
}

TEST_CASE("chunk: it ends if its rows cannot be written") {
  std::ostringstream out, err;
  out.setstate(std::ios::badbit);
  Console console{out, err};
  CommandLine program;
  add_chunk_command(program, console);
  program.run({"chunk", "--spec", "size=1", "--frames", "9007199254740992"}, console);
  CHECK(err.str() == "millrace chunk: the rows cannot be written\n");
  CHECK(console.exit_code == 1);
}

}  // namespace
}  // namespace millrace
