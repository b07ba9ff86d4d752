# SPDX-License-Identifier: Apache-2.0
"""Where the time goes: a row per stage of DESIGN, from reading the last frame of a row to writing its result."""
from frame import made
from panels import RED, heat, lines, quantiles, rates, totals

WAIT = "millrace_queue_wait_seconds"


def waits(stage, meaning):
    """Heat map and percentiles of the wait in a stage."""
    return [heat(f"Wait in {stage}", "s", f"How long rows spend in the stage `{stage}`: {meaning}", f'{WAIT}_bucket{{@,stage="{stage}"}}'),
            quantiles(f"Percentiles of {stage}", WAIT, f"The same as percentiles. {meaning}", f',stage="{stage}"', at=(0.5, 0.99))]


def depth(stage, description):
    """Rows in a stage against its capacity."""
    return lines(f"Rows in {stage}", "short", description,
                 (f'sum by (pipeline) (millrace_queue_items{{@,stage="{stage}"}})', "{{pipeline}}"),
                 (f'sum by (pipeline) (millrace_queue_capacity_items{{@,stage="{stage}"}})', "capacity of {{pipeline}}"), width=6)


WHOLE = [
    heat("Chunk to result", "s", "All stages together: from reading the last frame of a row to writing its result.", "millrace_result_latency_seconds_bucket"),
    quantiles("Percentiles of chunk to result", "millrace_result_latency_seconds", "The alert fires above 0.3 s. [Runbook](${runbooks}/MillraceResultLatencyHigh.md)", limits={0.3: RED}),
    quantiles("p99 by stage", WAIT, "The stage with the largest value is the one to look at below.", at=(0.99,), by="stage"),
]
CHUNK = waits("chunk", "until the row is cut. High only if an io thread is late: see the loop lag on the dashboard *process*.") + [
    rates("Rows cut", "millrace_chunks_total", "kind", "`cut` rows end a segment and are shorter; many of them cost padding. `marker` rows have no frames.", width=6),
    lines("Frame buffers", "bytes", "Bytes of frames that wait in streams, of all pipelines. Growing: workers are too slow, and clients are paused in the end.",
          ("sum by (instance) (millrace_chunk_buffer_bytes{@})", "{{instance}}"), width=12),
    rates("Signal read per second", "millrace_ingest_audio_seconds_total", "pipeline", "Seconds of signal per second.", "none", width=12),
]
BATCH = waits("batch", "until its batch is closed. A high median with full batches: too few workers. Only a high p99: a worker that stalls.") + [
    depth("batch", "Rows that wait for a batch. Near the capacity, clients are paused."),
    heat("Rows per batch", "short", "How many rows with frames a batch has. All at the top: batches are full, raise `rows` or add workers.", "millrace_batch_rows_bucket"),
    lines("Occupancy and padding", "percentunit", "`rows`: rows of those that fit into the batches. Near 1, batches are full. `padding`: frames that no client sent. "
          "[Runbook](${runbooks}/MillraceBatchOccupancyLow.md)",
          ("sum(rate(millrace_batch_rows_total{@}[@])) / sum(rate(millrace_batch_rows_offered_total{@}[@]))", "rows"),
          ("sum(rate(millrace_batch_frames_padded_total{@}[@])) / sum(rate(millrace_batch_frames_total{@}[@]))", "padding"), width=6, most=1),
    rates("Why batches closed", "millrace_batches_total", "trigger", "`full`: all rows taken. `complete`: no other stream can add a row. `deadline`: `max_wait` is over. Mostly `full` and long waits: overload.", width=6),
]
COPY = waits("copy", "until the slab is filled. High if the bus or host memory is busy.") + [
    lines("Frames in batches", "cps", "Frames per second that are written into slabs, padding included.",
          ("sum by (pipeline) (rate(millrace_batch_frames_total{@}[@]))", "{{pipeline}}"),
          ("sum by (pipeline) (rate(millrace_chunk_frames_padded_total{@}[@]))", "padding in rows of {{pipeline}}"), width=6),
]
HANDOVER = waits("handover", "until the worker has taken the batch. With two credits about as long as `compute`: the batch waits for the one before it.") + [
    depth("worker", "Rows that are handed over and not done: `copy`, `handover` and `compute`. At the capacity, rows queue in `batch`."),
    totals("Batches in flight", "short", "millrace_worker_inflight_batches", "pipeline", "Batches that workers hold. At most the sum of their credits.", width=12),
    rates("Marker rows", "millrace_batch_marks_total", "pipeline", "Markers per second in batches: ends, flushes and resets without frames.", width=12),
]
COMPUTE = waits("compute", "until the batch is done. The model and its device.") + [
    quantiles("Time per batch", "millrace_worker_compute_duration_seconds", "From batch taken to batch done, once per batch. A p99.9 far above p99: single stalls. "
              "[Runbook](${runbooks}/MillraceWorkerStalled.md)", at=(0.5, 0.99, 0.999)),
]
RESULT = waits("result", "until the result is written. Only answered rows. High if clients read slowly.") + [
    lines("Rows in result", "short", "Rows with a result that is not written yet. There is no limit in rows; `send_buffer` limits their bytes.",
          ('sum by (pipeline) (millrace_queue_items{@,stage="result"})', "{{pipeline}}"), width=6),
    rates("Results", "millrace_results_total", "status", "`error`: the worker failed on a row.", width=12),
    totals("Bytes to send", "bytes", "millrace_send_buffer_bytes", "transport", "Bytes that wait to be sent to clients. Grows if clients read slowly.", width=12),
]


def board():
    stages = [("chunk", CHUNK), ("batch", BATCH), ("copy", COPY), ("handover", HANDOVER), ("compute", COMPUTE), ("result", RESULT)]
    return made("pipeline", "pipeline", "Where does the time of a row go? One row of panels per stage.",
                [("All stages", WHOLE)] + [(f"Stage {name}", panels) for name, panels in stages])
