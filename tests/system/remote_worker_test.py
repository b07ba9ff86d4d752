# SPDX-License-Identifier: Apache-2.0
"""Workers of other machines: what holds for those of this one holds for them, and what a network does
to them besides. Numbers like F2 name the case."""
import contextlib
import select
import socket
import threading
import unittest

import conformance_test
import worker_faults_test
import worker_lies_test
import worker_wire as wire
from faults import text
from harness import MILLRACE, Process, wait_for
from remote_worker import RemoteRawWorker
from worker_faults import REMOTE, WorkerFaultTest, packet


class Losses(worker_faults_test.Losses):  # F2, F3
    remote = True


class Leaving(worker_faults_test.Leaving):
    remote = True


class Liars(worker_lies_test.Liars):  # F5, F6
    remote = True
    test_a_length_beyond_the_limit_is_cut_before_memory_is_taken = None  # of another framing: below
    test_a_message_that_never_comes_takes_the_memory_that_has_come = None
    test_who_says_hello_wrongly_is_told_why_and_counts_as_no_worker = None


class Cable:
    """A way to a port, which can be cut: nothing passes any more, and nobody is told."""

    def __init__(self, port):
        self.listener, self.port, self.cut = socket.create_server(("127.0.0.1", 0)), port, threading.Event()
        self.ends = []
        self.thread = threading.Thread(target=self._carry, daemon=True)
        self.thread.start()

    @property
    def url(self):
        return f"tcp://127.0.0.1:{self.listener.getsockname()[1]}"

    def _carry(self):
        self.ends += [self.listener.accept()[0], socket.create_connection(("127.0.0.1", self.port))]
        other = dict(zip(self.ends, reversed(self.ends)))
        while not self.cut.is_set():
            for end in select.select(self.ends, [], [], 0.01)[0]:
                data = end.recv(1 << 16)
                if not data:
                    return
                other[end].sendall(data)

    def cut_it(self):
        """Nothing is carried from now on; the connections stay."""
        self.cut.set()
        self.thread.join()

    def close(self):
        self.cut_it()
        for end in [self.listener, *self.ends]:
            end.close()


class Network(WorkerFaultTest):
    remote = True

    def test_a_worker_whose_cable_is_cut_costs_its_streams_a_reset(self):
        service = self.service()
        cable = Cable(int(service.workers_remote.rsplit(":", 1)[1]))
        self.addCleanup(cable.close)
        tap = Process(MILLRACE, "tap", "--url", cable.url)
        self.addCleanup(tap.kill)
        wait_for(lambda: service.get("/readyz")[0] == 200, "the tap to attach")
        client = self.client(service)
        client.send(packet(0))
        client.message()
        cable.cut_it()
        client.send(packet(1) + text(type="end"))
        self.honest(service, b'"another"')
        self.assertEqual(self.results(client)[1:], [(1, ["RESET"], "another"), (2, ["LAST", "END"], "another")])
        self.assertNotEqual(tap.wait(), 0)  # it sees as much
        counts = self.counts(service)  # the service's silence, or ZeroMQ's, whichever it sees first
        self.assertEqual(counts[("worker_failures", "timeout")] + counts[("worker_failures", "disconnect")], 1)

    def test_a_remote_worker_that_is_killed_costs_its_streams_a_reset_and_others_nothing(self):
        service = self.service()
        with self.moved(service, {("worker_failures", "disconnect"): 1}):
            tap = Process(MILLRACE, "tap", "--url", service.workers_remote)
            self.addCleanup(tap.kill)
            wait_for(lambda: service.get("/readyz")[0] == 200, "the tap to attach")
            client = self.client(service)
            client.send(packet(0))
            client.message()
            tap.process.kill()
            tap.process.wait()
            self.honest(service, b'"another"')
            client.send(packet(1) + text(type="end"))
            self.assertEqual(self.results(client)[1:], [(1, ["RESET"], "another"), (2, ["LAST", "END"], "another")])

    def test_what_is_no_zeromq_disturbs_nobody(self):  # D1, D5, D7
        service = self.service()
        port = int(service.workers_remote.rsplit(":", 1)[1])
        with self.moved(service, {}), self.beside(service) as (good, _):
            for data in b"GET / HTTP/1.1\r\n\r\n" * 3, bytes(range(256)), b"\xff" * 4096:
                with socket.create_connection(("127.0.0.1", port)) as stranger:
                    stranger.settimeout(30)
                    stranger.sendall(data)
                    with contextlib.suppress(ConnectionError):
                        while stranger.recv(4096):
                            pass
                good.row()
            self.await_metric(service, 3, "millrace_zmq_connections_rejected_total", port="workers", reason="handshake")
            for parts in ([b"a", b"b"], [wire.hello()] * 1000, [b""]):
                with RemoteRawWorker(service.workers_remote, parts[0]) if len(parts) == 1 else \
                        Parts(service.workers_remote, parts) as liar:
                    self.assertEqual(liar.ended(), "protocol")
                good.row()

    def test_a_message_beyond_the_limit_is_cut_before_memory_is_taken(self):  # D5, F6
        service = self.service()
        with self.moved(service, {("worker_failures", "disconnect"): 1}), self.beside(service):
            before = service.peak_memory()
            liar = self.worker(service)
            liar.send(bytes((64 << 20) + 1))
            liar.ended()
            self.assertLess(service.peak_memory() - before, 8 << 20)

    def test_who_says_hello_wrongly_is_told_why(self):
        service = self.service(extra='[limits]\nslab_bytes = "1MiB"\n')
        with self.moved(service, {}), self.beside(service):
            for name, (hello, code) in worker_lies_test.HELLOS.items():
                if name == "an unknown device":
                    continue  # its own affair
                with self.subTest(name), RemoteRawWorker(service.workers_remote, hello) as worker:
                    self.assertEqual(worker.ended(), code)


class Parts(RemoteRawWorker):
    """Says Hello in several parts."""

    def __init__(self, url, parts):
        self.parts = parts
        super().__init__(url)

    def send(self, *_):
        super().send(*self.parts)


class Rows(conformance_test.Conformance):
    """Every row that a tap gets over TCP is the contract's, its values included."""

    test_every_row_over_a_real_socket_is_the_contracts = None

    def service(self, *arguments):
        return super().service(*arguments, extra=REMOTE)

    def tap(self, service, pipeline="default", *more):
        service.workers = service.workers_remote
        return super().tap(service, pipeline, *more)

    def test_every_row_over_tcp_is_the_contracts(self):
        everything = list(conformance_test.cases())
        self.check(everything[::len(everything) // conformance_test.AT_ONCE])


if __name__ == "__main__":
    unittest.main()
