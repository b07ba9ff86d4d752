# SPDX-License-Identifier: Apache-2.0
"""Invalid requests and frames of clients of /v1/realtime. Ids like A12 are those of docs/internals/guarantees.md."""
import json
import os
import socket
import tempfile
import unittest

from access_test import new_token
from harness import wait_for
from raw_client import BINARY, KEY, PING, TEXT, RawClient, closing, frame, upgrade
from raw_worker import Honest, RawWorker
from realtime_client import (CLEAR, COMMIT, COMPLETED, HEARD, MOST, PATH, RealtimeClient, RealtimeTest, append, longest,
                             update_input)
from websocket_faults_test import PROTOCOL, UTF8, colliding_keys, declared

AUDIO = bytes(4800)  # 100 ms
OTHERS = {  # no request of the protocol: the request, the status, and the reason that is counted
    # A1
    "garbage": (b"\x00\xff" * 50 + b"\r\n\r\n", 400, "handshake"),
    "a hello of TLS": (b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + bytes(154), 400, "handshake"),
    # A2
    "a header of 33 KiB": (upgrade(PATH, X="a" * 33000), 431, "handshake"),
    "65 fields": (upgrade(PATH, X=["a"] * 65), 431, "handshake"),
    # A3
    "two lengths": (upgrade(PATH, Content_Length=["0", "5"]), 400, "handshake"),
    "a body": (upgrade(PATH, Content_Length="5") + b"hello", 400, "handshake"),
    "chunks and a length": (upgrade(PATH, Transfer_Encoding="chunked", Content_Length="5"), 400, "handshake"),
    # A5
    "a path below": (upgrade(PATH + "/x"), 404, "parameter"),
    "a path with ..": (upgrade("/v1/../v1/realtime"), 404, "parameter"),
    "percent signs in the path": (upgrade("/v1/%72ealtime"), 404, "parameter"),
}
REQUESTS = {
    # A4
    "no upgrade": (upgrade(PATH, Upgrade=None, Sec_WebSocket_Key=None), 426, None),  # a question, and no client
    "another upgrade": (upgrade(PATH, Upgrade="h2c"), 426, "handshake"),
    "version 12": (upgrade(PATH, Sec_WebSocket_Version="12"), 426, "handshake"),
    "no key": (upgrade(PATH, Sec_WebSocket_Key=None), 400, "handshake"),
    "two keys": (upgrade(PATH, Sec_WebSocket_Key=[KEY, KEY]), 400, "handshake"),
    "a short key": (upgrade(PATH, Sec_WebSocket_Key="AAAA"), 400, "handshake"),
    "a POST": (upgrade(PATH).replace(b"GET", b"POST"), 405, "handshake"),
    # A5
    "a model of 5000 bytes": (upgrade(PATH + "?model=" + "m" * 5000), 400, "parameter"),
    # A6
    "another subprotocol": (upgrade(PATH, Sec_WebSocket_Protocol="millrace.v1"), 400, "handshake"),
    # A7
    "a foreign page": (upgrade(PATH, Origin="http://localhost.evil"), 403, "handshake"),
    "a page of a file": (upgrade(PATH, Origin="null"), 403, "handshake"),
    # A37
    "a foreign host": (upgrade(PATH, Host="example.org"), 421, "handshake"),
    "a model that is not UTF-8": (upgrade(PATH + "?model=%ff"), 400, "parameter"),
}


class Noting(Honest):
    """A worker that keeps the options of each stream."""

    def _work(self, answer):
        self.options, get = [], self.link.batch

        def batch():
            got = get()
            self.options += [stream.options for stream in got.opened] if got else []
            return got

        self.link.batch = batch
        super()._work(answer)


class Upgrades(RealtimeTest):
    def test_a_request_that_opens_no_session_is_refused_with_its_status(self):
        service = self.heard()
        expected = {}
        with self.moved(service, expected), self.unharmed(service) as good:
            for name, (request, status, reason) in {**OTHERS, **REQUESTS}.items():
                with self.subTest(name), RawClient(service.port, request) as client:
                    answered, fields = client.head()
                    self.assertEqual(answered, status)
                    error = json.loads(client.body(fields))["error"]
                    if name in REQUESTS:
                        self.assertEqual((error["type"], error["message"] != ""), ("invalid_request_error", True))
                if reason:
                    key = "connections_rejected", reason
                    expected[key] = expected.get(key, 0) + 1
                good.row()

    def test_only_a_subprotocol_that_both_have_is_echoed(self):  # A6
        service = self.heard()
        with self.moved(service, {}), self.unharmed(service):
            for listed, echoed in {None: None, "realtime": "realtime", "chat, realtime": "realtime",
                                   "realtime, openai-insecure-api-key.secret, openai-beta.realtime-v1": "realtime"}.items():
                with self.subTest(listed), RealtimeClient(service, Sec_WebSocket_Protocol=listed,
                                                          Sec_WebSocket_Extensions="permessage-deflate") as client:  # A23
                    status, fields = client.head()
                    self.assertEqual((status, fields.get("sec-websocket-protocol")), (101, echoed))
                    self.assertNotIn("sec-websocket-extensions", fields)

    def test_the_name_of_a_model_is_text_for_the_worker_and_no_path(self):
        service = self.service("[[pipeline]]\nchunk = { size = 1600 }\n")
        worker = Noting(RawWorker(service.workers).attached().beat(), HEARD)
        self.addCleanup(worker.close)
        queries = {"?model=..%2F..%2Fetc%2Fpasswd": {"model": "../../etc/passwd"}, "?model=a%00%22%0A": {"model": 'a\0"\n'},
                   "?model=%zz": None, "?model=": None, "?models=a&x=%ff": None}
        with self.moved(service, {}):
            for query in queries:
                with RealtimeClient(service, query) as client:
                    self.is_whole(client.opened().updated())
        self.assertEqual([text and json.loads(text) for text in worker.options], [options or "" for options in queries.values()])

    def test_bytes_after_the_upgrade_are_frames(self):  # A3
        service = self.heard()
        with self.moved(service, {("connections_closed", "protocol"): 1}), self.unharmed(service):
            with RawClient(service.port, upgrade(PATH) + update_input() + append(AUDIO) + COMMIT) as client:
                self.assertEqual(RealtimeClient.opened(client).message()["type"], "session.updated")
                self.assertEqual(RealtimeClient.until(client, COMPLETED)["transcript"], "heard")
            with RawClient(service.port, upgrade(PATH) + upgrade(PATH)) as client:  # "GE" has reserved bits
                self.assertEqual(RealtimeClient.opened(client).rest()[1:], [])
                self.assertEqual(client.close_code, 1002)


class Tokens(RealtimeTest):
    def test_a_session_needs_a_token_in_any_of_its_forms_and_no_answer_has_one(self):  # A8
        token, line = new_token("alice")
        path = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "tokens")
        with open(path, "w") as file:
            file.write(line + "\n")
        service = self.heard(extra=f'[access]\ntokens = "{path}"\n')

        def answer(query="", **fields):
            """(status, fields) of a request, and what follows them."""
            with RawClient(service.port, upgrade(PATH + query, **fields)) as client:
                status, fields = client.head()
                body = client.body(fields).decode() if status != 101 else ""
                self.assertNotIn(token, str(fields) + body)
                if status == 101:
                    self.assertEqual(fields.get("sec-websocket-protocol"), sub)
                    self.assertEqual(client.message()["type"], "session.created")
                    self.assertEqual(RealtimeClient.ended(client.send(closing(1000))), (None, 1000))
                return status

        with self.moved(service, {("connections_rejected", "unauthenticated"): 8}):
            for sub, fields in ((None, {"Authorization": f"Bearer {token}"}), (None, {"Authorization": f"Token {token}"}),
                                ("realtime", {"Sec_WebSocket_Protocol": f"realtime, openai-insecure-api-key.{token}"})):
                self.assertEqual(answer(**fields), 101)
            for wrong in ({}, {"Authorization": f"Bearer {token[:-1]}"}, {"Authorization": f"Bearer {token}x"}, {"X_Api_Key": token},
                          {"Authorization": f"Basic {token}"}, {"Authorization": "Bearer " + "x" * 5000},
                          {"Sec_WebSocket_Protocol": "realtime, openai-insecure-api-key.sk-1"}):
                self.assertEqual(answer(**wrong), 401)
            self.assertEqual(answer(f"?token={token}&api_key={token}"), 401)
        self.assertFalse([text for text in service.errors if token in text])


class Frames(RealtimeTest):
    def all_end(self, cases, how, *counters):
        self.each(self.heard(), {name: (sent, how) for name, sent in cases.items()}, self.end_after, *counters)

    def test_a_protocol_error_is_closed_with_1002(self):  # A12 to A18, A23
        self.all_end(PROTOCOL, (None, 1002), ("connections_closed", "protocol"))

    def test_text_that_is_not_utf8_is_closed_with_1007(self):  # A17, A41
        self.all_end(UTF8, (None, 1007), ("connections_closed", "protocol"))

    def test_a_message_over_the_limit_is_closed_with_1009_before_it_is_read(self):  # A19
        service = self.heard()
        with RealtimeClient(service) as client:  # a message of the limit is taken, and its memory does not count below
            client.opened().updated().send(frame(TEXT, longest("input_audio_buffer.append", "audio")))
            self.assertEqual(client.turn(), "heard")
        before = service.peak_memory()

        def end_after(service, sent):
            end = self.end_after(service, sent)
            if not service.sanitized():
                self.assertLess(service.peak_memory() - before, 8 << 20)  # no memory was taken for declared bytes
            return end

        whole = longest("input_audio_buffer.append", "audio")
        cases = {"a byte over the limit": frame(TEXT, whole + b" "), "a binary one": frame(BINARY, bytes(MOST + 1)),
                 "16 MiB": frame(TEXT, b"a" * (16 << 20)), "4 GiB declared": declared(1 << 32),
                 "2^63 - 1 declared": declared((1 << 63) - 1),  # A16
                 "fragments over the limit": frame(TEXT, whole, fin=False) + frame(0, b"  ", fin=True)}
        self.each(service, {name: (sent, (None, 1009)) for name, sent in cases.items()}, end_after,
                  ("connections_closed", "too_big"))

    def test_a_message_in_fragments_of_one_byte_is_one_message(self):  # A20
        service = self.heard()
        text = b'{"type":"input_audio_buffer.append","audio":"' + b"A" * 16384 + b'"}'
        crumbs = b"".join(frame(0 if i else TEXT, text[i:i + 1], fin=i == len(text) - 1) + (frame(PING) if i % 999 == 0 else b"")
                          for i in range(len(text)))
        with self.moved(service, {}), self.unharmed(service):
            client = self.client(service).updated().send(crumbs)
            self.assertEqual(client.turn(), "heard")
            client.socket.close()

    def test_a_text_that_is_costly_to_parse_costs_at_most_100_times_as_much_as_audio(self):  # A34
        service = self.heard()
        keys = b",".join(b'"%s":1' % key for key in colliding_keys(4096) * 16)
        whole = longest("input_audio_buffer.append", "audio")
        texts = {"keys that collide": b'{"type":"session.update","session":{' + keys + b"}}",
                 "brackets": b'{"type":' + b"[" * (MOST - 100), "quotes": b'{"type":"' + b'\\"' * (MOST // 2 - 100) + b'"}',
                 "the same member": b'{"type":"session.update","session":{' + b'"audio":{},' * 90_000 + b'"x":0}}',
                 "escapes": b'{"type":"input_audio_buffer.append","audio":"' + b"\\u0041" * (MOST // 24 * 4 - 64) + b'"}'}

        def cost(text):
            """The CPU seconds of a byte of this text."""
            before = service.io_cpu()
            for _ in range(5):
                with RealtimeClient(service) as client:
                    client.opened().updated().send(frame(TEXT, text) + CLEAR)
                    while client.message()["type"] != "input_audio_buffer.cleared":
                        pass
                    self.is_whole(client)  # its rows are done
            return (service.io_cpu() - before) / len(text)

        audio = cost(whole)
        for name, text in texts.items():
            with self.subTest(name), self.unharmed(service):
                ratio = cost(text) / audio
                print(f"CPU of {name}: {ratio:.1f} times of that of as much audio")
                self.assertLess(ratio, 100)

    def test_a_close_is_answered_and_ends_the_stream(self):
        service = self.heard()
        with self.moved(service, {}), self.unharmed(service):
            for code in (1000, 1001, 4000):
                for audio in (b"", append(AUDIO)):
                    with self.subTest(code), RealtimeClient(service) as client:
                        self.assertEqual(client.opened().send(audio + closing(code)).ended(), (None, code))
            wait_for(lambda: len(service.streams()) == 1, "the streams to end")

    def test_half_a_message_is_dropped_with_its_connection(self):  # A28
        service = self.heard(slots=2)  # one slot is left for these streams
        half = append(AUDIO)[:-100]
        with self.moved(service, {}), self.unharmed(service):
            for name in ("fin", "rst", "half-closed", "fin within a header"):
                with self.subTest(name), RealtimeClient(service) as client:
                    client.opened().updated().send(append(bytes(9600)))
                    self.assertEqual(client.turn(), "heard")
                    client.send(half[:3] if "header" in name else half)
                    if name == "rst":
                        client.abort()
                    if name == "half-closed":
                        client.socket.shutdown(socket.SHUT_WR)
                        self.assertEqual(client.ended(), (None, None))
                    client.socket.close()
                    wait_for(lambda: len(service.streams()) == 1, "room for the next")


if __name__ == "__main__":
    unittest.main()
