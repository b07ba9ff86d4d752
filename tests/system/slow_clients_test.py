# SPDX-License-Identifier: Apache-2.0
"""Clients that make the service wait, all at once: each is closed at its time limit, and delays no other client.
tests/transport/sessions/session_time_test.cpp tests longer limits, in virtual time. Ids like A9 are those of
docs/internals/guarantees.md."""
import collections
import concurrent.futures
import contextlib
import ctypes
import itertools
import re
import select
import socket
import struct
import subprocess
import time
import unittest

from faults import FaultTest, text
from harness import COUNTED, MILLRACE, PATIENCE, samples, wait_for
from raw_client import BINARY, TEXT, RawClient, closing, frame, upgrade
from raw_worker import Honest, RawWorker

SO_ATTACH_FILTER = 26  # constant of Linux; not in Python's module
# In the second pipeline, a second of audio makes many results.
PIPELINES = ("[[pipeline]]\nchunk = { size = 1600 }\n"
             '[[pipeline]]\nname = "pieces"\nstate = "none"\nslots = 16\nchunk = { size = 400 }\n')


def trickle(client, pieces, pause):
    """Sends pieces, with a pause after each, until the service closes the connection."""
    client.socket.settimeout(pause)
    for piece in pieces:
        client.send(piece)
        try:
            if not client.receive():
                return
        except TimeoutError:
            pass


def silent(service):
    return RawClient(service.port).head()


def slow_header(service):
    client = RawClient(service.port)
    trickle(client, itertools.chain((bytes([byte]) for byte in upgrade()[:20]), itertools.repeat(b"")), 0.9)
    return client.head()


def slow_message(service):
    client = RawClient(service.port, upgrade()).opened()
    trickle(client, (bytes([byte]) for byte in frame(BINARY, samples(0, 100))), 0.4)
    return client.ended()


def empty_fragments(service):
    client = RawClient(service.port, upgrade()).opened()
    trickle(client, itertools.chain([frame(BINARY, fin=False)], itertools.repeat(frame(0, fin=False))), 0.01)
    return client.ended()


def no_answer_to_a_close(service):
    return RawClient(service.port, upgrade(), answers_close=False).opened().send(text(type="end")).ended()


def nonsense_for_a_close(service):
    client = RawClient(service.port, upgrade(), answers_close=False).opened()
    client.send(frame(TEXT, bytes(1000))[:500])
    while client.close_code is None:
        client.message()
    return client.send(b"\xff" * 500).ended()


def no_end_of_the_connection(service):
    client = RawClient(service.port, upgrade()).opened().send(closing(1000))
    ended = client.ended()
    wait_for(lambda: client.send(b"\0").reset, "further bytes to be refused")
    return ended


def unplugged(service):
    """A client whose kernel drops all packets to it, acknowledgements included, as if the cable were cut."""
    client = RawClient(service.port, upgrade("/v1/stream?id=unplugged")).opened()
    drop_all = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # BPF: return 0 bytes
    client.socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER,
                             struct.pack("H6xQ", 1, ctypes.addressof(drop_all)))
    client.send(text(type="end"))
    wait_for(lambda: "unplugged" not in [stream["stream"] for stream in service.streams()], "the service to notice")


def unread(pipeline):
    """A client that causes more results than any kernel buffers, and reads them too late."""
    def run_case(service):
        client = RawClient(service.port, receive_buffer=4096)
        client.send(upgrade(f"/v1/stream?pipeline={pipeline}&id={pipeline[0] * 128}")).opened()
        client.socket.settimeout(0.2)
        left = memoryview(frame(BINARY, samples(0, 32768)) * 500)
        while service.metric("millrace_streams_closed_total", pipeline=pipeline, reason="error") == 0:
            with contextlib.suppress(TimeoutError):
                left = left[client.socket.send(left[:1 << 18]):]
        client.socket.settimeout(PATIENCE)
        return client.ended()

    return run_case


HANDSHAKE = ("connections_rejected", "handshake")
IDLE = ("connections_closed", "idle"), ("streams_closed", "idle")
SLOW_READER = ("connections_closed", "slow_reader"), ("streams_closed", "error")
NOTHING = (None, {})
# The client, how it ends, after how many seconds, and the counters that change.
SLOW = {
    "no byte": (silent, NOTHING, 10, [HANDSHAKE]),  # A10
    "a header a byte at a time": (slow_header, NOTHING, 10, [HANDSHAKE]),  # A9
    "a message a byte at a time": (slow_message, ("idle", 4408), 5, IDLE),  # A22
    "empty fragments": (empty_fragments, ("idle", 4408), 5, IDLE),  # A21
    "no answer to a close": (no_answer_to_a_close, (None, 1000), 5, []),  # A29
    "nonsense for a close": (nonsense_for_a_close, ("idle", 4408), 10, IDLE),  # A29
    "no end of the connection": (no_end_of_the_connection, (None, 1000), 5, []),  # A28
    "unplugged after its end": (unplugged, None, 5, []),  # A27
    "unread results": (unread("pieces"), ("slow_reader", 1008), 10, SLOW_READER),  # A26
}


class SlowClients(FaultTest):
    def test_slow_clients_are_closed_at_their_time_limit_and_delay_no_other_client(self):
        service = self.service(PIPELINES)
        for pipeline in ("default", "pieces"):
            self.tap(service, pipeline)
        expected = collections.Counter(counter for *_, counters in SLOW.values() for counter in counters)

        def timed(run_case):
            began = time.monotonic()
            return run_case(service), time.monotonic() - began

        with self.moved(service, expected), self.unharmed(service) as good:
            with concurrent.futures.ThreadPoolExecutor(len(SLOW)) as pool:
                clients = {name: pool.submit(timed, run_case) for name, (run_case, *_) in SLOW.items()}
                while not all(client.done() for client in clients.values()):
                    good.row()
                    self.assertEqual(service.get("/livez")[0], 200)
                    concurrent.futures.wait(clients.values(), 0.1)
            for name, (_, answer, seconds, _) in SLOW.items():
                with self.subTest(name):
                    got, took = clients[name].result()
                    self.assertEqual(got, answer)
                    self.assertGreater(took, seconds - 0.5)
                    self.assertLess(took, 30)  # the other limits are 30 s and longer


class KernelMemory(FaultTest):
    """The kernel's memory for the sockets of the service, without that of the clients' sockets."""

    CLIENTS, RECEIVED, LARGE = 10, 2304, b'"' + b"x" * 20_000 + b'"'

    def clients_that_do_not_read(self, service):
        clients = [RawClient(service.port, receive_buffer=self.RECEIVED) for _ in range(self.CLIENTS)]
        for client in clients:
            self.addCleanup(client.socket.close)
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
            client.send(upgrade()).opened().socket.setblocking(False)
        return clients

    def held(self, service):
        """Bytes received and not read, and bytes sent and not acknowledged, with the kernel's own structures."""
        sockets = subprocess.run(["ss", "-Htmn", "state", "established", "sport", "=", f":{service.port}"],
                                 capture_output=True, text=True, check=True).stdout
        found = re.findall(r"skmem:\(r(\d+),.*?,w(\d+),", sockets)
        self.assertEqual(len(found), self.CLIENTS)
        return sum(int(count) for counts in found for count in counts)

    def counted(self, service):
        """Bytes that check-config counts for the sockets of as many clients."""
        checked = subprocess.run([MILLRACE, "check-config", service.config], capture_output=True, text=True, check=True)
        amount, unit = re.search(r"# memory at most.*sockets ([\d.]+) (\w+)", checked.stdout).groups()
        return float(amount) * {"MiB": 1 << 20, "GiB": 1 << 30}[unit] * self.CLIENTS / (self.CLIENTS + 512)

    def test_sockets_of_clients_that_do_not_read_take_the_memory_that_check_config_counts(self):
        service = self.service("[[pipeline]]\nchunk = { size = 1600 }\n", f"[limits]\nconnections = {self.CLIENTS}\n")
        worker = Honest(RawWorker(service.workers).attached().beat(), self.LARGE)
        self.addCleanup(worker.close)
        unsent = {client.socket: memoryview(b"") for client in self.clients_that_do_not_read(service)}
        packet, seen, counted = memoryview(frame(BINARY, samples(0, 1600)) * 100), [0], self.counted(service)

        def full():
            for client in unsent:  # a client that reads nothing is closed after 10 s
                with contextlib.suppress(BlockingIOError):
                    client.recv(self.RECEIVED)
            for client in select.select([], unsent, [], 0)[1]:
                rest = unsent[client] or packet
                unsent[client] = rest[client.send(rest):]
            seen.append(self.held(service))
            return len(seen) > 3 and 0.75 * counted < max(seen) == max(seen[:-3])  # no new maximum for three looks

        wait_for(full, f"kernel memory of {counted} bytes", every=0.5)
        self.assertLess(max(seen), 1.05 * counted)  # the kernel checks its limits before it accepts a packet, which may exceed them
        for client in unsent:
            client.close()
        wait_for(lambda: service.metric("millrace_streams") == 0, "the streams to end", COUNTED)


if __name__ == "__main__":
    unittest.main()
