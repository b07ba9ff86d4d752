// SPDX-License-Identifier: Apache-2.0
#include "monitoring/exporter.h"

#include <catch2/catch.hpp>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

using namespace millrace;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

// A service of two io threads with one pipeline.
struct Service {
  ServiceStats service;
  ThreadStats threads[2];
  TransportStats transports[2];
  StreamStats streams[2];
  LaneStats lanes;
  ZeromqStats sockets;
  WorkerServerStats workers;
  Exporter exporter{{.service = {&service},
                     .threads = {&threads[0], &threads[1]},
                     .websocket = {&transports[0], &transports[1]},
                     .zmq = {},
                     .zmq_sockets = {&sockets},
                     .worker_servers = {&workers},
                     .pipelines = {{"asr", 16000, {&streams[0], &streams[1]}, {&lanes}}}}};

  std::string text(Time now = Time(1000s)) { return exporter.text(now); }
};

std::size_t series(const std::string& text) {
  std::istringstream lines(text);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) count += line[0] != '#';
  return count;
}

}  // namespace

TEST_CASE("counters of all threads are exported as one sum") {
  Service service;
  service.transports[0].opened.add(2);
  service.transports[1].opened.add(3);
  CHECK_THAT(service.text(),
             Contains("# HELP millrace_ingest_connections_opened_total "
                      "Client connections accepted after the handshake.\n"
                      "# TYPE millrace_ingest_connections_opened_total counter\n"
                      "millrace_ingest_connections_opened_total{transport=\"websocket\"} 5\n"
                      "millrace_ingest_connections_opened_total{transport=\"zmq\"} 0\n"));
}

TEST_CASE("every label value is exported from the start") {
  CHECK_THAT(Service().text(),
             Contains("millrace_streams_closed_total{pipeline=\"asr\",reason=\"end\"} 0\n"
                      "millrace_streams_closed_total{pipeline=\"asr\",reason=\"idle\"} 0\n"
                      "millrace_streams_closed_total{pipeline=\"asr\",reason=\"client_gone\"} 0\n"
                      "millrace_streams_closed_total{pipeline=\"asr\",reason=\"error\"} 0\n"
                      "millrace_streams_closed_total{pipeline=\"asr\",reason=\"no_worker\"} 0\n"
                      "millrace_streams_closed_total{pipeline=\"asr\",reason=\"drain\"} 0\n"));
}

TEST_CASE("a fresh text has the present counts, and leaves the text for scrapes as it is") {
  Service service;
  const std::string scraped = service.text(Time(1000s));
  service.streams[0].opened.add();
  CHECK_THAT(service.exporter.fresh_text(Time(1000s)),
             Contains("millrace_streams_opened_total{pipeline=\"asr\"} 1\n"));
  CHECK(service.text(Time(1000s)) == scraped);
}

TEST_CASE("a reset has a reason as label, but never `none`") {
  Service service;
  service.streams[0].resets[ResetReason::start].add();
  const std::string text = service.text();
  CHECK_THAT(text, Contains("millrace_stream_resets_total{pipeline=\"asr\",reason=\"start\"} 1\n"));
  CHECK_THAT(text, !Contains("reason=\"none\""));
}

TEST_CASE("endpoints and changes of a size are exported by their cause and direction") {
  Service service;
  service.streams[0].endpoints[EndpointReason::no_speech].add(2);
  service.streams[1].endpoints_late.add(3);
  service.streams[1].size_changes[SizeChange::down].add(4);
  const std::string text = service.text();
  CHECK_THAT(text, Contains("millrace_endpoints_total{pipeline=\"asr\",by=\"silence\"} 0\n"));
  CHECK_THAT(text, Contains("millrace_endpoints_total{pipeline=\"asr\",by=\"no_speech\"} 2\n"));
  CHECK_THAT(text, Contains("millrace_endpoints_late_total{pipeline=\"asr\"} 3\n"));
  CHECK_THAT(text,
             Contains("millrace_size_changes_total{pipeline=\"asr\",direction=\"down\"} 4\n"));
}

TEST_CASE("histograms are cumulative, in base units, and summed over all threads") {
  Service service;
  service.streams[0].duration.observe(Duration(1s));
  service.streams[1].duration.observe(Duration(2s));
  service.streams[1].duration.observe(Duration(10h));
  CHECK_THAT(service.text(),
             Contains("# TYPE millrace_stream_duration_seconds histogram\n"
                      "millrace_stream_duration_seconds_count{pipeline=\"asr\"} 3\n"
                      "millrace_stream_duration_seconds_sum{pipeline=\"asr\"} 36003\n"
                      "millrace_stream_duration_seconds_bucket{pipeline=\"asr\",le=\"1\"} 1\n"
                      "millrace_stream_duration_seconds_bucket{pipeline=\"asr\",le=\"5\"} 2\n"
                      "millrace_stream_duration_seconds_bucket{pipeline=\"asr\",le=\"15\"} 2\n"
                      "millrace_stream_duration_seconds_bucket{pipeline=\"asr\",le=\"60\"} 2\n"
                      "millrace_stream_duration_seconds_bucket{pipeline=\"asr\",le=\"300\"} 2\n"
                      "millrace_stream_duration_seconds_bucket{pipeline=\"asr\",le=\"900\"} 2\n"
                      "millrace_stream_duration_seconds_bucket{pipeline=\"asr\",le=\"3600\"} 2\n"
                      "millrace_stream_duration_seconds_bucket{pipeline=\"asr\",le=\"14400\"} 2\n"
                      "millrace_stream_duration_seconds_bucket{pipeline=\"asr\",le=\"+Inf\"} 3\n"));
}

TEST_CASE("frames are exported as seconds of audio") {
  Service service;
  service.streams[0].frames.add(24000);
  service.streams[1].frames.add(16000);
  service.streams[1].lost[Loss::gap].add(1600);
  const std::string text = service.text();
  CHECK_THAT(text, Contains("millrace_ingest_audio_seconds_total{pipeline=\"asr\"} 2.5\n"));
  CHECK_THAT(text, Contains("millrace_stream_lost_audio_seconds_total"
                            "{pipeline=\"asr\",reason=\"gap\"} 0.1\n"));
}

TEST_CASE("the stages of a written row add up to its latency") {
  Service service;
  const Instants at{.arrived = Time(1ms),
                    .ready = Time(2ms),
                    .closed = Time(4ms),
                    .copied = Time(8ms),
                    .taken = Time(16ms),
                    .done = Time(32ms),
                    .written = Time(64ms)};
  service.streams[0].done(at);
  service.streams[1].written(at);
  const std::string text = service.text();
  const std::string sum = "millrace_queue_wait_seconds_sum{pipeline=\"asr\",stage=";
  CHECK_THAT(text, Contains(sum + "\"chunk\"} 0.001\n"));
  CHECK_THAT(text, Contains(sum + "\"batch\"} 0.002\n"));
  CHECK_THAT(text, Contains(sum + "\"copy\"} 0.004\n"));
  CHECK_THAT(text, Contains(sum + "\"handover\"} 0.008\n"));
  CHECK_THAT(text, Contains(sum + "\"compute\"} 0.016\n"));
  CHECK_THAT(text, Contains(sum + "\"result\"} 0.032\n"));
  CHECK_THAT(text, Contains("millrace_result_latency_seconds_sum{pipeline=\"asr\"} 0.063\n"));
}

TEST_CASE("a wait of seconds is in a bucket of its size, both in its stage and in the latency") {
  Service service;
  const Instants at{.arrived = Time(0ms),
                    .ready = Time(1ms),
                    .closed = Time(4700ms),
                    .copied = Time(4701ms),
                    .taken = Time(4701ms),
                    .done = Time(4710ms),
                    .written = Time(4711ms)};
  service.streams[0].done(at);
  service.streams[0].written(at);
  const std::string text = service.text();
  const std::string stage =
                        "millrace_queue_wait_seconds_bucket{pipeline=\"asr\",stage=\"batch\",le=",
                    whole = "millrace_result_latency_seconds_bucket{pipeline=\"asr\",le=";
  CHECK_THAT(text, Contains(stage + "\"2.5\"} 0\n") && Contains(stage + "\"10\"} 1\n"));
  CHECK_THAT(text, Contains(whole + "\"2\"} 0\n") && Contains(whole + "\"5\"} 1\n"));
  CHECK_THAT(text, Contains(stage + "\"120\"} 1\n") && Contains(whole + "\"120\"} 1\n"));
}

TEST_CASE(
    "rows that wait for a batch, for their worker and for their client are exported as gauges") {
  Service service;
  service.lanes.items[LaneQueue::batch].set(3);
  service.lanes.items[LaneQueue::worker].set(5);
  service.lanes.capacity[LaneQueue::worker].set(64);
  service.streams[0].results.set(2);
  service.streams[1].results.set(5);
  const std::string text = service.text(), stage = "{pipeline=\"asr\",stage=";
  CHECK_THAT(text, Contains("millrace_queue_items" + stage + "\"batch\"} 3\n" +
                            "millrace_queue_items" + stage + "\"worker\"} 5\n" +
                            "millrace_queue_items" + stage + "\"result\"} 7\n"));
  CHECK_THAT(text, Contains("capacity_items" + stage + "\"worker\"} 64\n"));
}

TEST_CASE("rows between two threads count in the stage that receives them") {
  Service service;
  service.streams[0].rows[RowKind::full].add(10);
  service.streams[1].rows[RowKind::cut].add(2);
  service.streams[1].rows[RowKind::marker].add();
  service.lanes.received.set(9);
  service.lanes.items[LaneQueue::batch].set(3);
  service.lanes.results[ResultStatus::ok].add(5);
  service.lanes.results[ResultStatus::error].add();
  service.lanes.results[ResultStatus::late].add(100);
  service.streams[0].answered.add(3);
  service.streams[1].answered.add();
  service.streams[1].results.set(1);
  const std::string text = service.text(), items = "millrace_queue_items{pipeline=\"asr\",stage=";
  CHECK_THAT(text, Contains(items + "\"batch\"} 7\n"));
  CHECK_THAT(text, Contains(items + "\"worker\"} 0\n"));
  CHECK_THAT(text, Contains(items + "\"result\"} 3\n"));
}

TEST_CASE("slots are exported as used or free") {
  Service service;
  service.lanes.slots[SlotState::used].set(5);
  service.lanes.slots[SlotState::free].set(59);
  CHECK_THAT(service.text(), Contains("millrace_slots{pipeline=\"asr\",state=\"used\"} 5\n"
                                      "millrace_slots{pipeline=\"asr\",state=\"free\"} 59\n"));
}

TEST_CASE("the age of the oldest batch is exported until it is done") {
  Service service;
  service.lanes.oldest.set(to_wire(Time(998s)));
  const std::string age = "millrace_worker_oldest_batch_seconds{pipeline=\"asr\"} ";
  CHECK_THAT(service.text(Time(1000s)), Contains(age + "2\n"));
  service.lanes.oldest.set(0);
  CHECK_THAT(service.text(Time(2000s)), Contains(age + "0\n"));
}

TEST_CASE("the waiting time is exported as a counter of seconds and as a histogram") {
  Service service;
  service.lanes.wait.observe(Duration(250ms));
  service.lanes.wait.observe(Duration(1250ms));
  const std::string text = service.text();
  CHECK_THAT(text, Contains("millrace_worker_wait_seconds_total{pipeline=\"asr\"} 1.5\n"));
  CHECK_THAT(text, Contains("millrace_worker_wait_duration_seconds_count{pipeline=\"asr\"} 2\n"));
}

TEST_CASE("copies that a watcher missed are counted") {
  Service service;
  service.lanes.watcher_misses.add(3);
  CHECK_THAT(service.text(),
             Contains("millrace_watcher_batches_dropped_total{pipeline=\"asr\"} 3\n"));
}

TEST_CASE("without a device, the metrics of devices have no samples") {
  CHECK_THAT(Service().text(), !Contains("device=") && Contains("# TYPE millrace_device_healthy"));
}

TEST_CASE("the slabs of all pipelines are exported as one pool") {
  Service service;
  service.lanes.slabs.used.set(4096);
  service.lanes.slabs.free.set(8192);
  service.lanes.slabs.pageable.set(512);
  service.lanes.slabs.exhausted.add(3);
  service.lanes.slabs.wait.observe(Duration(250ms));
  const std::string text = service.text();
  CHECK_THAT(text, Contains("millrace_pinned_pool_bytes{state=\"used\"} 4096\n"
                            "millrace_pinned_pool_bytes{state=\"free\"} 8192\n"));
  CHECK_THAT(text, Contains("\nmillrace_pageable_slab_bytes 512\n"));
  CHECK_THAT(text, Contains("\nmillrace_pinned_pool_exhausted_total 3\n"));
  CHECK_THAT(text, Contains("\nmillrace_pinned_pool_acquire_wait_seconds_sum 0.25\n"));
}

TEST_CASE("the version of CUDA is exported") {
  CHECK_THAT(Service().text(), Contains("cuda=\"none\""));
  Sources sources;
  sources.cuda = "13.0";
  CHECK_THAT(Exporter(sources).text(Time(1s)), Contains("cuda=\"13.0\""));
}

TEST_CASE("the connections of the ZeroMQ port are counted apart from its messages") {
  Service service;
  service.sockets.connections.set(1);
  service.sockets.opened.add(2);
  service.sockets.would_block.add(3);
  service.sockets.disconnected.add(4);
  service.sockets.malformed.add(5);
  service.sockets.refused[Refusal::handshake].add(6);
  const std::string text = service.text();
  for (const char* line : {"connections 1", "connections_opened_total 2", "sends_blocked_total 3",
                           "connections_closed_total 4", "messages_malformed_total 5",
                           "connections_rejected_total{reason=\"handshake\"} 6",
                           "connections_rejected_total{reason=\"limit_global\"} 0"})
    CHECK_THAT(text, Contains("\nmillrace_zmq_" + std::string(line) + "\n"));
}

TEST_CASE("refused connections of workers are counted by their reason") {
  Service service;
  service.workers.refused[WorkerRefusal::limit_global].add(7);
  service.workers.refused[WorkerRefusal::handshake].add(8);
  const std::string text = service.text(), name = "\nmillrace_worker_connections_rejected_total";
  CHECK_THAT(text, Contains(name + "{reason=\"limit_global\"} 7\n"));
  CHECK_THAT(text, Contains(name + "{reason=\"handshake\"} 8\n"));
}

TEST_CASE("the text is collected at most once per second") {
  Service service;
  const std::string first = service.text(Time(1000s));
  service.transports[0].opened.add();
  CHECK(service.text(Time(1000s) + 999ms) == first);
  CHECK_THAT(service.text(Time(1001s)),
             Contains("millrace_ingest_connections_opened_total{transport=\"websocket\"} 1\n"));
}

TEST_CASE("memory, threads, descriptors and CPU time of the process are exported") {
  const std::string text = Service().text();
  const auto value = [&](const std::string& name) {
    const auto at = text.find("\n" + name + " ");
    REQUIRE(at != std::string::npos);
    return std::stod(text.substr(at + name.size() + 2));
  };
  CHECK(value("process_resident_memory_bytes") > 1e6);
  CHECK(value("process_threads") >= 1);
  CHECK(value("process_open_fds") >= 3);
  CHECK(value("process_max_fds") >= value("process_open_fds"));
  CHECK(value("process_start_time_seconds") > 1.7e9);
  CHECK(value("process_cpu_seconds_total") >= 0);
}

TEST_CASE("a pipeline has at most 290 series, a device 32, and the rest 250") {
  ServiceStats service;
  TransportStats transport;
  ThreadStats thread;
  StreamStats streams;
  LaneStats lanes;
  lanes.copies = std::vector<CopyStats>(1);
  DeviceStats device;
  Sources sources{.service = {&service},
                  .threads = {&thread},
                  .websocket = {&transport},
                  .zmq = {&transport},
                  .zmq_sockets = {},
                  .pipelines = {{"a", 16000, {&streams}, {&lanes}}}};
  const std::size_t one = series(Exporter(sources).text(Time(1s)));
  sources.pipelines.push_back({"b", 16000, {&streams}, {&lanes}});
  const std::size_t two = series(Exporter(sources).text(Time(1s)));
  sources.pipelines.push_back({"c", 16000, {&streams}, {&lanes}});
  const std::size_t three = series(Exporter(sources).text(Time(1s)));
  sources.pipelines.pop_back();
  sources.devices.push_back({"cuda:0", {&device}});
  const std::size_t with_device = series(Exporter(sources).text(Time(1s)));
  const std::size_t pipeline = two - one;
  INFO("per pipeline " << pipeline << ", fixed " << one - pipeline << ", per device "
                       << with_device - two);
  CHECK(pipeline <= 290);
  CHECK(one - pipeline <= 250);
  CHECK(with_device - two <= 32);
  CHECK(three <= 2000);
}

TEST_CASE("the exported text is printed for promtool", "[.text]") {
  Service service;
  service.streams[0].latency.observe(Duration(20ms));
  std::cout << service.text();
}
