# SPDX-License-Identifier: Apache-2.0
"""Attacks on the open network. Beside each, a good client loses nothing, and the service spends at most 100 times the CPU
time of the attacker."""
import concurrent.futures
import contextlib
import functools
import socket
import ssl
import tempfile
import time
import unittest

from faults import FaultTest, GoodStream, text
from harness import PATIENCE, samples, wait_for
from raw_client import BINARY, RawClient, frame, upgrade
from tls_front import Authority
from tls_records import RecordClient

MOST = 100  # CPU time of the service, in that of the attacker


class TlsAttacks(FaultTest):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.authority = Authority(folder)
        certificate, key = self.authority.certificate("service")
        self.trusting = ssl.create_default_context(cafile=self.authority.ca)
        self.good_stream = functools.partial(GoodStream, tls=self.trusting)
        self.serving = self.served(extra=f'[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n')

    @contextlib.contextmanager
    def bounded(self):
        """Compares the CPU time of the service with that of this process."""
        service, attacker = self.serving.io_cpu(), time.process_time()
        yield
        self.assertLessEqual(self.serving.io_cpu() - service, MOST * (time.process_time() - attacker))

    def opened(self, target="/v1/stream"):
        """A client that writes records, after its upgrade."""
        client = RecordClient(self.serving.port, self.authority.ca)
        self.addCleanup(client.socket.close)
        client.send(client.record(upgrade(target)))
        self.assertIn(b"101", client.read())
        return client

    def stalled(self, flights, share):
        """A connection whose client sends `flights` flights, and of the last one this share. TLS has two flights; the third is
        the request."""
        client = self.enterContext(socket.create_connection(("127.0.0.1", self.serving.port), timeout=PATIENCE))
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = self.trusting.wrap_bio(incoming, outgoing, server_hostname="localhost")
        for number in range(1, flights + 1):
            with contextlib.suppress(ssl.SSLWantReadError):
                session.do_handshake()
                if number == 3:
                    session.write(upgrade())
            flight = outgoing.read()
            client.sendall(flight[:int(len(flight) * share)] if number == flights else flight)
            if number == 1 < flights:
                incoming.write(client.recv(65536))
        client.setblocking(False)
        return client

    def is_cut(self, client):
        """Whether the service has ended the connection. Reads what it has sent before."""
        with contextlib.suppress(BlockingIOError):
            try:
                while client.recv(65536):
                    pass
            except ConnectionResetError:
                pass
            return True
        return False

    def test_handshakes_that_stall_at_each_flight_delay_no_other_stream_and_are_cut(self):
        with self.unharmed(self.serving) as good, self.moved(self.serving, {("connections_rejected", "handshake"): 6}):
            stalled = [self.stalled(flights, share) for flights in (1, 2, 3) for share in (0.1, 0.9)]

            def all_are_cut():
                good.row()
                return all([self.is_cut(client) for client in stalled])

            wait_for(all_are_cut, "the handshakes to be cut", every=0.2)

    def test_a_flood_of_handshakes_delays_no_other_stream(self):
        def handshake(_):
            with contextlib.suppress(OSError), RawClient(self.serving.port, tls=self.trusting):
                pass

        with self.unharmed(self.serving) as good, self.bounded(), concurrent.futures.ThreadPoolExecutor(16) as pool:
            for number, _ in enumerate(pool.map(handshake, range(400))):
                if number % 20 == 0:
                    good.row()

    def test_new_keys_without_end_delay_no_other_stream(self):
        for asks in (False, True):
            client = self.opened()
            with self.subTest(asks=asks), self.unharmed(self.serving) as good, self.bounded():
                for _ in range(20):
                    client.send(b"".join(client.new_keys(asks) for _ in range(100)))
                    good.row()

    def test_records_without_data_are_an_end(self):
        client = self.opened()
        with self.unharmed(self.serving), self.bounded():
            client.send(b"".join(client.record(b"") for _ in range(1000)))
            wait_for(lambda: client.read() == b"", "the service to close")

    def test_a_record_over_the_limit_is_an_end_and_one_at_the_limit_is_not(self):
        client = self.opened()
        message = frame(BINARY, samples(0, 16000))
        client.send(client.record(message[:1 << 14]) + client.record(message[1 << 14:]))
        client.send(client.record(text(type="end")))
        received = []
        wait_for(lambda: received.append(client.read()) or b'"closed"' in b"".join(received), "the end of the stream")
        self.assertIn(b'"frames":16000', b"".join(received))
        with self.unharmed(self.serving):
            for record in ((1 << 14) + 1, (1 << 14) + 300):
                client = self.opened()
                client.send(client.record(bytes(record)))
                wait_for(lambda: client.read() == b"", "the service to close")

    def test_a_client_that_ends_in_the_middle_of_a_record_is_lost(self):
        with self.unharmed(self.serving):
            client = self.opened()
            client.send(client.record(frame(BINARY, samples(0, 1600)))[:-1])
            client.socket.close()
            self.await_metric(self.serving, 1, "millrace_streams_closed_total", reason="client_gone")


if __name__ == "__main__":
    unittest.main()
