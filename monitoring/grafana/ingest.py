# SPDX-License-Identifier: Apache-2.0
"""Messages and streams of clients, accepted and refused."""
from frame import made
from panels import heat, lines, quantiles, rates, totals

CONNECTIONS = [
    totals("Connections", "short", "millrace_ingest_connections", "transport", "Open connections of clients. Over ZeroMQ one connection carries many streams.", stacked=True),
    rates("Opened", "millrace_ingest_connections_opened_total", "transport", "New connections per second. Bursts after a restart: clients do not wait for a random time before they connect again."),
    rates("Refused", "millrace_ingest_connections_rejected_total", "reason", "`no_room`: no free slot. `limit_global`: `[limits] connections` is reached. `limit_address`: one address has too many. `handshake`: no valid upgrade; TCP health checks count here. `unauthenticated`: no accepted token. "
          "[Runbook](${runbooks}/MillraceRejectsHigh.md)"),
    rates("Closed", "millrace_ingest_connections_closed_total", "reason", "`client`: normal. `idle`: silent for 30 s. `slow_reader`: did not read for 10 s. `protocol`, `too_big`: faulty clients. `internal`: a fault of the service."),
    quantiles("Handshake", "millrace_ingest_handshake_duration_seconds", "From TCP accept to the end of the WebSocket upgrade. If it is high, networks are slow, or io threads lack CPU.", width=8),
    lines("Paused connections", "short", "Connections that the service does not read, because their streams are behind. If this stays above 0, workers are too slow. "
          "[Runbook](${runbooks}/MillraceResultLatencyHigh.md)", ("sum(millrace_ingest_paused_connections{@})", "paused"), ("sum(rate(millrace_ingest_paused_seconds_total{@}[@]))", "paused seconds/s")),
]
MESSAGES = [
    rates("Messages", "millrace_ingest_messages_total", "type", "Accepted messages by type. `control`: flush, reset, gap and keepalive."),
    rates("Refused messages", "millrace_ingest_messages_rejected_total", "reason", "Messages refused by validation. Their frames become a gap. `nonfinite`: NaN or infinity. `position`: frames at a wrong position. "
          "[Runbook](${runbooks}/MillraceUnexpectedStateResets.md)"),
    rates("Bytes", "millrace_ingest_received_bytes_total", "transport", "Payload bytes received per second.", "Bps"),
    heat("Message size", "bytes", "Sizes of accepted messages. Small messages take more CPU per second of signal.", "millrace_ingest_message_size_bytes_bucket"),
    quantiles("Validation of a message", "millrace_ingest_parse_duration_seconds", "Time to validate one message on an io thread. Over WebSocket only text messages are measured.", at=(0.5, 0.99), by="transport", width=12),
]
STREAMS = [
    rates("Signal", "millrace_ingest_audio_seconds_total", "pipeline", "Seconds of signal accepted per second.", "none"),
    rates("Opened streams", "millrace_streams_opened_total", "pipeline", "New streams per second."),
    rates("Closed streams", "millrace_streams_closed_total", "reason", "`end`: normal. `client_gone`: the connection was lost. `no_worker`, `error`: the event `stream ended` in the log has the reason. [Runbook](${runbooks}/MillraceNoWorker.md)"),
    heat("Duration of streams", "s", "Age of streams when they close. Many short ones: clients fail and connect again.", "millrace_stream_duration_seconds_bucket"),
    rates("Resets", "millrace_stream_resets_total", "reason", "`start` and `client` are normal. [Runbook](${runbooks}/MillraceUnexpectedStateResets.md)", width=6),
    rates("Lost signal", "millrace_stream_lost_audio_seconds_total", "reason", "Seconds of signal lost per second. `gap`: reported by clients. `overflow`: dropped by `shed_after`. `rejected`: in refused messages. [Runbook](${runbooks}/MillraceFramesShed.md)", "none", width=6),
    rates("Endpoints", "millrace_endpoints_total", "by", "Segments that ended without the client. Many by `length`: speakers do not pause, or the voice detector takes noise for speech.", width=6),
    rates("Size changes", "millrace_size_changes_total", "direction", "Changes of a stream's chunk size. Under `adaptive`, `up` means that rows wait for workers.", width=6),
    rates("Clamped values", "millrace_ingest_values_clamped_total", "pipeline", "Values clamped to the range of the pipeline. Many: clients use another scale, for example f32 audio that was not divided by 32768."),
    totals("Bytes to send", "bytes", "millrace_send_buffer_bytes", "transport", "Bytes of results that clients have not read yet."),
    rates("Results not delivered", "millrace_results_dropped_total", "reason", "`stream_closed`: the client has gone. `slow_reader`: the client does not read."),
]
ZEROMQ = [
    lines("ZeroMQ connections", "short", "TCP connections of the ZeroMQ port.", ("sum(millrace_zmq_connections{@})", "connections"), width=6),
    lines("Opened and closed", "cps", "Connections that completed their handshake, and those that ended.", ("sum(rate(millrace_zmq_connections_opened_total{@}[@]))", "opened"),
          ("sum(rate(millrace_zmq_connections_closed_total{@}[@]))", "closed"), width=6),
    rates("Refused", "millrace_zmq_connections_rejected_total", "reason", "`handshake`: a peer that does not speak ZeroMQ, uses a name twice, or sends nothing in time. TCP health checks count here.", width=6),
    lines("Malformed and blocked messages", "cps", "`malformed`: messages of several parts. `blocked`: messages that had to wait for their peer to read.",
          ("sum(rate(millrace_zmq_messages_malformed_total{@}[@]))", "malformed"), ("sum(rate(millrace_zmq_sends_blocked_total{@}[@]))", "blocked"), width=6),
]


def board():
    return made("ingest", "ingest", "Messages and streams of clients, accepted and refused.",
                [("Connections", CONNECTIONS), ("Messages", MESSAGES), ("Streams", STREAMS), ("ZeroMQ", ZEROMQ)])
