# SPDX-License-Identifier: Apache-2.0
"""Do devices get their batches in time? NVIDIA's DCGM exporter has utilisation, clocks and temperatures."""
from frame import made
from panels import GREEN, RED, heat, lines, number, quantiles, rates, totals

STATE = [
    number("Healthy", "none", "*no*: a device has failed. The service ends its streams and exits, and must be started again. [Runbook](${runbooks}/MillraceDeviceUnhealthy.md)",
           "min(millrace_device_healthy{@})", width=6, limits={}, texts={"0": ("no", RED), "1": ("yes", GREEN)}),
    number("Copied per second", "Bps", "Bytes per second from the host to all devices. PCIe 4.0 x16 carries about 25 GB/s.", "sum(rate(millrace_h2d_copied_bytes_total{@}[@]))", width=6),
    number("Copies per second", "cps", "One copy per batch.", "sum(rate(millrace_h2d_copies_total{@}[@]))", width=6),
    number("Device errors in the last hour", "short", "All kinds. [Runbook](${runbooks}/MillraceDeviceUnhealthy.md)", "sum(increase(millrace_device_errors_total{@}[1h]))", width=6, limits={1: RED}),
]
HEALTH = [
    lines("Health", "none", "1 while the device may be used. [Runbook](${runbooks}/MillraceDeviceUnhealthy.md)", ("min by (instance, device) (millrace_device_healthy{@})", "{{instance}} {{device}}"), width=12, most=1),
    lines("Device errors", "cps", "After `out_of_memory` one worker loses its place on the device. `ecc`, `illegal_access` and `lost` end the process. [Runbook](${runbooks}/MillraceDeviceUnhealthy.md)",
          ("sum by (device, error) (rate(millrace_device_errors_total{@}[@]))", "{{device}} {{error}}"), width=12),
]
COPIES = [
    heat("Duration of a copy", "s", "Duration of copies from the host to the device, by CUDA events. One copy in 16 is timed.", "millrace_h2d_copy_duration_seconds_bucket"),
    quantiles("Percentiles of the duration of a copy", "millrace_h2d_copy_duration_seconds", "By device. If it grows while bytes per copy stay the same, the bus is shared or its link is degraded.", at=(0.5, 0.99), by="device", width=12),
    rates("Bytes per second", "millrace_h2d_copied_bytes_total", "device", "Bytes copied from the host to each device.", "Bps"),
    rates("Copies per second", "millrace_h2d_copies_total", "device", "One copy per batch."),
    lines("Bytes per copy", "bytes", "Mean size. Small copies are slower per byte: raise the rows per batch.",
          ("sum by (device) (rate(millrace_h2d_copied_bytes_total{@}[@])) / sum by (device) (rate(millrace_h2d_copies_total{@}[@]))", "{{device}}")),
]
MEMORY = [
    totals("Pinned memory", "bytes", "millrace_pinned_pool_bytes", "state", "Page-locked slabs of workers on devices of the service. `used`: slabs of batches that are being filled, copied or computed.", stacked=True),
    lines("Pageable slabs", "bytes", "Slabs whose pages could not be locked (`ulimit -l`). Their workers copy them themselves, which is slower. Should be 0.", ("sum(millrace_pageable_slab_bytes{@})", "pageable")),
    lines("Batches that waited for a slab", "cps", "Batches per second that were ready to close, but had no free slab. Copies or workers return slabs too slowly.",
          ("sum(rate(millrace_pinned_pool_exhausted_total{@}[@]))", "waited")),
    heat("Wait for a slab", "s", "How long these batches waited.", "millrace_pinned_pool_acquire_wait_seconds_bucket"),
    lines("Time waited for slabs", "percentunit", "Seconds waited per second. Above 0.1, use more credits or faster copies.", ("sum(rate(millrace_pinned_pool_acquire_wait_seconds_sum{@}[@]))", "waited"), width=12),
]
FEED = [
    lines("Workers without a batch", "percentunit", "Share of their time that workers wait for rows. If it is high while the service is busy, copies or clients are too slow for the device.",
          ("sum by (pipeline) (rate(millrace_worker_wait_seconds_total{@}[@])) / (sum by (pipeline) (millrace_workers{@}) > 0)", "{{pipeline}}")),
    quantiles("Time per batch", "millrace_worker_compute_duration_seconds", "From batch taken to batch done: the model on the device.", at=(0.5, 0.99), width=8),
    lines("Oldest batch not done", "s", "A rising line: a worker or a device hangs. [Runbook](${runbooks}/MillraceWorkerStalled.md)", ("max by (pipeline) (millrace_worker_oldest_batch_seconds{@})", "{{pipeline}}")),
]


def board():
    return made("gpu", "GPU", "Do devices get their batches in time? NVIDIA's DCGM exporter has utilisation, clocks and temperatures.",
                [("", STATE), ("Health", HEALTH), ("Copies to devices", COPIES), ("Pinned memory", MEMORY), ("Feeding the workers", FEED)])
