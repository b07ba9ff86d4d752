// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "monitoring/build.h"
#include "monitoring/collect.h"

namespace millrace {

namespace {

// The clients of one transport.
struct Transport {
  Labels labels;
  const Shards<TransportStats>& shards;
};
using Transports = std::span<const Transport>;

void add_gauge(Transports transports, Gauge TransportStats::*which, Families& into) {
  for (const auto& [labels, shards] : transports) into.add(labels, sum(shards, which));
}
void add_counter(Transports transports, Counter TransportStats::*which, Families& into,
                 double per = 1) {
  for (const auto& [labels, shards] : transports) into.add(labels, sum(shards, which) / per);
}
void add_histogram(Transports transports, Histogram TransportStats::*which, Families& into,
                   double per = 1) {
  for (const auto& [labels, shards] : transports) into.add(labels, histograms(shards, which), per);
}
template <class Enum>
void add_reasons(Transports transports, Labelled<Counter, Enum> TransportStats::*which,
                 std::string_view key, Families& into) {
  for (const auto& [labels, shards] : transports) add_each(into, labels, key, shards, which);
}

// The ZeroMQ socket refuses some connections before TransportStats counts them.
void collect_refusals(Transports transports, const Shards<ZeromqStats>& sockets, Families& into) {
  into.begin_counter("millrace_ingest_connections_rejected_total",
                     "Connections refused before a stream was opened.");
  for (const auto& [labels, shards] : transports)
    for (const Refusal reason : values_of<Refusal>()) {
      const auto refused = [&](const auto& stats) -> const Counter& {
        return stats.refused[reason];
      };
      Labels all = labels;
      all.push_back({"reason", std::string(name_of(reason))});
      const bool zmq = &shards == &transports.back().shards;
      into.add(std::move(all), sum(shards, refused) + (zmq ? sum(sockets, refused) : 0));
    }
}

void collect_connections(Transports transports, const Shards<ZeromqStats>& sockets,
                         Families& into) {
  into.begin_gauge("millrace_ingest_connections", "Open client connections.");
  add_gauge(transports, &TransportStats::connections, into);
  into.begin_counter("millrace_ingest_connections_opened_total",
                     "Client connections accepted after the handshake.");
  add_counter(transports, &TransportStats::opened, into);
  collect_refusals(transports, sockets, into);
  into.begin_counter("millrace_ingest_connections_closed_total", "Client connections closed.");
  add_reasons(transports, &TransportStats::closed, "reason", into);
}

void collect_messages(Transports transports, Families& into) {
  into.begin_counter("millrace_ingest_messages_total", "Messages received and accepted.");
  add_reasons(transports, &TransportStats::messages, "type", into);
  into.begin_counter("millrace_ingest_messages_rejected_total", "Messages refused by validation.");
  add_reasons(transports, &TransportStats::rejected, "reason", into);
  into.begin_counter("millrace_ingest_received_bytes_total", "Payload bytes received.");
  add_counter(transports, &TransportStats::received, into);
  into.begin_histogram("millrace_ingest_message_size_bytes", "Size of accepted messages.");
  add_histogram(transports, &TransportStats::message, into);
  into.begin_histogram("millrace_ingest_parse_duration_seconds", "Time to validate one message.");
  add_histogram(transports, &TransportStats::parse, into, per_second);
  into.begin_gauge("millrace_send_buffer_bytes", "Bytes waiting to be sent to clients.");
  add_gauge(transports, &TransportStats::send_buffer, into);
}

// Figures of WebSocket connections only. ZeroMQ connections have separate families.
void collect_sockets(const Transport& websocket, Families& into) {
  const Transports transports(&websocket, 1);
  into.begin_histogram("millrace_ingest_handshake_duration_seconds",
                       "Time from TCP accept to the completed handshake.");
  add_histogram(transports, &TransportStats::handshake, into, per_second);
  into.begin_gauge("millrace_ingest_paused_connections",
                   "Connections whose reads are paused by back-pressure.");
  add_gauge(transports, &TransportStats::paused, into);
  into.begin_gauge("millrace_ingest_waiting_connections", "Connections without a stream.");
  add_gauge(transports, &TransportStats::waiting, into);
  into.begin_counter("millrace_ingest_paused_seconds_total",
                     "Time connections spent with reads paused.");
  add_counter(transports, &TransportStats::paused_time, into, per_second);
}

// The TCP connections of the ZeroMQ port, which TransportStats does not count.
void collect_sockets(const Shards<ZeromqStats>& sockets, Families& into) {
  const auto counter = [&](Counter ZeromqStats::*which) { into.add({}, sum(sockets, which)); };
  into.begin_gauge("millrace_zmq_connections", "TCP connections of the ZeroMQ port.");
  into.add({}, sum(sockets, &ZeromqStats::connections));
  into.begin_counter("millrace_zmq_connections_opened_total",
                     "Connections of the ZeroMQ port that completed their handshake.");
  counter(&ZeromqStats::opened);
  into.begin_counter("millrace_zmq_connections_rejected_total",
                     "Connections of the ZeroMQ port refused before their first message.");
  // A ZeroMQ socket counts only these reasons in this family.
  for (const Refusal reason : {Refusal::limit_global, Refusal::handshake})
    into.add({{"reason", std::string(name_of(reason))}},
             sum_of(sockets, &ZeromqStats::refused, reason));
  into.begin_counter("millrace_zmq_connections_closed_total",
                     "Connections of the ZeroMQ port that ended, refused ones included.");
  counter(&ZeromqStats::disconnected);
  into.begin_counter(
      "millrace_zmq_messages_malformed_total",
      "Messages of several parts, which are dropped. If one exceeds the size limit by "
      "256 KiB, its connection ends.");
  counter(&ZeromqStats::malformed);
  into.begin_counter("millrace_zmq_sends_blocked_total",
                     "Messages that had to wait for their peer to read.");
  counter(&ZeromqStats::would_block);
}

void collect_build(const Sources& sources, Families& into) {
  const Build is = build();
  into.begin_gauge("millrace_build_info", "Build information, always 1.");
  into.add({{"version", std::string(is.version)},
            {"revision", std::string(is.revision)},
            {"compiler", std::string(is.compiler)},
            {"cuda", sources.cuda}},
           1);
}

// Without TLS nothing: 0 would be a certificate that has expired.
void collect_certificate(const Sources& sources, Families& into) {
  if (sum(sources.service, &ServiceStats::certificate_expires) == 0) return;
  into.begin_gauge("millrace_tls_certificate_expiry_seconds",
                   "Unix time at which the TLS certificate expires, or one that came with it.");
  into.add({}, sum(sources.service, &ServiceStats::certificate_expires));
}

}  // namespace

void collect_transports(const Sources& sources, Families& into) {
  const std::array<Transport, 2> transports{
      {{{{"transport", "websocket"}}, sources.websocket}, {{{"transport", "zmq"}}, sources.zmq}}};
  collect_connections(transports, sources.zmq_sockets, into);
  collect_messages(transports, into);
  collect_sockets(transports.front(), into);
  collect_sockets(sources.zmq_sockets, into);
  into.begin_counter("millrace_worker_connections_rejected_total",
                     "Connections of workers refused before their Hello was accepted.");
  add_each(into, {}, "reason", sources.worker_servers, &WorkerServerStats::refused);
}

void collect_service(const Sources& sources, Families& into) {
  collect_build(sources, into);
  into.begin_gauge("millrace_ready", "1 while the readiness probe answers 200.");
  into.add({}, sum(sources.service, &ServiceStats::ready));
  into.begin_gauge("millrace_draining", "1 from SIGTERM until the process exits.");
  into.add({}, sum(sources.service, &ServiceStats::draining));
  into.begin_gauge("millrace_config_last_reload_successful",
                   "1 if the last reload succeeded. The start counts as a reload.");
  into.add({}, sum(sources.service, &ServiceStats::reloaded));
  into.begin_gauge("millrace_config_last_reload_success_timestamp_seconds",
                   "Unix time of the last successful reload, or of the start.");
  into.add({}, sum(sources.service, &ServiceStats::reloaded_at));
  collect_certificate(sources, into);
  into.begin_gauge("millrace_chunk_buffer_limit_bytes",
                   "Upper bound of the frame buffers, computed from the configuration.");
  into.add({}, sum(sources.service, &ServiceStats::buffer_limit));
  into.begin_gauge("millrace_memory_limit_bytes", "Memory available to the process.");
  into.add({}, sum(sources.service, &ServiceStats::memory_limit));
  into.begin_gauge("millrace_overload_action_active",
                   "1 while this action is active because memory is short.");
  add_each(into, {}, "action", sources.service, &ServiceStats::overload, Overload::reject_streams);
  into.begin_histogram("millrace_event_loop_lag_seconds",
                       "Delay of a periodic timer on an io thread.");
  into.add({}, histograms(sources.threads, &ThreadStats::lag), per_second);
  into.begin_counter("millrace_clock_jumps_total", "Steps of the wall clock by more than 0.5 s.");
  add_each(into, {}, "direction", sources.service, &ServiceStats::jumps);
  into.begin_counter("millrace_log_messages_total", "Log lines by level.");
  add_each(into, {}, "level", sources.threads, &ThreadStats::logged, LogLevel::warning);
  into.begin_counter("millrace_log_lines_dropped_total",
                     "Log lines dropped because they came too fast or could not be written.");
  into.add({}, sum(sources.log, &LogStats::dropped));
}

}  // namespace millrace
