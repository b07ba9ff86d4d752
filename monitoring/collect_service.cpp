// SPDX-License-Identifier: Apache-2.0
#include "monitoring/build.h"
#include "monitoring/collect.h"

namespace millrace {

namespace {

void collect_connections(const Shards<DoorStats>& shards, const Labels& labels, Families& into) {
  into.begin_gauge("millrace_ingest_connections", "Open client connections.");
  into.add(labels, sum(shards, &DoorStats::connections));
  into.begin_counter("millrace_ingest_connections_opened_total",
                     "Client connections accepted after the handshake.");
  into.add(labels, sum(shards, &DoorStats::opened));
  into.begin_counter("millrace_ingest_connections_rejected_total",
                     "Connections refused before a stream was opened.");
  add_each(into, labels, "reason", shards, &DoorStats::refused);
  into.begin_counter("millrace_ingest_connections_closed_total", "Connections closed.");
  add_each(into, labels, "reason", shards, &DoorStats::closed);
  into.begin_histogram("millrace_ingest_handshake_duration_seconds",
                       "TCP accept to handshake done.");
  into.add(labels, histograms(shards, &DoorStats::handshake), per_second);
}

void collect_messages(const Shards<DoorStats>& shards, const Labels& labels, Families& into) {
  into.begin_counter("millrace_ingest_messages_total", "Messages received and accepted.");
  add_each(into, labels, "type", shards, &DoorStats::messages);
  into.begin_counter("millrace_ingest_messages_rejected_total", "Messages refused by validation.");
  add_each(into, labels, "reason", shards, &DoorStats::rejected);
  into.begin_counter("millrace_ingest_received_bytes_total", "Payload bytes received.");
  into.add(labels, sum(shards, &DoorStats::received));
  into.begin_histogram("millrace_ingest_message_size_bytes", "Size of accepted messages.");
  into.add(labels, histograms(shards, &DoorStats::message));
  into.begin_histogram("millrace_ingest_parse_duration_seconds", "Validation of one message.");
  into.add(labels, histograms(shards, &DoorStats::parse), per_second);
}

void collect_back_pressure(const Shards<DoorStats>& shards, const Labels& labels, Families& into) {
  into.begin_gauge("millrace_ingest_paused_connections",
                   "Connections whose reads are paused by back-pressure.");
  into.add(labels, sum(shards, &DoorStats::paused));
  into.begin_counter("millrace_ingest_paused_seconds_total",
                     "Time connections spent with reads paused.");
  into.add(labels, sum(shards, &DoorStats::paused_time) / per_second);
  into.begin_gauge("millrace_send_buffer_bytes", "Bytes waiting to be sent to clients.");
  into.add(labels, sum(shards, &DoorStats::send_buffer));
}

void collect_build(Families& into) {
  const Build is = build();
  into.begin_gauge("millrace_build_info", "Build information, always 1.");
  into.add({{"version", std::string(is.version)},
            {"revision", std::string(is.revision)},
            {"compiler", std::string(is.compiler)},
            {"cuda", std::string(is.cuda)}},
           1);
}

}  // namespace

void collect_doors(const Shards<DoorStats>& websocket, Families& into) {
  const Labels labels{{"transport", "websocket"}};
  collect_connections(websocket, labels, into);
  collect_messages(websocket, labels, into);
  collect_back_pressure(websocket, labels, into);
}

void collect_service(const Sources& sources, Families& into) {
  collect_build(into);
  into.begin_gauge("millrace_ready", "1 while the readiness probe answers 200.");
  into.add({}, sum(sources.service, &ServiceStats::ready));
  into.begin_gauge("millrace_draining", "1 after SIGTERM until exit.");
  into.add({}, sum(sources.service, &ServiceStats::draining));
  into.begin_gauge("millrace_chunk_buffer_limit_bytes", "Configured limit of chunk buffers.");
  into.add({}, sum(sources.service, &ServiceStats::buffer_limit));
  into.begin_histogram("millrace_event_loop_lag_seconds",
                       "Delay of a periodic timer on an I/O thread.");
  into.add({}, histograms(sources.threads, &ThreadStats::lag), per_second);
  into.begin_counter("millrace_clock_jumps_total",
                     "Wall-clock steps over 0.5 s against the monotonic clock.");
  add_each(into, {}, "direction", sources.service, &ServiceStats::jumps);
  into.begin_counter("millrace_log_messages_total", "Log lines by level.");
  add_each(into, {}, "level", sources.threads, &ThreadStats::logged);
}

}  // namespace millrace
