# SPDX-License-Identifier: Apache-2.0
"""Many clients at once that do little. Ids like A10 are those of docs/internals/guarantees.md."""
import os
import resource
import select
import time
import unittest

from faults import text
from harness import samples, wait_for
from many_clients import ManyClientsTest
from raw_client import BINARY, frame, upgrade

CLIENTS = 2000
LATE = 20  # clients beyond a limit
PIPELINE = "[[pipeline]]\nslots = 4000\nchunk = { size = 1600 }\n"


class ManyClients(ManyClientsTest):
    def test_thousands_of_silent_connections_keep_no_client_out(self):  # A10
        service = self.service(PIPELINE)
        self.tap(service)
        with self.unharmed(service) as good:
            for _ in range(CLIENTS):
                self.join(service)
            good.row()
            self.assertEqual(service.get("/livez")[0], 200)
            with self.unharmed(service):
                good.row()

    def test_clients_before_their_upgrade_are_bounded(self):  # A35
        service = self.service(PIPELINE, extra="[limits]\nconnections = 4\n")
        self.steadfast(service)
        with self.unharmed(service) as good:
            before, room = service.memory(), 4 + 512 - 1  # the good stream is one more
            with self.stopped(service):  # otherwise the first ones may have waited too long before the last one comes
                clients = [self.join(service, upgrade(X="a" * 7800)[:-2]) for _ in range(room + LATE)]
            self.await_metric(service, LATE, "millrace_ingest_connections_rejected_total", reason="limit_global")
            each = (service.memory() - before) / room
            print(f"resident memory: {each / 1024:.1f} KiB of a client before its upgrade")
            if not service.sanitized():
                self.assertLess(each, 32 << 10)
            good.row()
            answered = select.select([client.socket for client in clients], [], [], 0)[0]
            heads = [client.head() for client in clients if client.socket in answered]
            refused = [fields["retry-after"] for status, fields in heads if status == 503]
            self.assertEqual(len(refused), LATE)
            self.assertLessEqual(set(refused), set("12345"))
            good.row()

    def test_the_admin_port_answers_when_descriptors_run_out(self):  # A10, A11
        service = self.service("[[pipeline]]\nchunk = { size = 1600 }\n", descriptors=200)
        self.assertIn("RLIMIT_NOFILE is 200 and must be at least 11536", "\n".join(service.errors))
        self.steadfast(service)
        with self.unharmed(service) as good:
            descriptors = service.metric("process_open_fds")
            with self.stopped(service):
                for _ in range(300):  # 99 of them are accepted
                    self.join(service)
            good.row()
            for page in ("/livez", "/readyz", "/metrics"):
                self.assertEqual(service.get(page)[0], 200)
            self.assertEqual(len(service.streams()), 1)
            wait_for(lambda: service.metric("millrace_ingest_connections_rejected_total", reason="limit_global") == 201,
                     "the others to be refused")
            good.row()
            self.many_clients.close()  # then new clients are accepted again
            wait_for(lambda: service.metric("process_open_fds") <= descriptors + 10, "the accepted ones to be gone")
            with self.unharmed(service):
                pass

    def test_without_a_free_descriptor_open_streams_continue_and_new_connections_wait(self):  # A11
        service = self.served()
        process = service.process.pid
        limit = resource.prlimit(process, resource.RLIMIT_NOFILE)
        with self.moved(service, {}), self.unharmed(service) as good:
            service.get("/livez")
            open_ones = max(map(int, os.listdir(f"/proc/{process}/fd"))) + 1
            resource.prlimit(process, resource.RLIMIT_NOFILE, (open_ones, limit[1]))
            clients = [self.join(service, upgrade()) for _ in range(40)]
            for _ in range(10):
                good.row()
            resource.prlimit(process, resource.RLIMIT_NOFILE, limit)
            for client in clients:
                client.opened().send(text(type="end"))
                self.assertEqual(client.ended(), (None, 1000))

    def test_an_idle_stream_takes_little_memory(self):  # A31
        service = self.service(PIPELINE)
        self.tap(service)
        with self.unharmed(service) as good:
            before = service.memory()
            clients = self.opened(service, CLIENTS)
            idle = (service.memory() - before) / CLIENTS
            for begin in range(0, CLIENTS, 100):
                for client in clients[begin:begin + 100]:
                    client.send(frame(BINARY, samples(0, 1600)))
                for client in clients[begin:begin + 100]:
                    self.assertEqual(client.message()["type"], "result")
                good.row()
            used = (service.memory() - before) / CLIENTS
            print(f"resident memory: {idle / 1024:.1f} KiB of an idle stream, {used / 1024:.1f} KiB of one that was used")
            if not service.sanitized():
                self.assertLess(idle, 24 << 10)
            good.row()
            for client in clients:
                client.send(text(type="end"))
            for client in clients:
                self.assertEqual(client.ended(), (None, 1000))


if __name__ == "__main__":
    unittest.main()
