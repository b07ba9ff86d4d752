# SPDX-License-Identifier: Apache-2.0
"""Many clients at once that do little. Numbers like A10 name the case in docs/guarantees.md."""
import os
import resource
import unittest

from crowd import CrowdTest
from faults import text
from harness import samples, wait_for
from raw_client import BINARY, frame, upgrade

CROWD = 2000
PIPELINE = "[[pipeline]]\nslots = 4000\nchunk = { size = 1600 }\n"


class Crowd(CrowdTest):
    def test_thousands_that_say_nothing_keep_nobody_out(self):  # A10
        service = self.service(PIPELINE)
        self.tap(service)
        with self.unharmed(service) as good:
            for _ in range(CROWD):
                self.join(service)
            good.row()
            self.assertEqual(service.get("/livez")[0], 200)
            with self.unharmed(service):
                good.row()

    def test_clients_before_their_upgrade_are_bounded(self):  # A35
        service = self.service(PIPELINE, extra="[limits]\nconnections = 4\n")
        self.tap(service)
        with self.unharmed(service) as good:
            before = service.memory()
            waiting = [self.join(service, upgrade(X="a" * 7800)[:-2]) for _ in range(4 + 512 - 1)]  # beside the good one
            wait_for(lambda: service.metric("process_open_fds") > 4 + 512, "them to be there")
            each = (service.memory() - before) / len(waiting)
            print(f"resident memory: {each / 1024:.1f} KiB of a client before its upgrade")
            if not service.sanitized():
                self.assertLess(each, 32 << 10)
            late = self.join(service, upgrade())
            status, fields = late.head()
            self.assertEqual(status, 503)
            self.assertIn(int(fields["retry-after"]), range(1, 6))
            good.row()
            for client in waiting[:3]:
                client.send(b"\r\n").opened()
            good.row()

    def test_where_descriptors_end_the_admin_port_still_answers(self):  # A10, A11
        service = self.service("[[pipeline]]\nchunk = { size = 1600 }\n", descriptors=200)
        self.assertIn("RLIMIT_NOFILE is 200 and would have to be 11536", "\n".join(service.errors))
        self.tap(service)
        with self.unharmed(service) as good:
            for _ in range(300):  # of which 99 get in
                self.join(service)
            good.row()
            for page in ("/livez", "/readyz", "/metrics", "/streams"):
                self.assertEqual(service.get(page)[0], 200)
            wait_for(lambda: service.metric("millrace_ingest_connections_rejected_total", reason="limit_global") == 201,
                     "the others to be hung up on")
            good.row()
            self.crowd.close()  # and then there is room again
            wait_for(lambda: service.metric("millrace_ingest_connections_rejected_total", reason="handshake") == 99,
                     "those to be gone")
            with self.unharmed(service):
                pass

    def test_where_no_descriptor_is_left_open_streams_go_on_and_others_wait(self):  # A11
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
            clients = [self.join(service, upgrade()).opened() for _ in range(CROWD)]
            idle = (service.memory() - before) / CROWD
            for client in clients:
                client.send(frame(BINARY, samples(0, 1600)))
            for client in clients:
                self.assertEqual(client.message()["type"], "result")
            used = (service.memory() - before) / CROWD
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
