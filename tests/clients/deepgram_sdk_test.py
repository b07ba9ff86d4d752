# SPDX-License-Identifier: Apache-2.0
"""Deepgram's Python SDK, with blocking calls and with asyncio, at the protocol `deepgram`. Each message is checked against the
SDK's own models."""
import audioop
import contextlib
import http.client
import json
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.parse
from pathlib import Path

from deepgram.core import ApiError
from deepgram.listen.v1.types import (
    ListenV1Error,
    ListenV1Metadata,
    ListenV1Results,
    ListenV1SpeechStarted,
    ListenV1UtteranceEnd,
)
from deepgram_talk import RATE, Blocking, WithAsyncio, finals, from_finalize, results, text
from script import FAILS, OPTIONS, SILENT, said
from served import PATIENCE, PIPELINE, Served, speech, with_moonshine
from websockets.exceptions import ConnectionClosedOK, InvalidStatus

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import printed_programs as printed  # noqa: E402

AUDIO = {"model": "nova-3", "encoding": "linear16", "sample_rate": RATE, "channels": 1}
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}


class Live:
    Talk = Blocking

    def connect(self, key="any", tls="", **query):
        talk = self.Talk(self.host, {**AUDIO, **query}, key, tls)
        self.addCleanup(talk.close)
        if self.Talk is Blocking:
            self.limited(talk.connection._websocket.close)
        return talk

    def start(self, *arguments):
        self.serve(*arguments)
        return self.worker()

    def test_a_closed_stream_gets_its_results_its_metadata_and_code_1000(self):
        self.start()
        talk = self.connect(interim_results=True)
        talk.send(said(1, 2, 3, rate=RATE))
        *messages, metadata = talk.end()
        self.assertEqual(finals(messages), ["w1 w2 w3"])
        self.assertIn("w1 w2", [text(result) for result in results(messages) if not result.is_final])
        self.assertEqual(len(messages), len(results(messages)))
        self.assertIsInstance(metadata, ListenV1Metadata)
        self.assertEqual((metadata.duration, metadata.channels), (0.75, 1))
        self.assertEqual({result.metadata.request_id for result in messages}, {metadata.request_id})

    def test_an_empty_message_closes_the_stream(self):
        self.start()
        talk = self.connect()
        talk.send(said(1, 2, rate=RATE))
        talk.run(talk.connection.send_media(b""))
        messages, code = talk.rest()
        self.assertEqual((finals(messages), type(messages[-1]), code), (["w1 w2"], ListenV1Metadata, 1000))

    def test_a_stream_without_audio_gets_its_metadata(self):
        self.start()
        *messages, metadata = self.connect().end()
        self.assertEqual((finals(messages), metadata.duration), ([], 0))

    def test_results_have_all_members(self):
        self.start()
        talk = self.connect(interim_results=True)
        talk.send(said(1, 0, 3, rate=RATE))
        for result in results(talk.end()):
            self.assertEqual(result.channel_index, [0, 1])
            for member in (result.is_final, result.speech_final, result.from_finalize):
                self.assertIsInstance(member, bool)
            for member in (result.start, result.duration, result.channel.alternatives[0].confidence):
                self.assertIsInstance(member, float | int)
            self.assertTrue(result.metadata.request_id and result.metadata.model_uuid and result.metadata.model_info.name)
            words = result.channel.alternatives[0].words
            self.assertEqual(" ".join(word.word for word in words), text(result))
            for word in words:
                self.assertLessEqual(result.start, word.start)
                self.assertLess(word.start, word.end)
        self.assertEqual([(word.start, word.end) for word in words], [(0, 0.25), (0.5, 0.75)])

    def test_without_interim_results_all_results_are_final(self):
        self.start()
        for query in ({}, {"interim_results": False}):
            talk = self.connect(**query)
            talk.send(said(1, 2, 3, rate=RATE))
            *messages, _ = talk.end()
            self.assertTrue(all(result.is_final for result in messages))
            self.assertEqual(finals(messages), ["w1 w2 w3"])

    def test_finalize_gives_a_final_result_and_the_stream_goes_on(self):
        self.start()
        talk = self.connect()
        start = 0
        for levels, expected in (((1, 2), ["w1 w2"]), ((), []), ((3,), ["w3"])):
            talk.send(said(*levels, rate=RATE))
            talk.finalize()
            messages = talk.until(from_finalize)
            self.assertEqual(finals(messages), expected)
            self.assertTrue(messages[-1].is_final)
            self.assertEqual(messages[-1].start, start)
            start += 0.25 * len(levels)
        talk.send(said(4, rate=RATE))
        *messages, metadata = talk.end()
        self.assertEqual(finals(messages), ["w4"])
        self.assertFalse(any(result.from_finalize for result in messages))
        self.assertEqual(metadata.duration, 1)

    def test_keep_alive_has_no_answer(self):
        self.start()
        talk = self.connect()
        talk.keep_alive()
        talk.send(said(1, rate=RATE))
        talk.keep_alive()
        talk.send(said(2, rate=RATE))
        talk.keep_alive()
        *messages, metadata = talk.end()
        self.assertEqual((finals(messages), metadata.duration), (["w1 w2"], 0.5))
        self.assertEqual(len(messages), len(results(messages)))

    def test_an_endpoint_of_the_worker_is_a_final_result_of_a_whole_utterance(self):
        self.serve(PIPELINE + 'endpoint = { by = "worker" }\n')
        self.worker("--endpoints")
        talk = self.connect()
        talk.send(said(1, 2, 0, rate=RATE))
        (result,) = [each for each in talk.until(lambda each: each.speech_final) if text(each)]
        self.assertEqual((text(result), result.is_final, result.from_finalize), ("w1 w2", True, False))
        talk.send(said(3, rate=RATE))
        self.assertEqual(finals(talk.end()), ["w3"])

    def check_utterances(self, pipelines):
        self.start(pipelines)
        talk = self.connect(endpointing=300, utterance_end_ms=1000, vad_events=True, interim_results=True)
        for name in ("0870", "0930"):
            talk.send(speech(name))
        messages = talk.end()
        kinds = {ListenV1SpeechStarted: "started", ListenV1UtteranceEnd: "ended"}
        order = ["final" if isinstance(each, ListenV1Results) else kinds[type(each)] for each in messages[:-1]
                 if not isinstance(each, ListenV1Results) or (each.speech_final and text(each))]
        self.assertEqual(order[:6], ["started", "final", "ended"] * 2)
        ends = [each.last_word_end for each in messages if isinstance(each, ListenV1UtteranceEnd)]
        starts = [each.timestamp for each in messages if isinstance(each, ListenV1SpeechStarted)]
        self.assertEqual([starts[0], ends[0], starts[1], ends[1]], sorted(starts[:2] + ends[:2]))

    def test_utterances_have_a_start_and_an_end_if_they_are_asked_for(self):
        self.check_utterances(PIPELINE)

    def test_utterances_of_a_pipeline_with_endpoint_have_a_start_and_an_end(self):
        self.check_utterances(PIPELINE + 'endpoint = { silence = "500ms" }\n')

    def test_speech_has_no_events_that_are_not_asked_for(self):
        self.start(PIPELINE + 'endpoint = { silence = "500ms" }\n')
        talk = self.connect()
        talk.send(speech("0930"))
        *messages, _ = talk.end()
        self.assertEqual(len(messages), len(results(messages)))

    def test_streams_at_the_same_time_get_their_own_words(self):
        self.start()
        talks = [self.connect() for _ in range(4)]
        for step in range(3):
            for number, talk in enumerate(talks):
                talk.send(said(number + step, rate=RATE))
        for talk in talks:
            talk.close_stream()
        self.assertEqual([finals(talk.rest()[0]) for talk in talks], [["w1 w2"], ["w1 w2 w3"], ["w2 w3 w4"], ["w3 w4 w5"]])

    def test_telephone_audio_is_understood(self):
        self.start()
        for name, encode in ("mulaw", audioop.lin2ulaw), ("alaw", audioop.lin2alaw):
            talk = self.connect(encoding=name, sample_rate=8000)
            talk.send(encode(said(1, 2, 3, rate=8000), 2))
            self.assertEqual(finals(talk.end()), ["w1 w2 w3"], name)

    def test_the_options_of_the_request_reach_the_worker(self):
        self.start()
        talk = self.connect(language="de", keyterm=["Millrace", "two words"], keywords=["ä:2"])
        talk.send(said(OPTIONS, rate=RATE))
        options = json.loads(finals(talk.end())[0])
        told = {"model": "nova-3", "language": "de", "keyterm": ["Millrace", "two words"], "keywords": ["ä:2"]}
        self.assertLessEqual(told.items(), options.items())

    def test_a_model_has_the_pipeline_that_the_configuration_names(self):
        other = PIPELINE.replace('"default"', '"loud"')
        self.start(PIPELINE + other, '[[protocol]]\nname = "deepgram"\npipeline = "default"\nmodels = { "nova-2" = "loud" }\n')
        self.worker("--pipeline", "loud", "--shout")
        for model, expected in ("nova-2", "W1"), ("../etc/passwd", "w1"):
            talk = self.connect(model=model)
            talk.send(said(1, rate=RATE))
            self.assertEqual(finals(talk.end()), [expected])

    def test_parameters_that_mean_nothing_here_are_ignored(self):
        self.start()
        talk = self.connect(punctuate=True, smart_format=False, numerals=False, multichannel=False, diarize=False,
                            mip_opt_out=False, tag=["a", "b"], redact=["pci"],
                            request_options={"additional_query_parameters": {"filler_words": "true", "unknown": "1"}})
        talk.send(said(1, rate=RATE))
        self.assertEqual(finals(talk.end()), ["w1"])

    def test_an_unknown_message_is_an_error_and_the_stream_goes_on(self):
        self.start()
        talk = self.connect()
        talk.send(said(1, rate=RATE))
        for unknown in ('{"type":"input_audio_buffer.commit"}', "no JSON", "[]"):
            talk.send_other(unknown)
            error = talk.until(lambda message: isinstance(message, ListenV1Error))[-1]
            self.assertEqual(error.variant, "SchemaError")
            self.assertTrue(error.description and error.message)
        talk.send(said(2, rate=RATE))
        self.assertEqual(finals(talk.end()), ["w1 w2"])

    def test_a_failed_row_does_not_end_the_stream(self):
        self.start()
        talk = self.connect()
        talk.send(said(1, FAILS, rate=RATE))
        talk.finalize()
        talk.until(from_finalize)
        talk.send(said(2, rate=RATE))
        self.assertEqual(finals(talk.end()), ["w2"])

    def test_a_segment_whose_last_row_has_no_answer_is_finalized(self):
        self.start()
        talk = self.connect()
        talk.send(said(1, SILENT, rate=RATE))
        talk.finalize()
        talk.until(from_finalize)
        talk.send(said(2, rate=RATE))
        self.assertEqual(finals(talk.end()), ["w2"])

    def test_the_text_of_a_killed_worker_is_final_and_the_next_one_begins_anew(self):
        first = self.start()
        talk = self.connect(interim_results=True)
        talk.send(said(1, 2, 3, rate=RATE))
        talk.until(lambda message: text(message) == "w1 w2 w3")
        first.kill()
        self.worker()
        talk.send(said(4, 5, rate=RATE))
        *messages, _ = talk.end()
        self.assertEqual(len(messages), len(results(messages)))
        self.assertEqual(finals(messages), ["w1 w2 w3", "w4 w5"])

    def test_a_stopping_service_gives_the_final_result(self):
        self.start()
        talk = self.connect(interim_results=True)
        talk.send(said(1, 2, rate=RATE))
        talk.until(lambda message: text(message) == "w1 w2")
        self.served.process.terminate()
        messages, code = talk.rest()
        self.assertEqual(finals(messages), ["w1 w2"])
        self.assertNotEqual(code, 1000)
        self.assertEqual(self.served.wait(), 0)

    def refused(self, **query):
        """The status and the body of a request that is refused. The SDK gives the status alone, and with blocking calls the
        error of its library."""
        with self.assertRaises((ApiError, InvalidStatus)) as refused:
            self.connect(**query)
        given = {key: str(value).lower() for key, value in {**AUDIO, **query}.items() if value is not None}
        request = http.client.HTTPConnection(self.host)
        self.addCleanup(request.close)
        request.request("GET", "/v1/listen?" + urllib.parse.urlencode(given), headers={"Authorization": "Token any", **UPGRADE})
        response = request.getresponse()
        error = refused.exception
        self.assertEqual(response.status, error.status_code if isinstance(error, ApiError) else error.response.status_code)
        return response.status, json.loads(response.read())

    def test_what_cannot_be_done_is_refused_in_the_words_of_deepgram(self):
        self.serve()
        for query in ({"encoding": None}, {"multichannel": True}, {"callback": "http://127.0.0.1/"}, {"channels": 2},
                      {"encoding": "flac"}, {"sample_rate": 0}, {"sample_rate": "many"}):
            with self.subTest(query):
                status, body = self.refused(**query)
                self.assertEqual(status, 400)
                self.assertEqual(body.keys(), {"err_code", "err_msg", "request_id"})
                self.assertTrue(all(body.values()))

    def test_a_wrong_token_is_refused(self):
        with tempfile.NamedTemporaryFile() as empty:  # it accepts no token
            self.serve(extra=f'[access]\ntokens = "{empty.name}"\n')
        self.assertEqual(self.refused()[0], 401)

    @with_moonshine
    def test_speech_gets_the_words_that_the_command_stream_gets(self):
        self.recognise()
        audio = speech("0870") + speech("0880")
        expected = self.words(audio, RATE)
        self.assertEqual(len(expected), 2)
        talk = self.connect(interim_results=True)
        talk.send(audio)
        self.assertEqual(finals(talk.end()), expected)


class DeepgramBlocking(Live, Served):
    def test_a_client_that_reads_no_answers_harms_no_other(self):
        self.start()
        bad = socket.create_connection(self.host.split(":"))
        self.addCleanup(bad.close)
        fields = "".join(f"{name}: {value}\r\n" for name, value in {"Host": self.host, **UPGRADE}.items())
        bad.sendall(f"GET /v1/listen?encoding=mulaw HTTP/1.1\r\n{fields}\r\n".encode())
        self.assertIn(b" 101 ", bad.recv(1000))
        bad.setblocking(False)
        unknown = memoryview(b"\x81\x82\0\0\0\0{}" * 100_000)
        with contextlib.suppress(BlockingIOError):
            while unknown:
                unknown = unknown[bad.send(unknown):]
        talk = self.connect()
        talk.send(said(1, rate=RATE))
        self.assertEqual(finals(talk.end()), ["w1"])

    def test_the_program_of_the_document_prints_what_was_said(self):
        self.start()
        program = printed.programs()["protocols_deepgram"].text
        done = subprocess.run([sys.executable, "-c", program, self.host], input=said(1, 2, 3, rate=RATE), capture_output=True,
                              timeout=4 * PATIENCE)
        self.assertEqual((done.stderr, done.stdout), (b"", b"w1 w2 w3\n"))

    def test_a_loop_over_the_connection_ends_with_it(self):
        self.start()
        talk = self.connect()
        talk.send(said(1, rate=RATE))
        talk.close_stream()
        self.assertEqual(finals(talk.connection), ["w1"])
        with self.assertRaises(ConnectionClosedOK):
            talk.connection.recv()


class DeepgramWithAsyncio(Live, Served):
    Talk = WithAsyncio
    # Not with blocking calls: the SDK reads in one thread and writes in another, and Python before 3.13 then loses writes.
    def test_a_stream_over_tls_with_a_token_has_its_results(self):
        self.serve_with_tls("secret")
        talk = self.connect(key="secret", tls="s")
        talk.send(said(1, 2, rate=RATE))
        self.assertEqual(finals(talk.end()[:-1]), ["w1 w2"])
        self.assertRaises((ApiError, InvalidStatus), self.connect, key="other", tls="s")


if __name__ == "__main__":
    unittest.main()
