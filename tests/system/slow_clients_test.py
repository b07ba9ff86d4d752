# SPDX-License-Identifier: Apache-2.0
"""Clients that do not read: what the kernel holds for them. tests/transport/sessions has their time limits, in virtual time."""
import contextlib
import re
import select
import socket
import subprocess
import unittest

from faults import FaultTest
from harness import COUNTED, MILLRACE, samples, wait_for
from raw_client import BINARY, RawClient, frame, upgrade
from raw_worker import Honest, RawWorker


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
