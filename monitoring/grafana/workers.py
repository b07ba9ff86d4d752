# SPDX-License-Identifier: Apache-2.0
"""Do workers keep up, and do they fail?"""
from frame import made
from panels import RED, heat, lines, number, quantiles, rates, totals

BATCHES = "sum(rate(millrace_batches_total{@}[@]))"
STATE = [
    number("Workers", "short", "Attached workers, in the pipeline with the fewest. At 0, its clients get no results. [Runbook](${runbooks}/MillraceNoWorker.md)", "min(sum by (pipeline) (millrace_workers{@}))", width=4),
    number("Slots in use", "percentunit", "Share of slots that hold a stream, in the fullest pipeline. At 100 %, its new streams are refused. [Runbook](${runbooks}/MillraceRejectsHigh.md)",
           'max(sum by (pipeline) (millrace_slots{@,state="used"}) / (sum by (pipeline) (millrace_slots{@}) > 0))', width=4, limits={0.8: "yellow", 0.95: RED}),
    number("Batches per second", "cps", "Batches that were closed and handed over to workers.", BATCHES, width=4),
    number("Rows per batch", "short", "Mean number of rows with frames. More rows take less time per row.",
           f"sum(rate(millrace_batch_rows_total{{@}}[@])) / {BATCHES}", width=4),
    number("Oldest batch", "s", "Age of the oldest batch that is not done. After 10 s its worker is evicted. [Runbook](${runbooks}/MillraceWorkerStalled.md)",
           "max(millrace_worker_oldest_batch_seconds{@})", width=4, limits={1: "yellow", 5: RED}),
    number("Lost in the last hour", "short", "Workers that were lost: the process ended, no answer in time, or invalid messages.",
           "sum(increase(millrace_worker_failures_total{@}[1h]))", width=4, limits={1: "yellow"}),
]
ROOM = [
    totals("Attached workers", "short", "millrace_workers", "pipeline", "Workers by pipeline. [Runbook](${runbooks}/MillraceNoWorker.md)"),
    lines("Slots", "short", "Used and free slots. A slot holds a stream. Without free slots new streams are refused.",
          ("sum by (pipeline, state) (millrace_slots{@})", "{{pipeline}} {{state}}"), stacked=True),
    rates("Lost workers", "millrace_worker_failures_total", "reason", "`timeout`: no answer or heartbeat in time. `disconnect`: the process ended. `protocol`: invalid messages. "
          "[Runbook](${runbooks}/MillraceWorkerStalled.md)"),
]
COMPUTE = [
    heat("Time per batch", "s", "From batch taken to batch done. Two bands mean batches of different sizes, or a worker that stalls.", "millrace_worker_compute_duration_seconds_bucket"),
    quantiles("Percentiles of the time per batch", "millrace_worker_compute_duration_seconds", "If p99.9 is far above p99, single batches stall.", at=(0.5, 0.99, 0.999)),
    lines("Oldest batch not done", "s", "A rising line: a worker hangs. At 10 s it is evicted. [Runbook](${runbooks}/MillraceWorkerStalled.md)",
          ("max by (pipeline) (millrace_worker_oldest_batch_seconds{@})", "{{pipeline}}"), width=6),
]
LOAD = [
    lines("Rows handed over", "short", "Rows that workers hold, and their capacity.", ('sum by (pipeline) (millrace_queue_items{@,stage="worker"})', "{{pipeline}}"),
          ('sum by (pipeline) (millrace_queue_capacity_items{@,stage="worker"})', "capacity of {{pipeline}}")),
    totals("Batches in flight", "short", "millrace_worker_inflight_batches", "pipeline", "Batches that workers hold. If this is always at the number of credits, workers are the bottleneck."),
    lines("Occupancy", "percentunit", "Share of the rows that batches could hold. Near 1, workers are full. Near 0, they have time left.",
          ("sum by (pipeline) (rate(millrace_batch_rows_total{@}[@])) / sum by (pipeline) (rate(millrace_batch_rows_offered_total{@}[@]))", "{{pipeline}}"), most=1),
    lines("Time without a batch", "percentunit", "Share of their time that workers wait for rows, counted when a wait ends. If it is high, there is room for more streams.",
          ("sum by (pipeline) (rate(millrace_worker_wait_seconds_total{@}[@])) / (sum by (pipeline) (millrace_workers{@}) > 0)", "{{pipeline}}")),
    heat("Waits for a batch", "s", "Time that workers without a batch wait for the next one.", "millrace_worker_wait_duration_seconds_bucket", width=8),
    rates("Rows per second", "millrace_batch_rows_total", "pipeline", "Rows with frames that workers receive."),
]
ANSWERS = [
    rates("Answers", "millrace_results_total", "status", "`error`: the worker failed on a row. `late`: answers to a batch that was done before, which are ignored."),
    rates("Batches that watchers missed", "millrace_watcher_batches_dropped_total", "pipeline", "A watcher (`millrace tap` beside a worker) that is too slow misses batches. Streams are not affected."),
    rates("Refused connections", "millrace_worker_connections_rejected_total", "reason",
          "`handshake`: no Hello in time, or one with a wrong version or pipeline; TCP health checks count here. `limit_global`: too many TCP connections."),
]


def board():
    return made("workers", "workers", "Do workers keep up, and do they fail?",
                [("", STATE), ("Workers and slots", ROOM), ("Compute", COMPUTE), ("Load", LOAD), ("Answers", ANSWERS)])
