# SPDX-License-Identifier: Apache-2.0
"""The package's client with a running service: the same results over both transports."""
import dataclasses
import re
import signal
import socket
import threading
import unittest
from unittest import mock

import numpy as np
from clients import ClientTest, comparable
from harness import PATIENCE, samples

import millrace
from millrace import Closed, Flag, Flushed, _core
from millrace.client import log_event
from millrace.events import ready_of


class Waiting(ClientTest):
    def talk(self, url, cuts):
        """The events of a stream with every kind of message of a client. `cuts`: the bytes of each send."""
        with millrace.Client(url).open(rate=16000) as stream:
            frames, position = samples(0, 8000), 0
            for size in cuts:
                stream.send(frames[position:position + size])
                position += size
            stream.flush(7)
            stream.send(np.frombuffer(samples(8000, 2000), np.int16))
            stream.gap(500)
            stream.send(samples(10500, 1000))
            stream.reset()
            stream.send(memoryview(samples(11500, 100)))
            stream.end()
            return comparable(iter(stream.next, None))

    def test_the_same_input_gives_the_same_results_over_each_transport_however_it_is_split(self):
        first = self.talk(self.url("websocket"), [16000])
        self.assertEqual(first[-1], Closed(11100, 9))
        self.assertIn(Flushed(7), first)
        for url in self.urls():
            self.assertEqual(self.talk(url, [3200] * 5), first)
            self.assertEqual(self.talk(url, [1, 2, 3001, 12996]), first)

    def test_results_come_as_they_are_ready(self):
        for url in self.urls():
            with millrace.Client(url).open(id="mic") as stream:
                self.assertEqual((stream.name, stream.pipeline), ("mic", "default"))
                stream.send(samples(0, 1600))
                result = next(iter(stream))
                self.assertEqual((result.begin_s, result.end_s, result.flags, result.data["size"]),
                                 (0, 0.1, Flag.START | Flag.RESET | Flag.SEGMENT, 1600))
                self.assertIsNone(stream.next(timeout=0.01))
                stream.end()
                self.assertEqual([result.flags for result in stream], [Flag.LAST | Flag.END])
                self.assertEqual(stream.totals, Closed(1600, 1))

    def test_leaving_a_stream_frees_its_slot(self):
        for url in self.urls():
            client = millrace.Client(url)
            for _ in range(4):  # with 2 slots
                with client.open() as stream:
                    stream.send(samples(0, 1600))
                    next(iter(stream))
                self.await_none_open()


class Errors(ClientTest):
    def test_a_refusal_has_its_reason(self):
        for url in self.urls():
            client = millrace.Client(url)
            with self.assertRaisesRegex(millrace.StreamRefused, "there is no pipeline elsewhere; there are: default") as caught:
                client.open("elsewhere")
            self.assertEqual((caught.exception.code, caught.exception.parameter), ("unknown_pipeline", "pipeline"))
            with client.open(id="a"), self.assertRaises(millrace.StreamRefused) as caught:
                client.open(id="a")
            self.assertEqual(caught.exception.code, "conflict")
            self.await_none_open()

    def test_a_refusal_for_no_room_has_the_time_to_retry(self):
        for url in self.urls():
            client = millrace.Client(url)
            with client.open(), client.open(), self.assertRaises(millrace.StreamRefused) as caught:
                client.open()
            self.assertEqual(caught.exception.code, "no_room")
            self.assertGreater(caught.exception.retry_after, 0)
            self.await_none_open()

    def test_an_error_of_the_service_ends_the_stream(self):
        self.attached.kill()
        for url in self.urls():
            with millrace.Client(url).open() as stream:
                stream.send(samples(0, 1600))
                for _ in range(2):
                    with self.assertRaisesRegex(millrace.StreamFailed, "no_worker") as caught:
                        stream.next()
                    self.assertEqual(caught.exception.code, "no_worker")

    def test_a_service_that_is_lost_is_an_error_of_every_stream(self):
        streams = [millrace.Client(url, millrace.ClientSettings(resume_window=0.5)).open() for url in self.urls()]
        self.served.stop(signal.SIGKILL)
        for stream in streams:
            with self.assertRaises(millrace.ConnectionLost):
                stream.next()
            with self.assertRaises(millrace.ConnectionLost):
                stream.send(b"\0\0")
        for url in self.urls():
            with self.assertRaises(millrace.ConnectionLost):
                millrace.Client(url).open()

    def test_ctrl_c_while_an_exception_is_created_takes_effect(self):
        def interrupted(*_):
            signal.raise_signal(signal.SIGINT)

        with mock.patch("millrace.errors.StreamRefused", interrupted):
            for url in self.urls():
                with self.assertRaises(KeyboardInterrupt):
                    millrace.Client(url).open("elsewhere")

    def test_an_error_of_the_caller_is_raised_at_once(self):
        for url in ("http://here", "", "tcp://"):
            with self.assertRaises(ValueError):
                millrace.Client(url)
        with self.assertRaisesRegex(ValueError, "must be ws://HOST:PORT, .*: give pipeline, rate and other parameters to open"):
            millrace.connect("ws://127.0.0.1:8080/v1/stream?pipeline=asr")
        for url in "wss://user:secret@here", "wss://here/v1/stream?token=secret":
            with self.assertRaises(ValueError) as caught:
                millrace.Client(url)
            self.assertNotIn("secret", str(caught.exception))
        with self.assertRaisesRegex(TypeError, "url must be a string"):
            millrace.Client(7)
        with millrace.Client(self.url("zeromq")).open() as stream:
            with self.assertRaisesRegex(TypeError, "float64 does not have the stream's format s16le"):
                stream.send(np.zeros(4))
        with self.assertRaisesRegex(millrace.StreamFailed, "closed"):
            stream.send(b"")

    def test_an_invalid_argument_is_named(self):
        client = millrace.Client(self.url("zeromq"))
        for parameters, error, words in (
            ({"rate": "abc"}, TypeError, "rate must be a number, not 'abc'"),
            ({"id": 7}, TypeError, "id must be a string, not 7"),
            ({"options": "{}"}, TypeError, "options must be a dict"),
            ({"options": {"a": float("nan")}}, ValueError, "options: .*NaN"),
            ({"options": {"a": {1}}}, TypeError, "options: .* set "),
            ({"channels": 1.5}, TypeError, "channels must be a whole number, not 1.5"),
            ({"dim": 0}, ValueError, "dim must be 1 to "),
        ):
            with self.subTest(parameters), self.assertRaisesRegex(error, words):
                client.open(**parameters)
        with client.open() as stream:
            for call, error, words in (
                (lambda: stream.flush(-1), ValueError, "mark must be 0 to 9007199254740991, not -1"),
                (lambda: stream.flush("x"), TypeError, "mark must be a whole number, not 'x'"),
                (lambda: stream.gap(-1), ValueError, "frames must be 1 to 9007199254740991, not -1"),
                (lambda: stream.gap(0), ValueError, "frames must be 1 to"),
            ):
                with self.subTest(words), self.assertRaisesRegex(error, words):
                    call()

    def test_after_the_end_only_another_end_is_allowed(self):
        for url in self.urls():
            with millrace.Client(url).open() as stream:
                stream.end()
                for _ in range(2):
                    stream.end()
                    with self.assertRaisesRegex(RuntimeError, "nothing can be sent after the end"):
                        stream.send(b"")
                    for _ in stream:
                        pass

    def test_the_warning_about_clamped_values_is_an_event_and_is_logged(self):
        warned = millrace.Warned("values", "most values were clamped; f32 audio must be between -1 and 1")
        with millrace.Client(self.url("websocket")).open(id="mic", format="f32le") as stream, self.assertLogs("millrace") as logs:
            stream.send(np.full(8000, 3000, np.float32))
            stream.end()
            with mock.patch("millrace.client.log_event", wraps=log_event) as logged:
                list(stream)
        self.assertIn(mock.call("mic", warned), logged.mock_calls)
        self.assertEqual(logs.output, [f"WARNING:millrace:stream mic: values: {warned.message}"])

    def test_a_stream_that_is_over_before_it_is_open_is_a_lost_connection(self):
        for fields in (None, ("closed", 0, 0)):
            with self.assertRaises(millrace.ConnectionLost):
                ready_of(fields)

    def test_a_client_keeps_to_its_settings(self):
        self.assertEqual(dataclasses.astuple(millrace.ClientSettings()), _core.client_settings)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            for scheme in ("ws", "tcp"):
                client = millrace.Client(f"{scheme}://127.0.0.1:{silent.getsockname()[1]}",
                                         millrace.ClientSettings(connect=0.1))
                with self.assertRaises(millrace.ConnectionLost):
                    client.open()
        for wrong in ({"connect": 0}, {"taking": float("nan")}, {"unsent": 0}, {"resume_window": 0}):
            with self.assertRaises(ValueError):
                millrace.Client("ws://127.0.0.1", millrace.ClientSettings(**wrong))


class Features(ClientTest):
    def test_arrays_must_have_the_format_and_shape_of_the_stream(self):
        self.served = self.service('[[pipeline]]\nrate = 10\ndim = 2\nchunk = { size = 1 }\n')
        worker = millrace.Worker(self.served.workers)
        self.addCleanup(worker.close)
        vector = [1.5, -2.25]
        for url in self.urls():
            for parameters, dtype in ({}, np.float32), ({"format": "f16le"}, np.float16):
                with millrace.Client(url).open(dim=2, **parameters) as stream:
                    with self.assertRaisesRegex(TypeError, "int16 does not have the stream's format f"):
                        stream.send(np.zeros(2, np.int16))
                    stream.send(np.array([vector], dtype))
                    for shape in (3,), (2, 3), (2, 2, 1):
                        with self.assertRaisesRegex(ValueError, re.escape(f"shape {shape}, but a frame of this stream has 2 values")):
                            stream.send(np.zeros(shape, dtype))
                    batch = worker.next(PATIENCE)
                    self.assertEqual(batch.data.tolist(), [[vector]])
                    batch.done()
                    stream.end()
                    worker.next(PATIENCE).done()
                    self.assertIsInstance(stream.next(PATIENCE), Closed)


    def test_an_array_of_audio_has_one_axis_or_a_row_for_each_frame(self):
        for url in self.urls():
            with millrace.Client(url).open(channels=1) as stream:
                with self.assertRaisesRegex(ValueError, r"shape \(10, 3\), but a frame of this stream has 1 channel: give \(n, 1\)"):
                    stream.send(np.zeros((10, 3), np.int16))
                stream.send(np.zeros((1000, 1), np.int16))
                stream.send(np.zeros(600, np.int16))
                stream.end()
                self.assertEqual([result.end for result in stream][0], 1600)

    def test_two_channels_are_not_sent_as_a_mono_stream_of_twice_the_length(self):
        for url in self.urls():
            with millrace.Client(url).open(rate=16000) as stream:
                for shape, words in (((1600, 2), "shape (1600, 2), but a frame of this stream has 1 channel: give (n, 1), or open"
                                                 " the stream with channels=2"),
                                     ((2, 1600), "shape (2, 1600), but a frame of this stream has 1 channel"),
                                     ((1, 1600), "give (n, 1), as array.T does")):
                    with self.assertRaisesRegex(ValueError, re.escape(words)):
                        stream.send(np.zeros(shape, np.int16))
                stream.send(np.zeros((1600, 1), np.int16))
                stream.end()
                list(stream)
                self.assertEqual(stream.totals, Closed(1600, 1))
            with millrace.Client(url).open(channels=1) as stream, self.assertRaisesRegex(ValueError, "has 1 channel"):
                stream.send(np.zeros((1600, 2), np.int16))

    def test_the_format_and_shape_of_frames_default_to_those_of_the_pipeline(self):
        served = self.service('''[[pipeline]]
            name = "stereo"\nrate = 10\nchannels = 2\nchunk = { size = 4 }
            [[pipeline]]
            name = "features"\nrate = 10\ndim = 3\nchunk = { size = 4 }\n''')
        for name in ("stereo", "features"):
            self.tap(served, name)
        for url in (f"ws://127.0.0.1:{served.port}", f"tcp://127.0.0.1:{served.zeromq_port}"):
            client = millrace.Client(url)
            for pipeline, parameters, frames in (("stereo", {}, np.zeros(8, np.int16)),
                                           ("stereo", {"channels": 2}, np.zeros((4, 2), np.int16)),
                                           ("features", {"format": "f32le"}, np.zeros(12, np.float32))):
                with client.open(pipeline, **parameters) as stream:
                    stream.send(frames)
                    stream.end()
                    list(stream)
                    self.assertEqual(stream.totals, Closed(4, 1))


class Closing(ClientTest):
    """One thread closes a stream or client while another one waits in it."""

    def waiting(self, call):
        """Starts a thread that repeats a call until it raises. Returns the list of its exceptions, and the thread."""
        def wait():
            try:
                while True:
                    call()
            except millrace.ClientError as error:
                caught.append(error)

        caught = []
        thread = threading.Thread(target=wait)
        thread.start()
        return caught, thread

    def ended(self, waits):
        for _, thread in waits:
            thread.join(PATIENCE)
        return [error for caught, _ in waits for error in caught]

    def test_closing_a_stream_ends_the_calls_that_wait_in_it(self):
        self.attached.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.attached.process.send_signal, signal.SIGCONT)
        for url in self.urls():
            stream = millrace.Client(url).open()
            waits = [self.waiting(stream.next), self.waiting(lambda: stream.send(samples(0, 1600)))]
            self.assertEqual([thread.is_alive() for _, thread in waits], [True, True])
            stream.close()
            self.assertEqual([(type(error), error.code) for error in self.ended(waits)],
                             [(millrace.StreamFailed, "closed")] * 2)

    def test_closing_a_client_ends_its_streams(self):
        for url in self.urls():
            with millrace.Client(url) as client:
                waits = [self.waiting(client.open().next) for _ in range(2)]
            self.assertEqual([type(error) for error in self.ended(waits)], [millrace.ConnectionLost] * 2)
            with self.assertRaisesRegex(RuntimeError, "closed"):
                client.open()
            client.close()
            self.await_none_open()


if __name__ == "__main__":
    unittest.main()
