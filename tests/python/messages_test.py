# SPDX-License-Identifier: Apache-2.0
"""Messages of a worker to clients between results, and of clients to the worker, at a running service."""
import asyncio
import threading
import unittest

import numpy as np
from streams import WorkerTest
from harness import PATIENCE, run

import millrace

LONGEST = 48 * 1024 - 64  # bytes


class Messages(WorkerTest):
    def setUp(self):
        super().setUp()
        self.attached = self.worker()

    def clients(self):
        """A stream over each transport, with its number at the worker."""
        for url in f"ws://127.0.0.1:{self.served.port}", f"tcp://127.0.0.1:{self.served.zeromq_port}":
            with self.subTest(url[:3]), millrace.Client(url).open(format="s16le") as stream:
                stream.send(np.arange(4, dtype=np.int16))
                while not (batch := self.batch(self.attached)).framed:
                    batch.done()  # the end of the stream before
                yield stream, batch.framed[0].stream, batch

    def test_a_client_receives_each_kind_of_message_in_order_with_the_results(self):
        values = [{"token": "a"}, "text", b"\0\xff", np.float32(0.5), [1, 2], ""]
        for stream, number, batch in self.clients():
            for value in values:
                self.assertIs(self.attached.send(number, value), True)
            batch.done(["result"])
            self.assertTrue(self.attached.send(number, "after"))
            stream.end()
            self.batch(self.attached).done()
            events = list(stream)
            self.assertEqual([type(event) for event in events], [millrace.Message] * 6 + [millrace.Result, millrace.Message])
            messages = events[:6] + events[7:]
            self.assertEqual([message.number for message in messages], list(range(7)))
            self.assertEqual([message.data for message in messages], [{"token": "a"}, "text", b"\0\xff", 0.5, [1, 2], "", "after"])
            self.assertEqual({message.seq for message in messages}, {0})

    def test_any_thread_sends_while_another_waits_for_batches(self):
        for stream, number, batch in self.clients():
            batch.done()
            sender = threading.Thread(target=lambda: [self.attached.send(number, i, wait=PATIENCE) for i in range(3000)])
            sender.start()
            received = [stream.next(PATIENCE).data for _ in range(1000)]
            stream.send(np.arange(4, dtype=np.int16))
            self.batch(self.attached).done(["row"])
            received += [stream.next(PATIENCE).data for _ in range(2001)]
            sender.join()
            self.assertIn("row", received)
            received.remove("row")
            self.assertEqual(received, list(range(3000)))
            stream.end()
            self.batch(self.attached).done()

    def test_a_client_that_does_not_take_messages_stops_its_own_only(self):
        for stream, number, batch in self.clients():
            sent = 0
            while sent < 8000 and self.attached.send(number, bytes(1000), wait=0.5):
                sent += 1
            self.assertGreaterEqual(sent, 61)  # the room of a stream
            batch.done()
            with self.subTest("another"):
                other = self.stream()
                other.frames(1, 2, 3, 4)
                while not (batch := self.batch(self.attached)).framed:
                    batch.done()
                self.assertTrue(self.attached.send(batch.framed[0].stream, "unharmed"))
                batch.done()
                self.assertEqual(other.received("message")[0]["data"], "unharmed")
            if sent == 8000:  # over ZeroMQ, the service cannot hold one stream back: the library ends it
                with self.assertRaisesRegex(millrace.StreamFailed, "slow_reader"):
                    while stream.next(PATIENCE):
                        pass

    def test_a_stream_that_has_ended_or_was_never_here_is_gone(self):
        words = "stream 77 has no slot of this worker: it has ended, moved to another worker, or was never here"
        with self.assertRaisesRegex(millrace.StreamGone, words):
            self.attached.send(77, "text")
        for stream, number, batch in self.clients():
            batch.done()
            stream.end()
            self.batch(self.attached).done()
            with self.assertRaises(LookupError):
                self.attached.send(number, "text")
            self.assertEqual(list(stream), [])

    def test_what_is_no_message_is_refused_and_harms_nothing(self):
        for stream, number, batch in self.clients():
            for value, error, words in ((float("nan"), ValueError, "the value cannot be sent: ValueError"),
                                        (None, ValueError, "a message must be valid JSON, valid text, or bytes"),
                                        (millrace.Failure("no"), ValueError, "a message must be"),
                                        ("\ud800", ValueError, "the value cannot be sent: UnicodeEncodeError"),
                                        (object(), TypeError, "object is not a JSON value"),
                                        (bytes(LONGEST + 1), ValueError, f"a message has at most {LONGEST} bytes")):
                with self.subTest(repr(value)[:20]), self.assertRaisesRegex(error, words):
                    self.attached.send(number, value)
            with self.assertRaisesRegex(TypeError, "stream must be a whole number"):
                self.attached.send("1", "text")
            self.assertTrue(self.attached.send(number, bytes(LONGEST)))
            batch.done()
            self.assertEqual(len(stream.next(PATIENCE).data), LONGEST)

    def test_an_independent_client_reads_the_messages(self):
        stream = self.stream()
        stream.frames(1, 2, 3, 4)
        batch = self.batch(self.attached)
        self.attached.send(batch.framed[0].stream, {"text": "grüß"})
        self.attached.send(batch.framed[0].stream, b"\1\2")
        batch.done(["end"])
        stream.received("result")
        message, binary = [m for m in stream.messages if isinstance(m, bytes) or m["type"] in ("message", "binary")]
        self.assertEqual(message, {"type": "message", "number": 0, "seq": 0, "data": {"text": "grüß"}})
        self.assertIn(b"\1\2", binary)


class OfClients(WorkerTest):
    """Messages of clients to the worker."""

    def setUp(self):
        super().setUp()
        self.attached = self.worker()

    def urls(self):
        for url in f"ws://127.0.0.1:{self.served.port}", f"tcp://127.0.0.1:{self.served.zeromq_port}":
            with self.subTest(url[:3]):
                yield url

    def messages(self):
        """(number of the row, position, data, set) of each message in the next batch with any."""
        while not (messages := (batch := self.batch(self.attached)).messages):
            batch.done()
        streams = {row.stream for row in [*batch.framed, *batch.marks]}
        self.assertEqual({message.stream for message in messages}, streams)
        batch.done()
        return [tuple(message[1:]) for message in messages]

    def test_the_worker_gets_json_with_the_next_row_and_changes_of_options(self):
        values = [None, True, 1.5, "grüß", [1, {"a": []}], {"words": ["Millrace"]}]
        for url in self.urls():
            with millrace.Client(url).open(format="s16le") as stream:
                stream.send(np.arange(4, dtype=np.int16))
                for value in values:
                    stream.message(value)
                stream.set({"lang": "de"})
                stream.flush()
                self.assertEqual(self.messages(), [*((1, 4, value, False) for value in values), (1, 4, {"lang": "de"}, True)])

    def test_an_asynchronous_client_sends_them_too(self):
        async def send(url):
            async with millrace.connect(url).open(format="s16le") as stream:
                await stream.message("a")
                await stream.set({"b": 1})
                await stream.flush()
                return await asyncio.to_thread(self.messages)

        for url in self.urls():
            self.assertEqual(run(send(url)), [(0, 0, "a", False), (0, 0, {"b": 1}, True)])

    def test_a_worker_that_takes_over_has_the_options_of_the_rows_before(self):
        with millrace.Client(f"ws://127.0.0.1:{self.served.port}").open(format="s16le", options={"a": 1, "b": 2}) as stream:
            stream.set({"b": [3], "c": None})
            stream.flush()
            batch = self.batch(self.attached)
            self.assertEqual(batch.opened[0].options, {"a": 1, "b": 2})
            batch.done()
            other = self.worker()
            self.attached.close()
            stream.flush()
            self.assertEqual(self.batch(other).opened[0].options, {"a": 1, "b": [3], "c": None})

    def test_a_number_that_python_does_not_convert_is_infinity(self):
        stream = self.stream()
        stream._run(stream.connection.send('{"type":"message","data":[' + "9" * 5000 + ",-1e999]}"))
        stream.command("flush")
        self.assertEqual(self.messages()[0][2], [float("inf"), -float("inf")])

    def test_what_is_no_message_is_refused_and_what_is_too_long_is_rejected(self):
        for url in self.urls():
            with millrace.Client(url).open(format="s16le") as stream:
                for call, error, words in ((lambda: stream.message(float("nan")), ValueError, "data: .*JSON has no NaN"),
                                           (lambda: stream.message("\ud800"), ValueError, "data: .* lone surrogate"),
                                           (lambda: stream.message(eval("[" * 25 + "]" * 25)), ValueError, "at most 24 deep"),
                                           (lambda: stream.message(b"bytes"), TypeError, "data: .*bytes"),
                                           (lambda: stream.set([("a", 1)]), TypeError, "options must be a dict, not"),
                                           (lambda: stream.set({"a": {1}}), TypeError, "options: .* set ")):
                    with self.subTest(words), self.assertRaisesRegex(error, words):
                        call()
                stream.message("語" * 5460)  # 16382 bytes
                stream.flush()
                self.assertEqual(self.messages(), [(0, 0, "語" * 5460, False)])
                stream.message("m" * (16 << 10))
                stream.set({"a": "m" * 4090})
                self.assertEqual([stream.next(PATIENCE).code for _ in range(2)], ["too_long", "too_long"])
                stream.message("right")
                stream.flush()
                self.assertEqual(self.messages(), [(1, 0, "right", False)])


if __name__ == "__main__":
    unittest.main()
