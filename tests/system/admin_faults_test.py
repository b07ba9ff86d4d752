# SPDX-License-Identifier: Apache-2.0
"""Faults on the admin port, and input of clients in metrics and the log. Ids like G14 are those of docs/internals/guarantees.md."""
import concurrent.futures
import contextlib
import json
import time
import unittest

from faults import FaultTest, text
from harness import wait_for
from http_faults_test import GOOD, TLS
from raw_client import RawClient, upgrade

PAGES = {
    "garbage": (b"\x00\x01\x02garbage\r\n\r\n", 400),
    "a TLS hello": (TLS, 400),
    "a request line over 8 KiB": (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", 431),
    "two lengths": (upgrade("/metrics", Content_Length=["0", "5"]), 400),
    "a body": (upgrade("/metrics", Content_Length="5") + b"hello", 400),
    "POST": (GOOD.replace(b"GET", b"POST"), 405),
    "an upgrade": (GOOD, 404),
    "HEAD": (upgrade("/livez").replace(b"GET", b"HEAD"), 200),
    "a foreign name": (upgrade("/metrics", Host="evil.example"), 421),  # A37
    "a foreign name that begins with localhost": (upgrade("/metrics", Host="localhost.evil.example"), 421),
    "a path upwards": (upgrade("/../etc/passwd"), 404),
    "a query": (upgrade("/livez?a=b"), 200),
    "an unknown pipeline": (upgrade("/streams?pipeline=none"), 404),
    "an unknown order": (upgrade("/streams?order=size"), 400),
}
HOSTILE = ['"} 1', "a\nmillrace_x 1", "{}", "\\", "../../x", "a" * 1000, "%s%n", "\u202e", "a,b=c"]


class Admin(FaultTest):
    def status(self, service, request):
        def answer():
            with RawClient(service.admin_port, request) as client:
                return client.head()[0]

        return wait_for(answer, "an answer")  # the port closes a connection if its request comes 200 ms late

    def test_unusual_requests_to_the_admin_port_are_answered_and_change_no_counter(self):  # G14
        self.each(self.served(), PAGES, self.status)

    def test_an_invalid_limit_for_streams_is_answered_with_the_allowed_range(self):
        service = self.served()
        with self.unharmed(service) as good:
            for limit in ("-1", "0", "1000000000", "ten", "", "1e3", "%zz"):
                status, page = service.get(f"/streams?limit={limit}")
                error = json.loads(page)["error"]
                self.assertEqual((status, error["parameter"]), (400, "limit"), limit)
                self.assertRegex(error["message"], "from 1 to 10000|percent-encoding")
            good.row()

    def test_requesting_lists_of_streams_in_a_loop_disturbs_no_stream(self):  # G25
        service = self.served(slots=100)
        with self.moved(service, {}), self.unharmed(service) as good, contextlib.ExitStack() as connections:
            for number in range(60):
                connections.enter_context(RawClient(service.port, upgrade(f"/v1/stream?id=s{number}"))).opened()
            for number in range(200):
                status, page = service.get(f"/streams?order=name&limit={number % 30 + 1}")
                self.assertIn(status, (200, 503))  # 503: more than 20 different lists in a second
                if status == 200:
                    names = [stream["stream"] for stream in json.loads(page)["streams"]]
                    self.assertEqual((len(names), names), (number % 30 + 1, sorted(names)))
                if number % 20 == 0:
                    good.row()

    def test_metrics_are_collected_once_a_second_however_often_they_are_requested(self):  # G14
        service = self.served()
        began = time.monotonic()

        def scrape(_):
            return service.get("/metrics")[1]

        with self.unharmed(service) as good, concurrent.futures.ThreadPoolExecutor(3) as scrapers:
            pages = scrapers.map(scrape, range(300))
            for _ in range(50):
                good.row()
            pages = set(pages)
        self.assertLessEqual(len(pages), time.monotonic() - began + 2)

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

    def test_connections_that_stay_open_after_their_answer_do_not_keep_probes_out(self):  # G22
        service = self.served()
        with (self.moved(service, {}), self.unharmed(service) as good, contextlib.ExitStack() as connections):
            # If each kept its connection for 2 s, 64 at a time, the probe would wait longer than its timeout.
            request = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
            answered = [connections.enter_context(RawClient(service.admin_port, request)) for _ in range(1060)]
            self.assertEqual(service.get("/livez")[0], 200)
            good.row()
            for client in answered:
                self.assertEqual(client.head()[0], 200)

    def test_scrapers_that_read_slowly_do_not_keep_probes_out(self):  # G14
        service = self.served()
        with (self.moved(service, {}), self.unharmed(service) as good, contextlib.ExitStack() as scrapers):
            for _ in range(8):
                scrapers.enter_context(RawClient(service.admin_port, upgrade("/metrics"), receive_buffer=4096))
            for _ in range(3):
                self.assertEqual(service.get("/livez")[0], 200)
                good.row()


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
