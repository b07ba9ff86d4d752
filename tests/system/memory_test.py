# SPDX-License-Identifier: Apache-2.0
"""Memory is short: the service sees a simulated control group, whose free memory the test sets. Ids like G5 are those of
docs/internals/guarantees.md."""
import json
import os
import re
import subprocess
import tempfile
import unittest

import client_wire
from faults import FaultTest, text
from harness import COUNTED, Service, samples, wait_for
from raw_client import BINARY, RawClient, frame, upgrade
from zeromq_client import Peer

# In a new mount namespace, so that no other process sees the simulated control group.
WITHIN = ("unshare", "--user", "--map-root-user", "--mount")
MOUNT = ("sh", "-c", 'mount --bind "$0" /sys/fs/cgroup && exec "$@"')
LIMIT = 1 << 40
PIPELINES = ('[[pipeline]]\nchunk = { size = 1600 }\n'
             '[[pipeline]]\nname = "stuck"\nworker_wait = "1h"\nchunk = { size = 1600 }\n')  # it has no worker


def setUpModule():
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run([*WITHIN, *MOUNT, folder, "true"], capture_output=True).returncode != 0:
            raise unittest.SkipTest("no mount namespace can be made here")


class ShortService(Service):
    def __init__(self, pipelines, free=LIMIT):
        self.free = free
        super().__init__(pipelines)

    def _start(self):
        self.group = os.path.join(self.folder.name, "cgroup")
        os.makedirs(os.path.join(self.group, "memory"))
        self._write("memory.max", LIMIT)
        self._write("memory/memory.limit_in_bytes", LIMIT)
        self.set_free(self.free)
        self.limits = (*WITHIN, *MOUNT, self.group)
        super()._start()

    def _write(self, name, number):
        """Replaces the file at once: the service may read it at any moment."""
        path = os.path.join(self.group, name)
        with open(path + ".new", "w") as file:
            file.write(f"{number}\n")
        os.rename(path + ".new", path)

    def set_free(self, free):
        """Sets the free bytes of the control group."""
        for name in ("memory.current", "memory/memory.usage_in_bytes"):
            self._write(name, LIMIT - free)

    def use(self, percent):
        """Sets the free memory so that the service uses this percentage of its limit."""
        self.set_free(self.memory() * (100 - percent) // percent)

    def active(self):
        return {action for action in ("reject_streams", "shed_recording", "close_idle", "reset_largest")
                if self.metric("millrace_overload_action_active", action=action)}


class Memory(FaultTest):
    def short_service(self, free=LIMIT, limits=""):
        service = ShortService(PIPELINES + limits, free)
        self.addCleanup(service.close)
        self.worker = self.tap(service)
        return service

    def client(self, service, target="/v1/stream"):
        client = RawClient(service.port, upgrade(target)).opened()
        self.addCleanup(client.socket.close)
        return client

    def await_actions(self, service, actions):
        wait_for(lambda: service.active() == actions, f"{actions}", COUNTED)

    def test_the_service_logs_at_its_start_how_much_memory_it_may_need_and_has(self):
        free = 300
        service = self.short_service(free << 20, "[limits]\nconnections = 9999\n")
        line = next(line for line in service.errors if "event=memory" in line)
        most, given = re.search(r'at_most="([\d.]+) GiB" there_is="([\d.]+) MiB"', line).groups()
        self.assertGreater(float(most), 10)  # for 9999 connections
        self.assertGreater(float(given), free)
        self.assertLess(float(given), free + (service.peak_memory() >> 20) + 1)
        self.assertIn("streams are refused", line)

    def test_the_bound_of_a_number_of_connections_that_is_not_configured_is_not_logged(self):
        line = next(line for line in self.short_service().errors if "event=memory" in line)
        self.assertNotIn("at_most", line)
        self.assertIn("one_worker_each", line)

    def test_while_memory_is_short_new_streams_are_refused_and_open_streams_continue(self):  # G5
        service = self.short_service()
        peer = Peer(service.zeromq_port)  # connected before: new connections are closed
        self.addCleanup(peer.close)
        peer.send(client_wire.open_(9, pipeline="none"))
        self.assertEqual(peer.next(9)["code"], "unknown_pipeline")
        with self.moved(service, {("connections_rejected", "overload"): 2}), self.unharmed(service) as good:
            ahead = self.client(service, "/v1/stream?pipeline=stuck&id=ahead")
            service.use(85)
            self.await_actions(service, {"reject_streams"})
            with RawClient(service.port, upgrade()) as client:
                status, fields = client.head()
                self.assertEqual(status, 503)
                self.assertIn(int(fields["retry-after"]), range(5, 16))
                self.assertEqual(json.loads(client.body(fields))["error"]["code"], "no_room")
            peer.send(client_wire.open_(1))
            refused = peer.next(1)
            self.assertEqual((refused["type"], refused["code"]), ("error", "no_room"))
            self.assertIn(refused["retry_after_ms"], range(5000, 15001, 1000))
            self.assertIn("memory", service.get("/readyz")[1])
            good.row()
            ahead.send(frame(BINARY, samples(0, 1600)) * 20)
            self.await_metric(service, 1, "millrace_ingest_paused_connections")
            for _ in range(3):  # longer than several checks of memory and of streams
                self.assertEqual(self.position(service, "ahead"), 1600)
                service.recount()
            service.set_free(LIMIT)
            self.await_actions(service, set())
            wait_for(lambda: self.position(service, "ahead") == 20 * 1600, "the stream to be read again")
            with self.unharmed(service):
                self.assertNotIn("memory", service.get("/readyz")[1])

    def test_while_memory_is_shorter_silent_clients_are_closed_sooner(self):  # G5
        service = self.short_service()
        expected = {("connections_closed", "idle"): 1, ("streams_closed", "idle"): 1}
        with self.moved(service, expected), self.unharmed(service) as good:
            silent = self.client(service)
            speaking = self.client(service)
            service.use(93)
            self.await_actions(service, {"reject_streams", "shed_recording", "close_idle"})

            def closed():
                speaking.send(text(type="keepalive"))
                good.row()
                return service.metric("millrace_streams_closed_total", reason="idle")

            wait_for(closed, "the silent client to be closed", COUNTED)
            self.assertEqual(silent.ended(), ("idle", 4408))
            speaking.send(text(type="end"))
            self.assertEqual(speaking.ended(), (None, 1000))

    def test_while_memory_is_almost_used_up_the_largest_streams_end_and_no_others(self):  # G5
        service = self.short_service()
        expected = {("connections_closed", "policy"): 2, ("streams_closed", "error"): 2}
        with self.moved(service, expected), self.unharmed(service) as good:
            clients = [self.client(service, f"/v1/stream?pipeline=stuck&id=c{number}") for number in range(5)]
            for client, rows in zip(clients, (1, 12, 2, 18, 0)):
                client.send(frame(BINARY, samples(0, rows * 1600)))
            wait_for(lambda: service.metric("millrace_chunk_buffer_bytes") >= 33 * 3200, "their frames to be held", COUNTED)
            service.use(97)
            for client in (clients[1], clients[3]):
                self.assertEqual(client.ended(), ("no_room", 1013))
            wait_for(lambda: any(f'stream evicted: memory is short" stream=c3 bytes={18 * 3200}' in line for line in service.errors),
                     "the log to name the first")
            self.await_actions(service, {"reject_streams", "shed_recording", "close_idle", "reset_largest"})
            good.row()
            for client in (clients[0], clients[2], clients[4]):
                client.send(text(type="keepalive"))  # a silent client is closed after 15 s
            service.set_free(LIMIT)
            self.await_actions(service, set())
            self.tap(service, "stuck")
            for client, rows in zip(clients, (1, 12, 2, 18, 0)):
                if rows < 10:
                    client.send(text(type="end"))
                    self.assertEqual(client.rest()[-1], {"type": "closed", "frames": rows * 1600, "chunks": rows})


if __name__ == "__main__":
    unittest.main()
