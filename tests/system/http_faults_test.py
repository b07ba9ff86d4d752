# SPDX-License-Identifier: Apache-2.0
"""What comes where an upgrade is expected."""
import collections
import time
import unittest

from faults import FaultTest, RawClient, upgrade
from raw_client import BINARY, KEY, frame
from harness import samples

GOOD = upgrade()
TLS = bytes.fromhex("160301020001 0001fc0303".replace(" ", "")) + bytes(508)

# What is sent, and the status that answers it; None: the connection ends without an answer.
HANDSHAKES = {
    "garbage": (b"\x00\x01\x02garbage\r\n\r\n", 400),
    "binary garbage": (bytes(range(256)) * 4, 400),
    "a TLS hello": (TLS, 400),
    "the preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "nothing but the end of a line": (b"\r\n\r\n", 400),
    "a request line over 8 KiB": (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", 431),
    "a field over 8 KiB": (upgrade(X="a" * 9000), 431),
    "65 fields": (upgrade(X=["a"] * 60), 431),
    "two lengths": (upgrade(Content_Length=["0", "5"]), 400),
    "a length and an encoding": (upgrade(Content_Length="5", Transfer_Encoding="chunked"), 400),
    "a body on the upgrade": (upgrade(Content_Length="5") + b"hello", 400),
    "a chunked body": (upgrade(Transfer_Encoding="chunked") + b"0\r\n\r\n", 400),
    "a length that is none": (upgrade(Content_Length="five"), 400),
    "a space in a field's name": (GOOD.replace(b"Host:", b"Ho st:"), 400),
    "GET without an upgrade": (b"GET /v1/stream HTTP/1.1\r\nHost: a\r\n\r\n", 426),
    "another upgrade": (upgrade(Upgrade="h2c"), 426),
    "version 8": (upgrade(Sec_WebSocket_Version="8"), 426),
    "no version": (upgrade(Sec_WebSocket_Version=None), 426),
    "no key": (upgrade(Sec_WebSocket_Key=None), 400),
    "two keys": (upgrade(Sec_WebSocket_Key=[KEY, KEY]), 400),
    "a short key": (upgrade(Sec_WebSocket_Key="AAAA"), 400),
    "a key that is no base64": (upgrade(Sec_WebSocket_Key="!" * 22 + "=="), 400),
    "no host": (upgrade(Host=None), 400),
    "HTTP/1.0": (GOOD.replace(b"HTTP/1.1", b"HTTP/1.0"), 400),
    "POST": (GOOD.replace(b"GET", b"POST"), 405),
    "another subprotocol": (upgrade(Sec_WebSocket_Protocol="chat"), 400),
}
PATHS = {
    "an unknown path": "/v2/stream",
    "the root": "/",
    "a path upwards": "/v1/../v1/stream",
    "files": "/../../etc/passwd",
    "a percent-encoded path": "/%76%31/stream",
    "an absolute target": "http://localhost/v1/stream",
    "an asterisk": "*",
    "a longer path": "/v1/stream/x",
}


class Handshakes(FaultTest):
    def answer(self, service, request):
        with RawClient(service.port, request) as client:
            status, fields = client.head()
            if status == 426:
                self.assertEqual(fields["sec-websocket-version"], "13")
            return status

    def test_what_is_no_good_upgrade_is_answered_and_disturbs_nobody(self):
        service = self.service()
        self.tap(service)
        expected = collections.Counter()
        with self.moved(service, expected), self.unharmed(service) as good:
            for name, (request, status) in HANDSHAKES.items():
                with self.subTest(name):
                    self.assertEqual(self.answer(service, request), status)
                expected["connections_rejected", "handshake"] += 1
                good.row()

    def test_paths_are_names_and_no_files(self):
        service = self.service()
        self.tap(service)
        expected = collections.Counter()
        with self.moved(service, expected), self.unharmed(service):
            for name, path in PATHS.items():
                with self.subTest(name):
                    self.assertEqual(self.answer(service, upgrade(path)), 404)
                expected["connections_rejected", "parameter"] += 1
            with self.subTest("a query of 4 KiB"):
                query = "/v1/stream?options=" + "%20" * 1500
                self.assertEqual(self.answer(service, upgrade(query)), 400)
            expected["connections_rejected", "parameter"] += 1

    def test_of_two_subprotocols_ours_is_picked(self):
        service = self.service()
        for listed in ("chat, millrace.v1", ["chat", "millrace.v1"]):
            with RawClient(service.port, upgrade(Sec_WebSocket_Protocol=listed)) as client:
                status, fields = client.head()
                self.assertEqual((status, fields["sec-websocket-protocol"]), (101, "millrace.v1"))

    def test_what_follows_a_good_upgrade_is_frames_and_never_a_second_request(self):
        service = self.service()
        self.tap(service)
        with RawClient(service.port, GOOD + frame(BINARY, samples(0, 1600))) as client:
            client.opened()
            self.assertEqual(client.message()["type"], "result")
        with self.moved(service, {("connections_closed", "protocol"): 1}):
            with RawClient(service.port, GOOD + GOOD) as client:
                client.opened()
                self.assertEqual(client.ended(), (None, 1002))


class SlowHandshakes(FaultTest):
    def test_who_does_not_finish_the_upgrade_is_cut_after_ten_seconds_and_nobody_waits_for_it(self):
        service = self.service()
        self.tap(service)
        silent = [RawClient(service.port) for _ in range(500)]
        with self.moved(service, {("connections_rejected", "handshake"): 510}), \
                self.unharmed(service) as good:
            slow = [RawClient(service.port) for _ in range(10)]
            began = time.monotonic()
            request = iter(GOOD)
            while time.monotonic() - began < 9:
                byte = bytes([next(request)])
                for client in slow:
                    client.send(byte)
                time.sleep(1)
                good.row()
                self.assertEqual(service.get("/livez")[0], 200)
            for client in silent + slow:
                self.assertEqual(client.head(), (None, {}))
                client.socket.close()
            self.assertGreater(time.monotonic() - began, 9)


if __name__ == "__main__":
    unittest.main()
