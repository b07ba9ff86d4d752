# SPDX-License-Identifier: Apache-2.0
"""Figures of the effect of streams on others: a slot becomes free, and latency beside a stream that sends much."""
import contextlib
import os
import socket
import struct
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from comparing.figure import Figure, at_most
from comparing.programs import TIMEOUT, BareServer, Failed, Service, pipeline
from comparing.streams import generator, measured

REQUEST = (b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
           b"Sec-WebSocket-Key: MTIzNDU2Nzg5MDEyMzQ1Ng==\r\nSec-WebSocket-Version: 13\r\n\r\n")
UNCHANGED = at_most(times=1.2)


def open_stream(port):
    """A connection with an accepted stream, or None if it was refused."""
    client = socket.create_connection(("127.0.0.1", port), TIMEOUT)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.sendall(REQUEST)
    if client.recv(4096).startswith(b"HTTP/1.1 101"):
        return client
    client.close()
    return None


def time_until_open(port):
    begin = time.monotonic()
    while time.monotonic() < begin + TIMEOUT:
        client = open_stream(port)
        if client:
            return client, 1e6 * (time.monotonic() - begin)
    raise Failed("no slot became free")


def packet(samples):
    """A binary message of noise. The random bytes contain the mask and the masked payload."""
    return b"\x82\xfe" + struct.pack(">H", 2 * samples) + os.urandom(4 + 2 * samples)


def await_result(client):
    """Also reads all messages before it."""
    received = b""
    while b'"type":"result"' not in received:
        more = client.recv(4096)
        if not more:
            raise Failed(f"a stream ends without a result: {received!r}")
        received += more


def vanished(programs, times):
    """From the disconnect of a client until another client has its slot. The control accepts every client."""
    figure = Figure("vanished_slot", "us", at_most(5000))
    with Service(programs, pipeline(slots=64)) as service, BareServer(programs, "epoll") as bare:
        tap = programs.start("millrace", "tap", "--url", service.workers, core=programs.client_core,
                             stdout=subprocess.DEVNULL)
        clients = []
        try:
            clients += [time_until_open(service.port)[0] for _ in range(64)]
            for turn in range(times):
                clients[turn % 64].sendall(packet(1600))
                await_result(clients[turn % 64])  # its row was at the worker
                _, control = time_until_open(bare.port)
                clients[turn % 64].close()
                clients[turn % 64], ours = time_until_open(service.port)
                figure.add(ours, control)
        finally:
            for client in clients:
                client.close()
            tap.terminate()
            tap.wait(TIMEOUT)
    return [figure]


@contextlib.contextmanager
def meanwhile(work):
    """Runs `work` on a thread beside the body, which gets its future. Raises the exception of `work`."""
    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(work)
        yield done
        done.result()


def ten_times_real_time(port, seconds):
    """A client that sends ten packets of 100 ms in each 100 ms. It disconnects after `seconds`; until then the
    worker of the others does not leave."""
    client = time_until_open(port)[0]
    client.settimeout(seconds)
    end = time.monotonic() + seconds

    def send():
        with client:
            while time.monotonic() < end:
                for _ in range(10):
                    client.sendall(packet(1600))
                time.sleep(0.1)

    return meanwhile(send)


@contextlib.contextmanager
def large_stream(programs, service, seconds):
    """A stream of 192 kHz and 8 channels, with a separate worker, for longer than `seconds`."""
    def stream():
        programs.run(
            "millrace", "bench", "--url", f"ws://127.0.0.1:{service.port}", "--json", "--pipeline", "large", "--rate",
            "192000", "--channels", "8", "--streams", "1", "--packet", "20ms", "--duration",
            f"{round(1000 * seconds)}ms", "--worker", "silent", "--workers", service.workers,
            core=programs.client_core, seconds=2 * seconds + TIMEOUT)

    with meanwhile(stream) as streaming:
        time.sleep(0.5)  # usually it sends by then; the result does not depend on it
        yield
        if streaming.done():
            raise Failed("the large stream ended before the small ones")


def as_many_refused(programs, service, streams, seconds):
    """The same number of further clients, once the first ones have their slots. They are refused, and try again
    each second."""
    def come():
        time.sleep(1)
        report = programs.run(
            "millrace", "bench", "--url", f"ws://127.0.0.1:{service.port}", "--json", "--streams", str(streams),
            "--life", "60s", "--warm-up", "0ms", "--duration", f"{round(1000 * seconds)}ms", core=programs.client_core,
            seconds=2 * seconds + TIMEOUT, codes=(1,))
        if not report["refused"]:
            raise Failed("no client was refused")

    return meanwhile(come)


def beside(programs, name, pipelines, neighbour, seconds, rounds, rate, bound=UNCHANGED, streams=500, strangers=False):
    """The latency of streams beside a neighbour; the control is without it. With `strangers` their worker may get
    rows of other streams."""
    figure = Figure(name, "us", bound)
    with Service(programs, pipelines) as service:
        plan = ["--streams", str(streams), "--rate", str(rate), "--duration", f"{round(1000 * seconds)}ms", "--worker",
                "silent", "--workers", service.workers]
        for _ in range(rounds):
            alone = programs.load(service.port, service.pid, plan, seconds)
            with neighbour(service):
                among = programs.load(service.port, service.pid, plan, seconds, strangers)
            figure.add(measured(among, "row_us"), measured(alone, "row_us"), **generator(among, alone))
    return [figure]


def beside_large(programs, seconds, rounds):
    pipelines = (pipeline(slots=500, rate=8000) +
                 pipeline("large", slots=1, rows=1, rate=192_000, channels=8))
    return beside(programs, "beside_large_p99", pipelines,
                  lambda service: large_stream(programs, service, seconds + 4), seconds, rounds, 8000)


def beside_fast(programs, seconds, rounds):
    return beside(programs, "beside_fast_p99", pipeline(slots=501),
                  lambda service: ten_times_real_time(service.port, seconds + 3), seconds, rounds, 16_000,
                  strangers=True)


def beside_refused(programs, seconds, rounds):
    streams = 2000
    return beside(programs, "beside_refused_p99", pipeline(slots=streams),
                  lambda service: as_many_refused(programs, service, streams, seconds), seconds, rounds, 16_000,
                  at_most(times=2), streams, strangers=True)  # refused clients get slots when the others have ended
