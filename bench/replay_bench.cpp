// SPDX-License-Identifier: Apache-2.0
// Measures millrace replay at --speed max. To a worker that does not answer, in rows per second,
// beside a loop that gathers the same frames from the mapped files into one buffer. To a service
// over ZeroMQ, in bytes per second, beside a DEALER that sends messages of 32 KiB. The other end of
// both is a ROUTER that drops them.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/bare_gather.h"
#include "bench/options.h"
#include "bench/paired_runs.h"
#include "bench/recorded_streams.h"
#include "bench/zeromq_router.h"
#include "replay/replay_to_service.h"
#include "replay/replay_to_workers.h"
#include "replay/selection.h"
#include "schemas/client_codec.h"
#include "workers/library/worker.h"

using namespace millrace;
using namespace millrace::bench;
namespace cp = client_protocol;

namespace {

constexpr std::size_t message_bytes = 32 << 10;

double since(Time begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// A directory that is opened anew, as by a process that has just started.
struct Recorded {
  explicit Recorded(const std::string& path)
      : recordings(std::move(*recording::Recordings::open(path))), streams(recordings->streams()) {}

  std::unique_ptr<recording::Recordings> recordings;
  std::vector<recording::RecordedStream> streams;
};

ReplayPipeline pipeline_of(const Recorded& recorded, const RecordedAudio& audio, Element dtype) {
  ReplayPipeline pipeline = *replay_pipeline(recorded.streams, {});
  pipeline.options.dtype = dtype;
  pipeline.options.batch.slots = pipeline.options.batch.rows =
      static_cast<std::uint32_t>(audio.streams);
  return pipeline;
}

// Rows per second, from the attachment of the worker to its last batch.
double replay_to_worker(const std::string& directory, const RecordedAudio& audio, Element dtype) {
  const std::string socket = directory + "/workers.sock";
  Recorded recorded(directory);
  std::ostringstream out, err;
  ReplayOutput output(out, err, false);
  auto replay = std::make_unique<ReplayToWorkers>(
      *recorded.recordings, recorded.streams, pipeline_of(recorded, audio, dtype),
      WorkersAddress{.path = socket}, ScheduleRule{}, output);
  double took = 0;
  std::jthread thread([&] {
    Worker worker("unix:" + socket, {.pipeline = audio.pipeline});
    const Time begin = Clock::now();
    while (auto batch = worker.next()) {
      worker.done(*batch);
      took = since(begin);
    }
  });
  (void)replay->run();
  replay.reset();  // sends Bye
  thread.join();
  if (!output.good() || output.totals().rows < audio.streams * audio.chunks)
    throw std::runtime_error(err.str());
  return static_cast<double>(output.totals().rows) / took;
}

// Bytes per second.
double replay_to_router(const std::string& directory) {
  DroppingRouter router;
  Recorded recorded(directory);
  std::ostringstream out, err;
  ReplayOutput output(out, err, false);
  ReplayToService replay(*recorded.recordings, recorded.streams, router.url(), {}, output);
  const Time begin = Clock::now();
  (void)replay.run();
  const double took = since(begin);
  if (!output.good() || router.bytes() < output.totals().bytes) throw std::runtime_error(err.str());
  return static_cast<double>(output.totals().bytes) / took;
}

double bare_dealer(const RecordedAudio& audio) {
  DroppingRouter router;
  zmq::context_t context;
  zmq::socket_t dealer(context, zmq::socket_type::dealer);
  dealer.set(zmq::sockopt::sndhwm, 256);
  dealer.set(zmq::sockopt::linger, 0);
  dealer.connect(router.url());
  cp::Encoder encoder;
  const auto send = [&](Bytes message) {
    (void)dealer.send(zmq::const_buffer(message.data(), message.size()), zmq::send_flags::none);
  };
  const std::vector<std::byte> frames(message_bytes);
  const std::uint64_t messages =
      audio.streams * audio.chunks * audio.chunk_frames * 2 / message_bytes;
  const Time begin = Clock::now();
  for (std::uint64_t i = 0; i < messages; ++i)
    send(encoder.encode(cp::Frames{.stream = i % audio.streams, .at = 0, .bytes = frames}));
  send(encoder.encode(cp::End{.stream = 0}));
  zmq::message_t closed;
  (void)dealer.recv(closed);
  const double took = since(begin);
  if (router.bytes() < messages * message_bytes) throw std::runtime_error("messages are missing");
  return static_cast<double>(messages * message_bytes) / took;
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

struct Runs {
  int count = 5;
  bool json = false;
  std::string only{};  // a part of the names of the measurements
};

template <class Ours, class Control>
void compare(const char* what, const char* unit, double scale, const Runs& runs, Ours ours,
             Control control) {
  if (std::string_view(what).find(runs.only) == std::string_view::npos) return;
  std::vector<double> our, bare;
  for (int i = 0; i < runs.count; ++i) {
    bare.push_back(control());
    our.push_back(ours());
  }
  if (runs.json)
    std::printf("{\"figure\":\"%s\",\"runs\":%s}\n", what, json_of(our, bare).c_str());
  else
    std::printf("%-22s %8.0f %s, control %8.0f, %3.0f %% of it\n", what, median(our) / scale, unit,
                median(bare) / scale, 100 * median(our) / median(bare));
}

}  // namespace

int main(int argc, char** argv) {
  RecordedAudio audio;
  Runs runs;
  std::string directory = std::filesystem::temp_directory_path() / "millrace_replay_bench";
  bench::Options("Measure replay at --speed max, beside bare loops")
      .add("--directory", directory, "Made, and removed at the end")
      .add("--streams", audio.streams, "Streams, all at once")
      .add("--chunks", audio.chunks, "Chunks of 100 ms of each, even")
      .add("--runs", runs.count, "Runs of each measurement, in turn")
      .add("--only", runs.only, "Measurements whose name has this: workers, f32, ZeroMQ")
      .flag("--json", runs.json, "Print lines of JSON")
      .parse(argc, argv);
  try {
    std::filesystem::remove_all(directory);
    write_recording(directory, audio);
    const BareGather gather(directory, audio);
    for (const auto& [what, dtype] : {std::pair{"workers s16 to s16", Element::s16},
                                      std::pair{"workers s16 to f32", Element::f32}})
      compare(
          what, "k rows/s", 1e3, runs,
          [&, type = dtype] { return replay_to_worker(directory, audio, type); },
          [&, type = dtype] { return gather.run(type); });
    compare(
        "ZeroMQ", "MB/s", 1e6, runs, [&] { return replay_to_router(directory); },
        [&] { return bare_dealer(audio); });
    std::filesystem::remove_all(directory);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "replay_bench: %s\n", error.what());
    return 1;
  }
}
