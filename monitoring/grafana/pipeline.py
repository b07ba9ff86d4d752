# SPDX-License-Identifier: Apache-2.0
"""Where does the time of a row go? One row of panels per stage, from reading the last frame of a row to writing its result."""
from frame import made
from panels import RED, heat, lines, quantiles, rates, totals

WAIT = "millrace_queue_wait_seconds"


def waits(stage, meaning):
    """The heat map and percentiles of the wait in a stage."""
    return [heat(f"Wait in {stage}", "s", f"Time that rows spend in the stage `{stage}`: {meaning}", f'{WAIT}_bucket{{@,stage="{stage}"}}'),
            quantiles(f"Percentiles of {stage}", WAIT, f"Percentiles of the time in the stage `{stage}`: {meaning}", f',stage="{stage}"', at=(0.5, 0.99))]


def depth(stage, description):
    """Rows in a stage, and its capacity."""
    return lines(f"Rows in {stage}", "short", description,
                 (f'sum by (pipeline) (millrace_queue_items{{@,stage="{stage}"}})', "{{pipeline}}"),
                 (f'sum by (pipeline) (millrace_queue_capacity_items{{@,stage="{stage}"}})', "capacity of {{pipeline}}"), width=6)


WHOLE = [
    heat("Chunk to result", "s", "All stages together: from reading the last frame of a row to writing its result.", "millrace_result_latency_seconds_bucket"),
    quantiles("Percentiles of chunk to result", "millrace_result_latency_seconds", "The alert fires above 0.3 s. [Runbook](${runbooks}/MillraceResultLatencyHigh.md)", limits={0.3: RED}),
    quantiles("p99 by stage", WAIT, "Look first at the stage with the largest value. It has a row of panels below.", at=(0.99,), by="stage"),
]
CHUNK = waits("chunk", "until the row is cut. It is high if an io thread is late (see the event loop lag on the dashboard *process*), if eight rows of the stream wait for a batch, or if its client does not read results.") + [
    rates("Rows cut", "millrace_chunks_total", "kind", "`cut` rows end a segment and are shorter; many of them cause padding. `marker` rows have no frames.", width=6),
    lines("Frame buffers", "bytes", "Bytes of frames that wait in streams, of all pipelines. If it grows, workers are too slow, and clients are paused in the end.",
          ("sum by (instance) (millrace_chunk_buffer_bytes{@})", "{{instance}}"), width=12),
    rates("Signal read per second", "millrace_ingest_audio_seconds_total", "pipeline", "Seconds of signal accepted per second.", "none", width=12),
]
BATCH = waits("batch", "until its batch is closed. If the median is high and batches are full, there are too few workers. If only p99 is high, a worker stalls.") + [
    depth("batch", "Rows that wait for a batch. Near the capacity, clients are paused."),
    heat("Rows per batch", "short", "Rows with frames per batch. If all are at the top, batches are full: raise `rows` or add workers.", "millrace_batch_rows_bucket"),
    lines("Occupancy and padding", "percentunit", "`rows`: share of the rows that the batches could hold. Near 1, batches are full. `padding`: share of frames that no client sent. "
          "[Runbook](${runbooks}/MillraceBatchOccupancyLow.md)",
          ("sum(rate(millrace_batch_rows_total{@}[@])) / sum(rate(millrace_batch_rows_offered_total{@}[@]))", "rows"),
          ("sum(rate(millrace_batch_frames_padded_total{@}[@])) / sum(rate(millrace_batch_frames_total{@}[@]))", "padding"), width=6, most=1),
    rates("Why batches closed", "millrace_batches_total", "trigger", "`full`: all rows are taken. `complete`: no other stream can add a row. `deadline`: `max_wait` is over. Mostly `full`, with long waits: overload.", width=6),
]
COPY = waits("copy", "until the slab is filled. It is high if the bus or host memory is busy.") + [
    lines("Frames in batches", "cps", "Frames per second that are written into slabs, padding included.",
          ("sum by (pipeline) (rate(millrace_batch_frames_total{@}[@]))", "{{pipeline}}"),
          ("sum by (pipeline) (rate(millrace_chunk_frames_padded_total{@}[@]))", "padding in rows of {{pipeline}}"), width=6),
]
HANDOVER = waits("handover", "until the worker has taken the batch. With two credits it is about as long as `compute`: the batch waits for the batch before it.") + [
    depth("worker", "Rows that are handed over and not done: `copy`, `handover` and `compute`. At the capacity, further rows wait in `batch`."),
    totals("Batches in flight", "short", "millrace_worker_inflight_batches", "pipeline", "Batches that workers hold. At most the sum of their credits.", width=12),
    rates("Marker rows", "millrace_batch_marks_total", "pipeline", "Markers per second in batches: ends, flushes and resets without frames.", width=12),
]
COMPUTE = waits("compute", "until the batch is done. This is the time of the model and its device.") + [
    quantiles("Time per batch", "millrace_worker_compute_duration_seconds", "From batch taken to batch done, once per batch. If p99.9 is far above p99, single batches stall. "
              "[Runbook](${runbooks}/MillraceWorkerStalled.md)", at=(0.5, 0.99, 0.999)),
]
RESULT = waits("result", "until the result is written. Only rows with a result count. It is high if clients read slowly.") + [
    lines("Rows in result", "short", "Rows with a result that is not written yet. `send_buffer` limits their bytes, not their number.",
          ('sum by (pipeline) (millrace_queue_items{@,stage="result"})', "{{pipeline}}"), width=6),
    rates("Results", "millrace_results_total", "status", "`error`: the worker failed on a row.", width=12),
    totals("Bytes to send", "bytes", "millrace_send_buffer_bytes", "transport", "Bytes that wait to be sent to clients. They grow if clients read slowly.", width=12),
]


def board():
    stages = [("chunk", CHUNK), ("batch", BATCH), ("copy", COPY), ("handover", HANDOVER), ("compute", COMPUTE), ("result", RESULT)]
    return made("pipeline", "pipeline", "Where does the time of a row go? One row of panels per stage.",
                [("All stages", WHOLE)] + [(f"Stage {name}", panels) for name, panels in stages])
