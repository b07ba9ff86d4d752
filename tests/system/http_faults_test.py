# SPDX-License-Identifier: Apache-2.0
"""Invalid requests in place of an upgrade. Ids like A1 are those of docs/internals/guarantees.md."""
import json
import unittest

from faults import PACKET, FaultTest, text
from harness import samples
from raw_client import BINARY, KEY, RawClient, frame, upgrade

GOOD = upgrade()
TLS = bytes.fromhex("16 0301 0200 01 0001fc 0303") + bytes(508)

# Requests, and the status of their answer.
HANDSHAKES = {
    # A1: not HTTP/1
    "garbage": (b"\x00\x01\x02garbage\r\n\r\n", 400),
    "binary garbage": (bytes(range(256)) * 4, 400),
    "a TLS hello": (TLS, 400),
    "the preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "only the end of a line": (b"\r\n\r\n", 400),
    # A2: too long
    "a request line over 8 KiB": (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", 431),
    "an id of 1 MiB": (upgrade("/v1/stream?id=" + "a" * (1 << 20)), 431),  # B19
    "a field over 8 KiB": (upgrade(X="a" * 9000), 431),
    "65 fields": (upgrade(X=["a"] * 60), 431),
    # A3: requests that another parser might read differently
    "two lengths": (upgrade(Content_Length=["0", "5"]), 400),
    "a length and an encoding": (upgrade(Content_Length="5", Transfer_Encoding="chunked"), 400),
    "a body on the upgrade": (upgrade(Content_Length="5") + b"hello", 400),
    "a chunked body": (upgrade(Transfer_Encoding="chunked") + b"0\r\n\r\n", 400),
    "a length that is not a number": (upgrade(Content_Length="five"), 400),
    "a space in a field's name": (GOOD.replace(b"Host:", b"Ho st:"), 400),
    # A4: no upgrade, or an invalid one
    "an upgrade whose field a proxy has removed": (upgrade(Upgrade=None), 426),
    "another upgrade": (upgrade(Upgrade="h2c"), 426),
    "version 8": (upgrade(Sec_WebSocket_Version="8"), 426),
    "no version": (upgrade(Sec_WebSocket_Version=None), 426),
    "no key": (upgrade(Sec_WebSocket_Key=None), 400),
    "two keys": (upgrade(Sec_WebSocket_Key=[KEY, KEY]), 400),
    "a short key": (upgrade(Sec_WebSocket_Key="AAAA"), 400),
    "a key that is not base64": (upgrade(Sec_WebSocket_Key="!" * 22 + "=="), 400),
    "no host": (upgrade(Host=None), 400),
    # A7: origins that are not listed
    "a page's origin": (upgrade(Origin="https://evil.example"), 403),
    "the origin null": (upgrade(Origin="null"), 403),
    # A37: a name that was rebound to this machine
    "a foreign host": (upgrade(Host="evil.example"), 421),
    "a foreign host that begins with 127.0.0.1": (upgrade(Host="127.0.0.1.evil.example:8080"), 421),
    "HTTP/1.0": (GOOD.replace(b"HTTP/1.1", b"HTTP/1.0"), 400),
    "POST": (GOOD.replace(b"GET", b"POST"), 405),
    # A6
    "another subprotocol": (upgrade(Sec_WebSocket_Protocol="chat"), 400),
}
# A5: paths are names, and never files
TARGETS = {
    "an unknown path": (upgrade("/v2/stream"), 404),
    "the root": (upgrade("/"), 404),
    "a path upwards": (upgrade("/v1/../v1/stream"), 404),
    "files": (upgrade("/../../etc/passwd"), 404),
    "a percent-encoded path": (upgrade("/%76%31/stream"), 404),
    "an absolute target": (upgrade("http://localhost/v1/stream?rate=fast"), 400),  # A42: answered like its path
    "an asterisk": (upgrade("*"), 404),
    "a longer path": (upgrade("/v1/stream/x"), 404),
    "a query of 4 KiB": (upgrade("/v1/stream?id=" + "a" * 4096), 414),
    "a query of 1000 parameters": (upgrade("/v1/stream?" + "a&" * 1000), 400),
}


class Upgrades(FaultTest):
    def status(self, service, request):
        with RawClient(service.port, request) as client:
            status, fields = client.head()
            if status == 426:
                self.assertEqual(fields["sec-websocket-version"], "13")
            if status != 101:
                self.assertIn("message", json.loads(client.body(fields))["error"])
            return status

    def test_an_invalid_upgrade_is_answered_and_disturbs_no_stream(self):
        self.each(self.served(), HANDSHAKES, self.status, ("connections_rejected", "handshake"))

    def test_an_invalid_target_is_answered_and_disturbs_no_stream(self):
        self.each(self.served(), TARGETS, self.status, ("connections_rejected", "parameter"))

    def test_explain_is_refused_by_name_if_it_is_not_allowed(self):
        service = self.served()
        with self.moved(service, {("connections_rejected", "parameter"): 1}), self.unharmed(service):
            with RawClient(service.port, upgrade("/v1/stream?explain=1")) as client:
                status, fields = client.head()
                error = json.loads(client.body(fields))["error"]
                self.assertEqual((status, error["code"], error["parameter"]), (400, "schema", "explain"))
                self.assertIn("explain", error["message"])

    def test_of_two_subprotocols_the_service_picks_its_own(self):  # A6
        service = self.served()
        for listed in ("chat, millrace.v1", ["chat", "millrace.v1"]):
            with RawClient(service.port, upgrade(Sec_WebSocket_Protocol=listed)) as client:
                status, fields = client.head()
                self.assertEqual((status, fields["sec-websocket-protocol"]), (101, "millrace.v1"))

    def test_bytes_after_a_valid_upgrade_are_frames_and_never_a_second_request(self):  # A3
        service = self.served()
        with self.moved(service, {("connections_closed", "protocol"): 1}):
            with RawClient(service.port, GOOD + frame(BINARY, samples(0, PACKET))) as client:
                self.assertEqual(client.opened().message()["type"], "result")
            with RawClient(service.port, GOOD + GOOD) as client:
                self.assertEqual(client.opened().ended(), (None, 1002))

    def test_a_stream_beyond_the_last_slot_is_refused_with_503(self):  # C12
        service = self.served(slots=1)
        with self.moved(service, {("connections_rejected", "no_room"): 1}):
            with self.unharmed(service) as good, RawClient(service.port, GOOD) as client:
                status, fields = client.head()
                self.assertEqual((status, fields["retry-after"] in map(str, range(1, 6))), (503, True))
                good.row()
            with RawClient(service.port, GOOD) as client:  # there is room again
                client.opened().send(text(type="end"))
                self.assertEqual(client.ended(), (None, 1000))

    def test_a_connection_beyond_the_limit_is_refused_with_503(self):  # C12
        service = self.served(extra="[limits]\nconnections = 1\n")
        with self.moved(service, {("connections_rejected", "limit_global"): 1}):
            with self.unharmed(service) as good, RawClient(service.port, GOOD) as client:
                status, fields = client.head()
                self.assertEqual((status, fields["retry-after"] in map(str, range(1, 6))), (503, True))
                good.row()


if __name__ == "__main__":
    unittest.main()
