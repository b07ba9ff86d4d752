# SPDX-License-Identifier: Apache-2.0
"""Faults on the admin port, and input of clients in metrics and the log. Ids like G14 are those of docs/internals/guarantees.md."""
import contextlib
import json
import unittest

from faults import FaultTest, text
from harness import wait_for
from raw_client import BINARY, RawClient, frame, upgrade

HOSTILE = ['"} 1', "a\nmillrace_x 1", "{}", "\\", "../../x", "a" * 1000, "%s%n", "\u202e", "a,b=c"]


class Admin(FaultTest):
    def test_requesting_lists_of_streams_in_a_loop_disturbs_no_stream(self):  # G25
        service = self.served(slots=100)
        with self.moved(service, {}), self.unharmed(service) as good, contextlib.ExitStack() as connections:
            listed = [connections.enter_context(RawClient(service.port, upgrade(f"/v1/stream?id=s{number}"))).opened()
                      for number in range(60)]
            for number in range(200):
                status, page = service.get(f"/streams?order=name&limit={number % 30 + 1}")
                self.assertIn(status, (200, 503))  # 503: more than 20 different lists in a second
                if status == 200:
                    names = [stream["stream"] for stream in json.loads(page)["streams"]]
                    self.assertEqual((len(names), names), (number % 30 + 1, sorted(names)))
                if number % 20 == 0:
                    good.row()
                    for client in listed:
                        client.send(frame(BINARY, b""))  # a silent stream would be closed after 30 s

    def test_silent_connections_do_not_keep_probes_out(self):  # G22
        service = self.served()
        with (self.moved(service, {}), self.unharmed(service) as good, contextlib.ExitStack() as connections):
            silent = [connections.enter_context(RawClient(service.admin_port, b"GET /metr")) for _ in range(200)]
            dripping = [connections.enter_context(RawClient(service.admin_port)) for _ in range(20)]
            for byte in b"GET /":
                for client in dripping:
                    client.send(bytes([byte]))
                self.assertEqual(service.get("/livez")[0], 200)
            good.row()
            for client in silent + dripping:
                self.assertFalse(client.receive())  # the service has closed the connection


class Labels(FaultTest):
    def series(self, service):
        return {line.rsplit(" ", 1)[0] for line in service.get("/metrics")[1].splitlines()
                if not line.startswith("#")}

    def test_input_of_clients_is_in_no_label_and_begins_no_line_of_the_log(self):  # G15, B19
        service = self.served()
        with self.unharmed(service):
            pass
        before = self.series(service)
        self.assertGreater(len(before), 300)
        quoted = ["".join(f"%{byte:02x}" for byte in name.encode()) for name in HOSTILE]
        for name in quoted:
            for key in ("id", "pipeline", "format", "options", name):
                with RawClient(service.port, upgrade(f"/v1/stream?{key}={name}")) as client:
                    client.head()
            with RawClient(service.port, upgrade("/" + name, User_Agent=name, Origin=name)) as client:
                client.head()
        for number in range(100):
            target = f"/v1/stream?id=name-{number}&options=" + quoted[number % len(quoted)].join(
                ("%7B%22a%22:%22", "%22%7D"))
            with RawClient(service.port, upgrade(target, User_Agent=f"agent {number}")) as client:
                if client.head()[0] == 101:
                    client.send(text(type="end")).rest()
        with RawClient(service.port, upgrade()) as client:
            client.opened().send(text(type=HOSTILE[0])).rest()
        service.recount()
        self.assertEqual(self.series(service), before)
        wait_for(lambda: json.loads(service.get("/streams")[1]) == {"total": 0, "streams": []}, "the streams to be gone")
        for line in service.errors:
            self.assertRegex(line, r"^time=\S+ level=(info|warning|error) event=")


if __name__ == "__main__":
    unittest.main()
