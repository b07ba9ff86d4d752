# SPDX-License-Identifier: Apache-2.0
"""Workers on other machines: the tests of local workers, and faults of the network. Ids like F2 are those of
docs/internals/guarantees.md."""
import contextlib
import select
import socket
import struct
import threading
import unittest

import conformance_test
import worker_faults_test
import worker_lies_test
from faults import text
from harness import MILLRACE, Process, wait_for
from raw_worker import RawWorker
from worker_faults import REMOTE, WorkerFaultTest, packet


class Losses(worker_faults_test.Losses):  # F2, F3
    remote = True


class Leaving(worker_faults_test.Leaving):
    remote = True


class InvalidMessages(worker_lies_test.InvalidMessages):  # F5, F6
    remote = True
    HELLOS = {name: hello for name, hello in worker_lies_test.HELLOS.items()
              if name != "an unknown device"}  # the device of a remote worker is not checked


class Cable:
    """A connection to a port, which can be cut: then nothing passes any more, and neither end is informed."""

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
        """From now on, nothing passes. The connections stay open."""
        self.cut.set()
        self.thread.join()

    def close(self):
        self.cut_it()
        for end in [self.listener, *self.ends]:
            end.close()


class Network(WorkerFaultTest):
    remote = True

    def test_if_the_cable_of_a_worker_is_cut_its_streams_get_a_reset(self):
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
        self.assertNotEqual(tap.wait(), 0)  # the tap sees that its service is lost
        self.assertEqual(self.counts(service)[("worker_failures", "timeout")], 1)

    def test_if_a_remote_worker_is_killed_its_streams_get_a_reset_and_others_lose_nothing(self):
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

    def test_connections_of_other_programs_to_the_port_of_workers_disturb_no_worker(self):  # D1, D5, D7, F15
        service = self.service()
        port = int(service.workers_remote.rsplit(":", 1)[1])
        zeromq = b"\xff\0\0\0\0\0\0\0\1\x7f\3" + bytes(53)  # its greeting
        strangers = b"GET / HTTP/1.1\r\n\r\n" * 3, bytes(range(256)), b"\xff" * 4096, zeromq, b""
        with self.moved(service, {}), self.beside(service) as (good, _):
            for data in strangers:
                with socket.create_connection(("127.0.0.1", port)) as stranger:
                    stranger.settimeout(30)
                    stranger.sendall(data)
                    stranger.shutdown(socket.SHUT_WR)
                    with contextlib.suppress(ConnectionError):
                        while stranger.recv(4096):
                            pass
                good.row()
            sent = sum(map(bool, strangers))  # the last one is a check whether the port is open
            self.await_metric(service, sent, "millrace_worker_connections_rejected_total", reason="handshake")

    def test_a_message_length_over_64_kib_before_hello_is_refused(self):  # F15
        service = self.service()
        with self.moved(service, {}), self.beside(service):
            before = service.peak_memory()
            for length in (64 << 10) + 1, 64 << 20, (1 << 32) - 1:
                with Length(service.workers_remote, length) as sender:
                    self.assertEqual(sender.ended(), "protocol")
            self.assertLess(service.peak_memory() - before, 8 << 20)

    def test_a_silent_connection_is_closed_after_10_seconds(self):  # F15
        service = self.service()
        with self.moved(service, {}), self.beside(service), Length(service.workers_remote, 1) as silent:
            self.assertEqual(silent.ended(), "protocol")


class Length(RawWorker):
    """Sends the length of its first message, and no more."""

    def __init__(self, url, length):
        super().__init__(url, length)

    def send(self, length):
        self.send_bytes(struct.pack("<I", length))


class Rows(conformance_test.Conformance):
    """Every row that a tap gets over TCP is the row of the contract, including its values."""

    test_every_row_over_a_real_socket_is_the_row_of_the_contract = None

    def service(self, *arguments):
        return super().service(*arguments, extra=REMOTE)

    def tap(self, service, pipeline="default", *more):
        service.workers = service.workers_remote
        return super().tap(service, pipeline, *more)

    def test_every_row_over_tcp_is_the_row_of_the_contract(self):
        everything = list(conformance_test.cases())
        self.check(everything[::len(everything) // conformance_test.AT_ONCE])


if __name__ == "__main__":
    unittest.main()
