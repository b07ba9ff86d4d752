# SPDX-License-Identifier: Apache-2.0
"""Measures figures of operation, not in CI. bench/README.md has those of one machine.

MILLRACE=build/release/service/millrace python3 tests/system/operation_figures.py MEASUREMENT

times         from exec to listening, and from SIGTERM to the exit: without streams, and with 1000 live ones
page          CPU of the service's main thread with 10 000 streams, with and without the requests of an open live page
open MINUTES  the live page under load in a browser: heap, nodes and console errors, twice a minute
"""
import asyncio
import resource
import statistics
import sys
import threading
import time
from pathlib import Path

from browser import Browser, Page
from harness import COUNTED, MILLRACE, Process, Service, samples, wait_for
from pictures import PIPELINES, client
from raw_client import BINARY, RawClient, frame, upgrade

CHUNK = 1600
PAGE = ("/metrics", "/status", "/workers", "/streams?order=held&limit=10", "/log")  # the requests of a page each second
ROUND = 15  # seconds


def spread(name, seconds):
    print(f"{name}: median {1000 * statistics.median(seconds):.1f} ms, at most {1000 * max(seconds):.1f} ms")


def stopped(service):
    """Seconds from SIGTERM to the exit, with the code 0."""
    begin = time.monotonic()
    code = service.stop()
    assert code == 0, code
    return time.monotonic() - begin


def read_and_close(clients):
    for each in clients:
        each.rest()
        each.socket.close()


def drain_of(streams):
    service = Service(f"[[pipeline]]\nslots = {streams}\nchunk = {{ size = {CHUNK} }}\n")
    tap = service.tap()
    clients = [RawClient(service.port, upgrade()).opened() for _ in range(streams)]
    packet = frame(BINARY, samples(0, CHUNK))
    for each in clients:
        each.send(packet)
    for each in clients:
        each.message()
        each.send(packet)
    reader = threading.Thread(target=read_and_close, args=(clients,))
    reader.start()
    seconds = stopped(service)
    reader.join()
    tap.kill()
    return seconds


def times():
    starts, stops = [], []
    for _ in range(10):
        begin = time.monotonic()
        service = Service("[[pipeline]]\n")  # waits for the line `listening`
        starts.append(time.monotonic() - begin)
        stops.append(stopped(service))
    spread("start to listening", starts)
    spread("drain without streams", stops)
    spread("drain of 1000 live streams", [drain_of(1000) for _ in range(3)])


def main_thread(service):
    """Seconds of CPU so far."""
    pid = service.process.pid
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


def used(service, requests):
    """CPU per second during one round."""
    begin, cpu = time.monotonic(), main_thread(service)
    for second in range(1, ROUND + 1):
        for path in requests:
            service.get(path)
        time.sleep(max(0, begin + second - time.monotonic()))
    return (main_thread(service) - cpu) / (time.monotonic() - begin)


def page(streams=10_000):
    service = Service(f'[[pipeline]]\nname = "a"\nslots = {streams}\nchunk = {{ size = "1s" }}\nbatch = {{ rows = 256, max_wait = "20ms" }}\n'
                      '[[pipeline]]\nname = "b"\n[[pipeline]]\nname = "c"\n', descriptors="20000")
    load = Process(MILLRACE, "bench", "--streams", str(streams), "--packet", "1s", "--duration", "20min", "--worker", "silent",
                   "--url", f"ws://127.0.0.1:{service.port}", "--pipeline", "a", "--workers", service.workers)
    try:
        wait_for(lambda: service.metric("millrace_streams", pipeline="a") >= streams, "the streams to be open", COUNTED)
        rounds = [(used(service, ()), used(service, PAGE)) for _ in range(4)]
        without, with_page = (1000 * statistics.median(column) for column in zip(*rounds))
        print(f"{streams} streams: {without:.2f} ms of CPU per second, with an open page {with_page:.2f}")
    finally:
        load.kill()
        service.kill()


async def watched(service, browser, minutes):
    clients = [asyncio.ensure_future(client(service, number)) for number in range(8)]
    async with Page(browser, f"http://127.0.0.1:{service.admin_port}/", (1280, 900)) as page:
        await page.call("HeapProfiler.enable")
        for half in range(2 * minutes + 1):
            await page.call("HeapProfiler.collectGarbage")
            heap = (await page.call("Runtime.getHeapUsage"))["usedSize"] / 1e6
            nodes = (await page.call("Memory.getDOMCounters"))["nodes"]
            print(f"{half / 2} min: heap {heap:.2f} MB, {nodes} nodes, {len(page.errors())} errors", flush=True)
            await asyncio.sleep(30)
    for each in clients:
        each.cancel()


def open_page(minutes):
    service, browser = Service(PIPELINES), Browser()
    taps = [service.tap("vad"), service.tap()]
    try:
        asyncio.run(watched(service, browser, int(minutes)))
    finally:
        browser.close()
        for tap in taps:
            tap.kill()
        service.kill()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    measurements = {"times": times, "page": page, "open": open_page}
    if len(sys.argv) < 2 or sys.argv[1] not in measurements:
        sys.exit(__doc__)
    measurements[sys.argv[1]](*sys.argv[2:])
