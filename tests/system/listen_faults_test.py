# SPDX-License-Identifier: Apache-2.0
"""What clients of Deepgram's /v1/listen can do wrong. Ids like A12 are those of docs/internals/guarantees.md."""
import collections
import json
import os
import signal
import tempfile
import time
import unittest

from access_test import new_token
from harness import wait_for
from raw_client import BINARY, KEY, PATIENCE, TEXT, RawClient, closing, frame, upgrade
from raw_worker import Honest, RawWorker
from realtime_client import COMMIT, HEARD, MOST, RealtimeTest, append, event, longest, update_input
from realtime_faults_test import Noting
from websocket_faults_test import PROTOCOL, UTF8, declared

PATH, PCM = "/v1/listen", "?encoding=linear16&sample_rate=16000"
CLOSED = "connections_closed"
AUDIO = frame(BINARY, bytes(6400))  # two rows
FINALIZE, KEEP_ALIVE, CLOSE_STREAM = event("Finalize"), event("KeepAlive"), event("CloseStream")
REQUESTS = {  # that are no upgrade, and the status
    "no upgrade": (upgrade(PATH + PCM, Upgrade=None, Sec_WebSocket_Key=None), 426),  # a question, and no client: not counted
    "version 12": (upgrade(PATH + PCM, Sec_WebSocket_Version="12"), 426),
    "no key": (upgrade(PATH + PCM, Sec_WebSocket_Key=None), 400),
    "two keys": (upgrade(PATH + PCM, Sec_WebSocket_Key=[KEY, KEY]), 400),
    "a POST": (upgrade(PATH + PCM).replace(b"GET", b"POST"), 405),
    "another subprotocol": (upgrade(PATH + PCM, Sec_WebSocket_Protocol="millrace.v1"), 400),
    "a foreign page": (upgrade(PATH + PCM, Origin="http://localhost.evil"), 403),
    "a foreign host": (upgrade(PATH + PCM, Host="example.org"), 421),
}
QUERIES = {  # the parameter that the refusal names
    "encoding": ("", "?", "?sample_rate=16000", "?encoding=", "?encoding=flac&sample_rate=16000", "?encoding=LINEAR16&sample_rate=16000",
                 "?encoding=containerized", "?encoding=s16le&sample_rate=16000", PCM + "&encoding=linear16", "?encoding=%FF"),
    "sample_rate": ("?encoding=linear16", *("?encoding=linear16&sample_rate=" + rate for rate in
                    ("", "0", "-1", "7999", "192001", "abc", "16000.5", "1e4", "nan", "99999999999", "%00")), PCM + "&sample_rate=16000"),
    "channels": tuple(PCM + "&channels=" + count for count in ("0", "2", "-1", "1.0", "one", "")),
    "multichannel": (PCM + "&multichannel=true", PCM + "&multichannel=1"),
    "callback": (PCM + "&callback=http%3A%2F%2F127.0.0.1%2F", PCM + "&callback="),
    "endpointing": tuple(PCM + "&endpointing=" + ms for ms in ("-5", "nan", "1e9", "99999999999", "soon", "", "10&endpointing=10")),
    "utterance_end_ms": tuple(PCM + "&utterance_end_ms=" + ms for ms in ("-1", "nan", "true", "")),
    "interim_results": (PCM + "&interim_results=1", PCM + "&interim_results=true&interim_results=true"),
    "vad_events": (PCM + "&vad_events=TRUE",),
    "model": (PCM + "&model=%FF", PCM + "&model=%zz", PCM + "&model=a&model=a"),
    "language": (PCM + "&language=%C0%AF", PCM + "&language=en&language=de"),
    "model, language, keyterm and keywords": tuple(
        PCM + f"&{name}=" + "m" * 5000 for name in ("model", "language", "keyterm", "keywords")),
}
TEXTS = {
    **{repr(text)[:20]: frame(TEXT, text) for text in
       (b"hello", b"", b"[]", b"1", b"null", b'"Finalize"', b"{}", b'{"type":"Finalize"}x', b'{"type":"Finalize"}\0',
        b'{"type":' + b"[" * 5000, b'{"type":["Finalize"]}')},
    "a type that is a number": event(1),
    "an unknown type": event("Dance"),
    "a type in other letters": event("finalize"),
    "an unknown text of 1 MiB": frame(TEXT, longest("Dance", "x")),
    "1 MiB that is no JSON": frame(TEXT, b"a" * MOST),
    "brackets of 1 MiB": frame(TEXT, b"[" * MOST),
    # Other protocols
    "Deepgram's other product": event("Configure"),
    "OpenAI's commit": COMMIT,
    "OpenAI's update": update_input(),
    "OpenAI's append": append(bytes(4800)),
    **{f"millrace.v1's {kind}": event(kind) for kind in ("end", "flush", "reset", "keepalive", "gap", "set")},
    "vosk's end": frame(TEXT, b'{"eof":1}'),
}


class ListenClient(RawClient):
    def __init__(self, service, query=PCM, receive_buffer=None, **fields):
        super().__init__(service.port, upgrade(PATH + query, **fields), receive_buffer)

    def opened(self):
        status, _ = self.head()
        assert status == 101, status
        return self

    def finalized(self):
        """Sends Finalize. Returns the text of its final result. None may be an error before it."""
        self.send(FINALIZE)
        deadline = time.monotonic() + PATIENCE  # pings of the service are no messages
        while (got := self.message()) and got["type"] == "Results" and not got["from_finalize"]:
            assert time.monotonic() < deadline, got
        assert got and got["type"] == "Results", (got, self.close_code)
        return got["channel"]["alternatives"][0]["transcript"]

    def error(self):
        """The variant of the next message, which is an error."""
        got = self.message()
        assert got and got["type"] == "Error" and got["description"] and got["message"], (got, self.close_code)
        return got["variant"]

    def ended(self):
        """Reads to the end. Returns the type of the last message, or the code of an error, and the close code."""
        messages = self.rest()
        return (messages[-1].get("code") or messages[-1]["type"] if messages else None), self.close_code


class ListenTest(RealtimeTest):
    client_type = ListenClient

    def client(self, service, query=PCM, **more):
        return super().client(service, query, **more)

    def is_whole(self, client):
        """The stream goes on: audio and Finalize give a final result."""
        self.assertEqual(client.send(AUDIO).finalized(), "heard")


class Upgrades(ListenTest):
    def refusal(self, client, status):
        """The message of a refused upgrade."""
        answered, fields = client.head()
        self.assertEqual(answered, status)
        body = json.loads(client.body(fields))
        self.assertEqual((list(body), len(body["request_id"])), (["err_code", "err_msg", "request_id"], 36))
        self.assertNotIn("", body.values())
        return body["err_msg"]

    def test_a_request_that_opens_no_stream_is_refused_with_its_status(self):
        service = self.heard()
        expected = {("connections_rejected", "handshake"): len(REQUESTS) - 1,  # without the first
                    ("connections_rejected", "parameter"): sum(map(len, QUERIES.values()))}
        with self.moved(service, expected), self.unharmed(service) as good:
            for name, (request, status) in REQUESTS.items():
                with self.subTest(name), RawClient(service.port, request) as client:
                    self.refusal(client, status)
                good.row()
            for parameter, queries in QUERIES.items():
                for query in queries:
                    with self.subTest(query[:80]), ListenClient(service, query) as client:
                        self.assertRegex(self.refusal(client, 400), f"^{parameter} (must|is) ")
                good.row()

    def test_parameters_that_mean_nothing_are_ignored_and_a_model_is_no_path(self):
        service = self.service("[[pipeline]]\nchunk = { size = 1600 }\n")
        worker = Noting(RawWorker(service.workers).attached().beat(), HEARD)
        self.addCleanup(worker.close)
        queries = {"&model=..%2F..%2Fetc%2Fpasswd": {"model": "../../etc/passwd"}, "&model=a%00%22%0A": {"model": 'a\0"\n'},
                   "&punctuate=%zz&tag=%FF&tag=" + "t" * 5000 + "&punctuate=1&x": None}
        with self.moved(service, {}):
            for query in queries:
                with ListenClient(service, PCM + query) as client:
                    self.is_whole(client.opened())
        self.assertEqual([text and json.loads(text) for text in worker.options], [options or "" for options in queries.values()])

    def test_a_stream_needs_a_token_in_any_of_its_forms_and_no_answer_has_one(self):  # A8
        token, line = new_token("alice")
        path = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "tokens")
        with open(path, "w") as file:
            file.write(line + "\n")
        service = self.heard(extra=f'[access]\ntokens = "{path}"\n')
        with self.moved(service, {("connections_rejected", "unauthenticated"): 8}):
            for echoed, fields in ((None, {"Authorization": f"Token {token}"}), (None, {"Authorization": f"Bearer {token}"}),
                                   ("token", {"Sec_WebSocket_Protocol": f"token, {token}"})):
                with self.subTest(fields), ListenClient(service, **fields) as client:
                    status, answered = client.head()
                    self.assertEqual((status, answered.get("sec-websocket-protocol")), (101, echoed))
                    self.assertNotIn(token, str(answered))
                    self.is_whole(client)
            for wrong in ({}, {"Authorization": f"Token {token[:-1]}"}, {"Authorization": f"Bearer {token}x"}, {"X_Api_Key": token},
                          {"Authorization": f"Basic {token}"}, {"Authorization": "Token " + "x" * 5000},
                          {"Sec_WebSocket_Protocol": f"token, {token[::-1]}"}, {"query": f"{PCM}&token={token}"}):
                with self.subTest(wrong), ListenClient(service, **wrong) as client:
                    self.assertNotIn(token, self.refusal(client, 401))
        self.assertFalse([text for text in service.errors if token in text])


class Messages(ListenTest):
    def test_a_text_that_is_no_message_gets_an_error_and_the_stream_continues(self):
        def error_of(service, sent):
            with ListenClient(service) as client:
                error = client.opened().send(sent).error()
                self.is_whole(client)
                self.assertEqual(client.send(AUDIO + CLOSE_STREAM).ended(), ("Metadata", 1000))
            return error

        self.each(self.heard(), {name: (sent, "SchemaError") for name, sent in TEXTS.items()}, error_of, ("messages_rejected", "schema"))

    def test_each_stream_ends_as_its_client_ended_it(self):  # A12 to A19, A23, A41
        half, end, keep_alive = frame(BINARY, bytes(6401)), ["Results", "Metadata", 1000], frame(TEXT, longest("KeepAlive", "x"))
        cases = {  # the messages with the close code, the counter, and what is sent
            # The worker also answers the last row without audio.
            "an end": (end, None, {
                "CloseStream": CLOSE_STREAM, "empty": frame(BINARY), "twice": CLOSE_STREAM * 2 + frame(BINARY),
                "after audio": AUDIO + CLOSE_STREAM, "empty after audio": AUDIO + frame(BINARY),
                "after 1 MiB": keep_alive + CLOSE_STREAM, "after two halves": half * 2 + CLOSE_STREAM}),
            "Finalize": (["Results"] * 3 + end, None, {"without audio": FINALIZE * 3 + CLOSE_STREAM}),
            "half a sample": (["DataError"] + end, ("messages_rejected", "format"),
                              {"CloseStream": half + CLOSE_STREAM, "empty": half + frame(BINARY)}),
            "a close": ([1000], None, {"at once": closing(1000), "after audio": AUDIO + closing(1000)}),
            "invalid": ([1002], (CLOSED, "protocol"), PROTOCOL),
            "no UTF-8": ([1007], (CLOSED, "protocol"), UTF8),
            "too long": ([1009], (CLOSED, "too_big"), {
                "a byte": frame(BINARY, bytes(MOST + 1)), "text": frame(TEXT, longest("KeepAlive", "x") + b" "),
                "fragments": frame(BINARY, bytes(MOST), fin=False) + frame(0, b"  "), "2^63 - 1 declared": declared((1 << 63) - 1)})}
        service, expected = self.heard(), collections.Counter()
        with self.moved(service, expected), self.unharmed(service) as good:
            for name, (messages, counter, sent) in cases.items():
                for variant, data in sent.items():
                    with self.subTest(name, variant=variant), ListenClient(service) as client:
                        client.opened().send(data).rest()
                        got = [message.get("variant", message["type"]) for message in client.messages]
                        self.assertEqual(got + [client.close_code], messages)
                    expected.update([counter] if counter else [])
                    good.row()

    def test_after_the_end_of_the_stream_audio_is_refused_and_the_results_still_come(self):
        service = self.service("[[pipeline]]\nchunk = { size = 1600 }\n")
        worker = RawWorker(service.workers).attached().beat()
        with self.moved(service, {("messages_rejected", "unknown_stream"): 3, ("messages_rejected", "schema"): 1}):
            client = self.client(service).send(AUDIO + CLOSE_STREAM + KEEP_ALIVE + AUDIO + FINALIZE + event("Dance") + AUDIO)
            self.assertEqual([client.error() for _ in range(4)], ["DataError", "DataError", "SchemaError", "DataError"])
            self.addCleanup(Honest(worker, HEARD).close)
            with self.unharmed(service):
                self.assertEqual(client.ended(), ("Metadata", 1000))
            self.assertEqual(client.messages[-2]["channel"]["alternatives"][0]["transcript"], "heard")


class Ends(ListenTest):
    def test_a_worker_that_hangs_is_replaced_and_the_stream_continues(self):
        service = self.service('[[pipeline]]\nchunk = { size = 1600 }\nfirst_answer_wait = "1s"\nanswer_wait = "1s"\n')
        with self.moved(service, {("worker_failures", "timeout"): 1}):
            hangs = RawWorker(service.workers).attached().beat()
            self.addCleanup(hangs.close)
            client = self.client(service).send(AUDIO)
            hangs.batch()
            self.addCleanup(Honest(RawWorker(service.workers).attached().beat(), HEARD).close)
            self.assertEqual(hangs.ended(), "timeout")
            self.assertEqual(client.finalized(), "heard")
            self.assertEqual(client.send(CLOSE_STREAM).ended(), ("Metadata", 1000))

    def test_if_no_worker_takes_the_stream_it_ends_with_an_error(self):
        service = self.heard(more='[[pipeline]]\nname = "deserted"\nchunk = { size = 1600 }\nworker_wait = "300ms"\n'
                                  '[[protocol]]\nname = "deepgram"\nmodels = { "m" = "deserted" }\n')
        with self.moved(service, {(CLOSED, "policy"): 1, ("streams_closed", "no_worker"): 1}), self.unharmed(service):
            self.assertEqual(self.client(service, PCM + "&model=m").send(AUDIO).ended(), ("no_worker", 1013))

    def test_when_the_service_stops_streams_get_their_results_and_metadata(self):
        service = self.heard()
        silent, busy = self.client(service), self.client(service).send(AUDIO + frame(BINARY, bytes(320)))
        wait_for(lambda: any(stream["frames"] == 3360 for stream in service.streams()), "its audio")
        service.process.send_signal(signal.SIGTERM)
        self.assertEqual([client.ended() for client in (silent, busy)], [("Metadata", 1012)] * 2)
        final, metadata = busy.messages[-2:]
        self.assertEqual((final["is_final"], final["channel"]["alternatives"][0]["transcript"]), (True, "heard"))
        self.assertEqual(metadata["duration"], 0.21)
        for client in silent, busy:
            client.socket.close()
        self.assertEqual(service.wait(), 0)


if __name__ == "__main__":
    unittest.main()
