# SPDX-License-Identifier: Apache-2.0
"""`millrace bench --speak`: the load generator as a client of OpenAI's and Deepgram's protocols, of this service and of others."""
import asyncio
import base64
import json
import os
import tempfile
import threading
import unittest
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

import websockets
from bench_test import PIPELINE, QUANTILES, bench
from harness import SystemTest

TRANSCRIPTION = "conversation.item.input_audio_transcription."


class ScriptedServer:
    """A WebSocket server of the test. `talk(connection)` serves a stream; `requests` are (path, Authorization, subprotocol)."""

    def __init__(self, talk, refuse=None):
        self.talk, self.refuse, self.requests = talk, refuse, []
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.server = asyncio.run_coroutine_threadsafe(self._listen(), self.loop).result()
        self.url = f"ws://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"

    async def _listen(self):
        return await websockets.serve(self._serve, "127.0.0.1", 0, process_request=self._request, ping_interval=None)

    async def _request(self, path, headers):
        self.requests.append((path, headers.get("Authorization"), headers.get("Sec-WebSocket-Protocol")))
        return (HTTPStatus(self.refuse), [], b"no") if self.refuse else None

    async def _serve(self, connection):
        try:
            await self.talk(connection)
        except websockets.ConnectionClosed:
            pass

    async def _stop(self):
        self.server.close()
        await self.server.wait_closed()

    def close(self):
        asyncio.run_coroutine_threadsafe(self._stop(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


async def talk_openai(connection):
    """A delta for each append; a transcription for each commit, with its item."""
    async def send(kind, **members):
        await connection.send(json.dumps({"event_id": "e", **members, "type": kind}))

    await send("session.created", session={"type": "transcription"})
    update = json.loads(await connection.recv())
    assert update["session"]["audio"]["input"]["turn_detection"] is None, update
    await send("session.updated", session=update["session"])
    items = audio = 0
    async for text in connection:
        message = json.loads(text)
        if message["type"] == "input_audio_buffer.append":
            audio += len(base64.b64decode(message["audio"], validate=True))
            await send(TRANSCRIPTION + "delta", item_id=f"i{items}", content_index=0, delta=" a")
        else:
            assert message == {"type": "input_audio_buffer.commit"}, message
            await send("input_audio_buffer.committed", item_id=f"i{items}", previous_item_id=None)
            await send(TRANSCRIPTION + "completed", item_id=f"i{items}", content_index=0, transcript="a",
                       usage={"type": "duration", "seconds": audio / 48000})
            items += 1


async def talk_deepgram(connection):
    """Results for all audio so far, at each packet and each Finalize."""
    query = parse_qs(urlsplit(connection.path).query)
    frame = int(query["sample_rate"][0]) * (2 if query["encoding"] == ["linear16"] else 1)
    audio = 0

    async def results(finalized):
        await connection.send(json.dumps({
            "type": "Results", "channel_index": [0, 1], "start": 0, "duration": round(audio / frame, 3), "is_final": finalized,
            "speech_final": False, "from_finalize": finalized, "metadata": {"request_id": "r"},
            "channel": {"alternatives": [{"transcript": "a", "confidence": 1, "words": []}]}}))

    async for message in connection:
        if isinstance(message, bytes):
            audio += len(message)
            await results(False)
        elif json.loads(message)["type"] == "Finalize":
            await results(True)
        else:
            assert json.loads(message) == {"type": "CloseStream"}, message
            await connection.send('{"type":"Metadata","request_id":"r","duration":1.0,"channels":1}')
            return  # closes with 1000


class BenchProtocols(SystemTest):
    def server(self, talk, refuse=None):
        server = ScriptedServer(talk, refuse)
        self.addCleanup(server.close)
        return server

    def test_clients_of_each_protocol_measure_this_service_row_by_row(self):
        service = self.service(PIPELINE.format(slots=60))  # a slot is free after the close, not with it
        for protocol, *rate in (("openai",), ("openai", "--rate", "16000"), ("openai", "--format", "mulaw"),
                                ("deepgram",), ("deepgram", "--rate", "8000", "--format", "alaw")):
            with self.subTest(protocol, rate=rate):
                code, (seen,), errors = bench(
                    "--url", f"ws://127.0.0.1:{service.port}", "--workers", service.workers, "--speak", protocol, "--worker",
                    "answer", "--streams", "20", "--commit", "300ms", "--life", "3s", "--duration", "3s", *rate)
                self.assertEqual((code, errors), (0, ""), seen)
                self.assertTrue(seen["whole"])
                self.assertGreaterEqual(seen["opened"], 20)
                self.assertEqual(seen["ended"], seen["opened"])
                self.assertEqual((seen["wrong"], seen["unanswered_rows"], seen["lost_frames"], seen["text_us"]), (0, 0, 0, None))
                self.assertGreater(seen["commits"], 60)
                self.assertEqual(seen["finished"], seen["commits"])
                for times in ("result_us", "row_us", "commit_to_final_us"):
                    self.assertEqual(set(seen[times]), QUANTILES)
                self.assertGreater(seen["result_us"]["count"], 500)  # at most 600

    def test_streams_of_each_protocol_that_vanish_are_counted(self):
        service = self.service(PIPELINE.format(slots=100))
        for protocol in ("openai", "deepgram"):
            with self.subTest(protocol):
                code, (seen,), errors = bench(
                    "--url", f"ws://127.0.0.1:{service.port}", "--workers", service.workers, "--speak", protocol, "--worker",
                    "answer", "--streams", "10", "--life", "300ms", "--aborts", "0.5", "--duration", "3s")
                self.assertEqual((code, errors), (0, ""), seen)
                self.assertGreater(seen["vanished_us"]["count"], 0)

    def test_a_ramp_of_openai_ends_at_the_most_streams_that_the_service_carries(self):
        service = self.service(PIPELINE.format(slots=5))
        code, lines, _ = bench("--url", f"ws://127.0.0.1:{service.port}", "--workers", service.workers, "--speak", "openai",
                               "--streams", "4", "--worker", "answer", "--ramp", "20s")
        self.assertEqual((code, lines[-1]), (0, {"most_streams": 5}))

    def test_commits_of_the_native_protocol_are_measured_too(self):
        service = self.service(PIPELINE.format(slots=5))
        code, (seen,), errors = bench("--url", f"ws://127.0.0.1:{service.port}", "--workers", service.workers, "--streams", "5",
                                      "--worker", "answer", "--commit", "200ms")
        self.assertEqual((code, errors), (0, ""), seen)
        self.assertGreater(seen["commits"], 10)
        self.assertEqual(seen["finished"], seen["commits"])

    def test_another_server_of_openai_is_measured_from_commit_to_final(self):
        server = self.server(talk_openai)
        with tempfile.TemporaryDirectory() as folder:
            token = os.path.join(folder, "token")
            with open(token, "w") as file:
                file.write("k1\n")
            code, (seen,), errors = bench("--url", server.url, "--speak", "openai", "--streams", "3", "--token-file", token,
                                          "--model", "whisper-1", "--commit", "200ms")
        self.assertEqual((code, errors), (0, ""), seen)
        self.assertEqual(server.requests, [("/v1/realtime?intent=transcription", "Bearer k1", None)] * 3)
        self.assertEqual((seen["result_us"], seen["results"]), (None, seen["packets"]))
        self.assertGreater(seen["text_us"]["count"], 0)
        self.assertGreater(seen["commit_to_final_us"]["count"], 0)
        self.assertEqual(seen["finished"], seen["commits"])

    def test_another_server_of_deepgram_is_measured_by_the_positions_of_its_results(self):
        server = self.server(talk_deepgram)
        with tempfile.TemporaryDirectory() as folder:
            token = os.path.join(folder, "token")
            with open(token, "w") as file:
                file.write("k1\n")
            for format, rate in (("s16le", "16000"), ("mulaw", "8000")):
                code, (seen,), errors = bench("--url", server.url + "/here/listen?smart_format=true", "--speak", "deepgram",
                                              "--streams", "3", "--token-file", token, "--model", "nova-3", "--commit", "200ms",
                                              "--format", format, "--rate", rate)
                self.assertEqual((code, errors), (0, ""), seen)
                encoding = {"s16le": "linear16"}.get(format, format)
                self.assertEqual(server.requests.pop(), (
                    f"/here/listen?smart_format=true&encoding={encoding}&sample_rate={rate}&channels=1&interim_results=true"
                    "&model=nova-3", "Token k1", None))
                self.assertEqual(seen["finished"], seen["commits"])
                self.assertEqual(seen["text_us"], None)
                self.assertGreaterEqual(seen["result_us"]["count"], 14)  # at most 15
                self.assertGreater(seen["commit_to_final_us"]["count"], 0)

    def test_a_ramp_of_a_server_without_positions_is_bounded_by_its_finals(self):
        server = self.server(talk_openai)
        code, lines, errors = bench("--url", server.url, "--speak", "openai", "--streams", "1", "--commit", "200ms",
                                    "--ramp", "1ns")
        self.assertEqual((code, lines[-1]), (1, {"most_streams": 0}), errors)

    def test_errors_closes_and_refusals_fail_the_run_with_their_text(self):
        async def error(connection):
            await connection.send('{"type":"error","error":{"type":"server_error","code":"full","message":"come later"}}')
            await connection.recv()

        async def error_later(connection):
            await connection.send('{"type":"session.created"}')
            await connection.recv()
            await connection.send('{"type":"session.updated"}')
            await connection.recv()
            await error(connection)

        async def close(connection):
            await connection.recv()
            await connection.close(1011, "NET-0001")

        for protocol, talk, refuse, outcome in (
                ("openai", error, None, {"refused": {"full: come later": 2}}),
                ("openai", error_later, None, {"broken": 2, "why": "full: come later"}),
                ("deepgram", close, None, {"broken": 2, "why": "the service closed the connection: 1011 NET-0001"}),
                ("openai", None, 401, {"refused": {"401": 2}}), ("deepgram", None, 402, {"refused": {"402": 2}})):
            with self.subTest(protocol, outcome=outcome):
                server = self.server(talk, refuse)
                code, (seen,), _ = bench("--url", server.url, "--speak", protocol, "--streams", "2")
                self.assertEqual((code, seen["whole"]), (1, False))
                self.assertEqual({name: seen[name] for name in outcome}, outcome)

    def test_an_invalid_argument_is_named_in_the_error(self):
        for wrong, words in (
                (("--speak", "openai", "--url", "tcp://127.0.0.1"), "--commit, --speak: need a ws:// or wss:// URL"),
                (("--speak", "openai", "--format", "f32le"), "--format: OpenAI has only s16le"),
                (("--speak", "deepgram", "--format", "s24le"), "--format: Deepgram has only s16le"),
                (("--speak", "openai", "--dim", "80"), "--speak: only millrace has features"),
                (("--speak", "deepgram", "--channels", "2"), "--speak: only millrace has features and several channels"),
                (("--speak", "openai", "--options", "{}"), "--options, --messages: only with --speak millrace"),
                (("--model", "m"), "--model: needs --speak"), (("--commit", "0s"), "--commit: must be positive"),
                (("--commit", "1s", "--url", "tcp://127.0.0.1"), "--commit, --speak: need a ws:// or wss:// URL")):
            with self.subTest(wrong):
                code, _, errors = bench(*wrong)
                self.assertEqual(code, 1)
                self.assertIn(words, errors)


if __name__ == "__main__":
    unittest.main()
