# SPDX-License-Identifier: Apache-2.0
"""Is the service well? Rate, errors, durations, and links to further dashboards and runbooks."""
from frame import made
from panels import GREEN, RED, YELLOW, lines, named, number, quantiles, rates, rows_of

STATE = [
    number("Ready", "none", "*yes*: all instances accept new streams (`/readyz` answers 200). *no*: at least one does not, and load balancers send no clients there; "
           "its `/readyz` gives the reasons. [Runbook](${runbooks}/MillraceNoWorker.md)", "min(millrace_ready{@})",
           limits={}, texts={"0": ("no", RED), "1": ("yes", GREEN)}),
    number("Instances draining", "none", "Instances that stop after SIGTERM. Normal during a rollout, for up to `drain`.",
           "sum(millrace_draining{@})", limits={1: YELLOW}),
    number("Open streams", "short", "Streams of clients that are open now.", "sum(millrace_streams{@})"),
    number("Free slots", "short", "Further streams that the attached workers can hold, in the pipeline with the fewest. At 0, its new streams are "
           "refused with `no_room`. [Runbook](${runbooks}/MillraceRejectsHigh.md)", 'min(sum by (pipeline) (millrace_slots{@,state="free"}))'),
    number("Workers", "short", "Attached workers, in the pipeline with the fewest. At 0, its clients get no results. [Runbook](${runbooks}/MillraceNoWorker.md)",
           "min(sum by (pipeline) (millrace_workers{@}))"),
    number("Signal per second", "none", "Seconds of signal accepted per second. Equals the number of live streams if clients send in real time.",
           "sum(rate(millrace_ingest_audio_seconds_total{@}[@]))"),
    number("Latency p99", "s", "99th percentile from reading the last frame of a row to writing its result. Red above 0.3 s. "
           "[Runbook](${runbooks}/MillraceResultLatencyHigh.md)",
           "histogram_quantile(0.99, sum by (le) (rate(millrace_result_latency_seconds_bucket{@}[@])))", limits={0.3: RED}),
    named("Versions", "Versions that run now. More than one: a rollout is under way.", "count by (version) (millrace_build_info{@})", "{{version}}"),
]
ALERTS = [
    rows_of("Firing alerts", "Alerts of Millrace that fire now. Click a row to open its runbook.",
            'ALERTS{@,alertname=~"Millrace.*",alertstate="firing"}', ("Runbook", "${runbooks}/${__data.fields.alertname}.md")),
    lines("Actions against memory pressure", "none", "1 while the action is active because memory is short. [Runbook](${runbooks}/MillraceOverloaded.md)",
          ("max by (action) (millrace_overload_action_active{@})", "{{action}}"), width=12, most=1),
]
RATE = [
    lines("Streams by pipeline", "short", "Open streams. A sudden fall on one instance: a restart or a lost network.",
          ("sum by (pipeline) (millrace_streams{@})", "{{pipeline}}"), stacked=True),
    lines("Signal per second by pipeline", "none", "Seconds of signal accepted per second. Below the number of streams: clients are paused, or do not send in real time.",
          ("sum by (pipeline) (rate(millrace_ingest_audio_seconds_total{@}[@]))", "{{pipeline}}"), stacked=True),
    rates("Results by status", "millrace_results_total", "status",
          "Results per second. `error`: the worker failed on a row. `late`: an answer to a batch that was done before, which is ignored."),
]
DURATION = [
    quantiles("Chunk to result", "millrace_result_latency_seconds", "From reading the last frame of a row to writing its result. The alert fires above 0.3 s. "
              "[Runbook](${runbooks}/MillraceResultLatencyHigh.md)", width=12, limits={0.3: RED}),
    lines("Mean wait by stage", "s", "Where a row spends its time. The largest part shows the cause of a high latency. The dashboard *pipeline* has a row for each stage.",
          ("sum by (stage) (rate(millrace_queue_wait_seconds_sum{@}[@])) / sum by (stage) (rate(millrace_queue_wait_seconds_count{@}[@]))", "{{stage}}"),
          width=12, stacked=True),
]
ERRORS = [
    rates("Refused connections and streams", "millrace_ingest_connections_rejected_total", "reason",
          "By reason. `no_room`: all slots are taken. `handshake`: TCP health checks count here. [Runbook](${runbooks}/MillraceRejectsHigh.md)"),
    lines("Streams that ended early", "cps", "Streams that did not end by their client's `end`. `no_worker`: no worker was available in time. `error`: the event `stream ended` in the log has the code.",
          ('sum by (reason) (rate(millrace_streams_closed_total{@,reason!="end"}[@]))', "{{reason}}")),
    lines("Unexpected resets", "cps", "Streams that lost their state. Their results are worse for some seconds. [Runbook](${runbooks}/MillraceUnexpectedStateResets.md)",
          ('sum by (reason) (rate(millrace_stream_resets_total{@,reason=~"gap|overflow|worker_lost"}[@]))', "{{reason}}")),
    lines("Lost signal", "none", "Seconds of signal lost per second. `overflow`: dropped under load by `shed_after`. `gap`: reported by clients. `rejected`: in refused messages. "
          "[Runbook](${runbooks}/MillraceFramesShed.md)", ("sum by (reason) (rate(millrace_stream_lost_audio_seconds_total{@}[@]))", "{{reason}}")),
    rates("Lost workers", "millrace_worker_failures_total", "reason",
          "By reason. `timeout`: a worker did not answer. `protocol`: it sent invalid messages. [Runbook](${runbooks}/MillraceWorkerStalled.md)"),
    rates("Results not delivered", "millrace_results_dropped_total", "reason",
          "`stream_closed`: the client has gone. `slow_reader`: the client did not read for 10 s."),
]


def board():
    return made("overview", "overview", "Is the service well? Rates, errors and durations of all pipelines.",
                [("", STATE), ("Alerts", ALERTS), ("Load", RATE), ("Latency", DURATION), ("Errors", ERRORS)])
