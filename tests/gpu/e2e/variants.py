# SPDX-License-Identifier: Apache-2.0
"""The variants of the run: what is different, and what must hold."""
import asyncio
import signal
import sys

import millrace
import numpy as np
import ramp
from clients import PACKET, Clients
from processes import HERE, Process, Skipped, wait_for

_TOLERANCE = 256  # MiB of device memory: kernels that only one of two workers has loaded
_FREED = 5  # seconds until the memory of a killed worker is free
_MOMENT = 0.002  # seconds between two looks at a condition
_KERNEL_MS = 150  # of the worker that is killed


def service_copies(run):
    """the service copies to the device"""
    service = run.service()
    f32, s16 = run.workers(service, ["f32"], ["s16"])
    batches = run.load(service, ([f32], "f32", run.few, 1), ([f32], "f32", run.many, 1), ([s16], "s16", run.few, 0))
    run.check_answers()
    run.check_copies(service, batches + run.finish(f32, s16))
    run.stop(service)


def worker_copies(run):
    """a worker copies to the device itself, and one is on the host"""
    service = run.service(copies=False)
    f32, s16 = run.worker(service, "f32"), run.worker(service, "s16", device="host")
    for worker in (f32, s16):
        worker.await_attached()
    run.load(service, ([f32], "f32", run.few, 1), ([s16], "s16", run.few, 1))
    run.check_answers()
    run.finish(f32, s16)
    run.check(not service.metrics().get("millrace_h2d_copies_total"), "the service has copied nothing to a device")
    run.stop(service)


def graph(run):
    """a CUDA graph; the next batch is put on the device before the answers to this one are ready"""
    service = run.service()
    [worker] = run.workers(service, ["f32", "--graph", "--order", "overlap"])
    batches = run.load(service, ([worker], "f32", run.few, 1), ([worker], "f32", run.few, 0))
    run.goal("gap between two batches under full load, p50", [*run.figures.values()][-1].get("gap_us"), 50)
    run.check_answers()
    run.check_copies(service, batches + run.finish(worker))
    run.stop(service)


def early(run):
    """batches are given back before the device has finished with them"""
    service = run.service()
    [worker] = run.workers(service, ["f32", "--order", "early", "--model-ms", "5"])
    batches = run.load(service, ([worker], "f32", run.few, 0))
    run.check_answers()
    run.check_copies(service, batches + run.finish(worker))
    run.figures["wait_for_a_slab_mean_us"] = service.mean_us("millrace_pinned_pool_acquire_wait_seconds")
    run.figures["waits_for_a_slab"] = service.metrics().get("millrace_pinned_pool_exhausted_total")
    run.stop(service)


def service_killed(run):
    """the service is killed under load and starts again"""
    service = run.service()
    [worker] = run.workers(service, ["f32"])
    clients = Clients(service.clients, 1, resets=True)

    async def kill_under_load():
        while clients.rows < run.few:
            await asyncio.sleep(_MOMENT)
        await asyncio.sleep(run.seconds / 3)
        service.end(signal.SIGKILL)
        service.start()

    run.load_beside(clients, kill_under_load())
    run.check_answers()
    run.check(clients.lost, f"the service was killed while it had streams: {clients.lost} lost")
    before, *others = worker.finish()
    run.check_figures("before", before, lost=True)
    run.check(len(others) == 1, "the worker has attached again, once, in the same process")
    for figures in others:
        run.check_figures("after", figures)
        run.check(figures["batches"], "the worker has computed batches afterwards")
    run.stop(service)


def worker_killed(run):
    """a worker is killed in its kernel, and another one takes its streams"""
    service = run.service()
    [first] = run.workers(service, ["f32", "--model-ms", str(_KERNEL_MS), "--announce"])
    clients = Clients(service.clients, 1, resets=True)
    workers, memory = [], []

    async def kill_in_kernel():
        while clients.rows < run.few:
            await asyncio.sleep(_MOMENT)
        memory.append(first.figures()["free_mib"])
        taken = len(first.said("taken"))
        while len(first.said("taken")) == taken:  # a kernel has just begun
            await asyncio.sleep(_MOMENT)
        await asyncio.sleep(_KERNEL_MS / 5e3)
        first.end(signal.SIGKILL)
        workers.append(run.worker(service, "f32"))

    run.load_beside(clients, kill_in_kernel())
    run.check_answers()
    run.check(service.process.poll() is None, "the service lives")
    run.check(service.metrics().get("millrace_worker_failures_total"), "the service has lost a worker")
    [before] = memory
    if before is not None:
        after = []

        def freed():
            after.append(workers[0].figures()["free_mib"])
            return after[-1] >= before - _TOLERANCE

        wait_for(freed, f"{before} MiB of device memory to be free, as before a worker was killed", _FREED)
        run.check(True, f"{after[-1]} MiB of device memory are free with the second worker, {before} MiB with the first")
        run.figures.update(free_before_mib=before, free_after_mib=after[-1])
    run.finish(*workers)
    run.stop(service)


def two_workers(run):
    """two workers in two processes share the device"""
    service = run.service()
    workers = run.workers(service, ["f32"], ["f32"])
    batches = run.load(service, (workers, "f32", run.many, 1), (workers, "f32", run.many, 0))
    run.check_answers()
    rows = [sum(entry["rows"] for entry in worker.said("rows")) for worker in workers]
    run.check(min(rows) > (sum(rows) / 4 if run.on_gpu else 0), f"each worker has its share of the rows: {rows}")
    run.check_copies(service, batches + run.finish(*workers))
    run.stop(service)


async def _means_of_squares(client, key, packets):
    """The answers to a stream, and those that are right: of each row the mean of the squares of all frames up to its end."""
    async with client.open(rate=ramp.RATE) as stream:
        for packet in range(packets):
            await stream.send(ramp.frames(key, packet * PACKET, PACKET))
        await stream.end()
        answers = [result.data async for result in stream]
    squares = np.cumsum(ramp.value(key, np.arange(packets * PACKET)) ** 2)
    return answers, [int(squares[end - 1]) // end for end in range(PACKET, len(squares) + 1, PACKET)]


def documented_graph(run):
    """the program with a CUDA graph that docs/workers.md prints"""
    program = HERE / "worker_graph.py"
    if run.simulated or not program.is_file():
        raise Skipped("it needs PyTorch and the archive")
    service = run.service(more='[[pipeline]]\nchunk = { size = "100ms" }\n')
    worker = Process(sys.executable, str(program), run.device, MILLRACE_WORKERS=service.url)
    run.processes.append(worker)

    async def streams():
        async with millrace.connect(service.clients) as client:
            return await asyncio.gather(*(_means_of_squares(client, key, 20) for key in range(run.few // 4)))

    pairs = asyncio.run(streams())
    run.check(all(answers == right for answers, right in pairs), f"the answers to {len(pairs)} streams are right")
    run.check(worker.end() == 0, f"the worker ends: {worker.last_words()}")
    run.stop(service)


VARIANTS = {"1": service_copies, "2": worker_copies, "3": graph, "4": early, "5": service_killed, "6": worker_killed,
            "7": two_workers, "8": documented_graph}
