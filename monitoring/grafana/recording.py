# SPDX-License-Identifier: Apache-2.0
"""Are streams recorded, and is the disk fast and large enough?"""
from frame import made
from panels import GREEN, RED, YELLOW, heat, lines, number, quantiles, rates

SUSPENDED = "[Runbook](${runbooks}/MillraceRecordingSuspended.md)"
NOT_SYNCED = "[Runbook](${runbooks}/MillraceRecordingNotSynced.md)"
DISK_FULL = "[Runbook](${runbooks}/MillraceRecordingDiskFullSoon.md)"

STATE = [
    number("Recording", "none", f"*suspended*: nothing is recorded because of the disk. {SUSPENDED}", "max(millrace_recording_suspended{@})", width=4,
           limits={}, texts={"0": ("yes", GREEN), "1": ("suspended", RED)}),
    number("Streams being recorded", "short", "Without streams that declined, and those outside the share.", "sum(millrace_recording_streams{@})", width=4),
    number("Dropped in the last hour", "short", "Records (slices of streams) that were not recorded. Each is a gap in a recording.", "sum(increase(millrace_recording_records_dropped_total{@}[1h]))", width=4, limits={1: YELLOW}),
    number("Unsynced for", "s", f"Time since the last good sync while written signal is not synced. A crash of the machine loses it. {NOT_SYNCED}",
           "max((time() - millrace_recording_last_sync_timestamp_seconds{@}) * (millrace_recording_unsynced_bytes{@} > bool 0))", width=4, limits={30: RED}),
    number("Free disk space", "bytes", f"Recording is suspended below `[recording] min_free`. {DISK_FULL}", "min(millrace_recording_disk_free_bytes{@})", width=4),
    number("Written per second", "Bps", "Bytes per second that all instances append to recording files.", "sum(rate(millrace_recording_written_bytes_total{@}[@]))", width=4),
]
QUEUE = [
    lines("Streams being recorded", "short", "By instance.", ("sum by (instance) (millrace_recording_streams{@})", "{{instance}}")),
    rates("Records", "millrace_recording_records_total", "instance", "Slices of streams that were appended, per second. About one per stream and commit."),
    rates("Dropped records", "millrace_recording_records_dropped_total", "reason", f"Slices that were not recorded. `queue_full`: the disk is too slow. `memory`: memory is short. {SUSPENDED}"),
    heat("Wait for the recorder", "s", "Time that frames waited for the recorder. Up to half of `[recording] commit` is normal.", "millrace_recording_queue_wait_seconds_bucket"),
    quantiles("Percentiles of the wait", "millrace_recording_queue_wait_seconds", "If it grows to seconds, the disk is too slow, and the queue fills.", at=(0.5, 0.99), width=12),
]
DISK = [
    lines("Free disk space", "bytes", f"On the file system of the recordings. {DISK_FULL}", ("min by (instance) (millrace_recording_disk_free_bytes{@})", "{{instance}}")),
    rates("Bytes written", "millrace_recording_written_bytes_total", "instance", "Bytes appended to recording files, per second.", "Bps"),
    lines("Unsynced bytes", "bytes", f"Written and not yet synced. {NOT_SYNCED}", ("sum by (instance) (millrace_recording_unsynced_bytes{@})", "{{instance}}")),
    quantiles("Duration of an append", "millrace_recording_write_duration_seconds", "Appends go to the page cache. If they take long, the kernel is writing back.", at=(0.5, 0.99), width=8),
    quantiles("Duration of a sync", "millrace_recording_fsync_duration_seconds", f"One fdatasync per commit. If it takes longer than `commit`, commits follow each other without a pause. {NOT_SYNCED}", at=(0.5, 0.99), width=8),
    rates("Failed operations", "millrace_recording_errors_total", "op", f"After a failed `fsync` the recording file stays unsealed. {SUSPENDED}"),
    rates("Recording files", "millrace_recording_files_total", "event", "`quarantined`: left unsealed after an error; `millrace recordings repair` seals it. `deleted`: by retention.", width=24),
]


def board():
    return made("recording", "recording", "Are streams recorded, and is the disk fast and large enough? Empty if no pipeline has `record`.",
                [("", STATE), ("Recorder", QUEUE), ("Disk", DISK)], pipeline=False)
