# SPDX-License-Identifier: Apache-2.0
"""Figures of single stages, measured by the programs in bench/ that contain their own controls."""
from comparing.figure import Figure, at_least, at_most


def gather(programs, rounds):
    """Rows of 3200 bytes into slabs; the control is memcpy. The goal is two million rows per second."""
    figure = Figure("gather_row", "ns", at_most(500))
    report = programs.run("batcher_bench", "--json", "--runs", str(rounds), core=programs.server_core)
    for pair in zip(report["ours"], report["control"]):
        figure.add(*pair)
    return [figure]


def router(programs, messages, rounds):
    """As many packets as possible over ZeroMQ to the chunker; the control reads them from a ROUTER."""
    figure = Figure("router_flood", "packets/s", at_least(200_000, part=0.65))
    report = programs.run("zeromq_bench", "--json", "--runs", str(rounds), "--messages", str(messages), seconds=300)
    for pair in zip(report["ours"], report["control"]):
        figure.add(*pair)
    return [figure]


def handover(programs, batches, rounds):
    """From a full batch until a sleeping worker takes it; the control wakes a process."""
    middle, tail = Figure("handover_p50", "us", at_most(30)), Figure("handover_p99", "us", at_most(200))
    for _ in range(rounds):
        report = programs.run("handover_bench", "--json", "--unix", "--pause", "1000", "--batches", str(batches))
        middle.add(report["unix"]["p50_us"], report["control"]["p50_us"])
        tail.add(report["unix"]["p99_us"], report["control"]["p99_us"])
    return [middle, tail]


def deadline(programs, wait_ms, batches, rounds):
    """From a ready row until its batch closes without being full; the control is a timer."""
    wait = 1000 * wait_ms
    middle = Figure(f"batch_{wait_ms}ms_p50", "us", at_most(wait + 50))
    tail = Figure(f"batch_{wait_ms}ms_p99", "us", at_most(wait + 200))
    for _ in range(rounds):
        report = programs.run("handover_bench", "--json", "--max-wait", str(wait), "--pause", "500", "--batches",
                            str(batches))
        for figure, name in ((middle, "p50_us"), (tail, "p99_us")):
            figure.add(wait + report["batch"][name], wait + report["control"][name])
    return [middle, tail]
