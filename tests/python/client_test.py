# SPDX-License-Identifier: Apache-2.0
"""The package's clients with a running service: both doors, waiting and for asyncio, the same results."""
import asyncio
import signal
import threading
import unittest

import numpy as np
from harness import COUNTED, PATIENCE, SystemTest, run, samples, wait_for

import millrace
from millrace import Closed, Flag, Flushed

DOORS = ("websocket", "zeromq")
PIPELINE = '[[pipeline]]\nslots = 2\nchunk = { size = 1600 }\nworker_wait = "1s"\n'
ROW = ("seq", "begin", "size", "flags", "reason", "gap", "mark", "crc32c")


class ClientTest(SystemTest):
    def setUp(self):
        self.served = self.service(PIPELINE)
        self.attached = self.tap(self.served, "default", "--data", "crc32c")

    def url(self, door):
        return {"websocket": f"ws://127.0.0.1:{self.served.port}",
                "zeromq": f"tcp://127.0.0.1:{self.served.zeromq_port}"}[door]

    def await_none_open(self):
        wait_for(lambda: self.served.metric("millrace_streams") == 0, "no stream to be open", COUNTED)

    def doors(self):
        for door in DOORS:
            with self.subTest(door):
                yield self.url(door)


def told(events):
    """What a client was told, without what differs from stream to stream."""
    return [(event.seq, event.begin, event.end, event.begin_s, event.end_s, event.flags,
             [event.data[field] for field in ROW]) if isinstance(event, millrace.Result) else event
            for event in events]


class Waiting(ClientTest):
    def talk(self, url, cuts):
        """All that is told of a stream with everything that a client may say, its frames cut so."""
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
            return told(iter(stream.next, None))

    def test_the_same_input_gives_the_same_results_over_each_door_however_it_is_cut(self):
        first = self.talk(self.url("websocket"), [16000])
        self.assertEqual(first[-1], Closed(11100, 9))
        self.assertIn(Flushed(7), first)
        for url in self.doors():
            self.assertEqual(self.talk(url, [3200] * 5), first)
            self.assertEqual(self.talk(url, [1, 2, 3001, 12996]), first)

    def test_results_come_as_they_are_ready(self):
        for url in self.doors():
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

    def test_many_streams_at_once_with_a_thread_each(self):
        served = self.service(PIPELINE.replace("slots = 2", "slots = 64"))
        self.tap(served)
        for url in (f"ws://127.0.0.1:{served.port}", f"tcp://127.0.0.1:{served.zeromq_port}"):
            client = millrace.Client(url)
            ends = []

            def one():
                with client.open() as stream:
                    for packet in range(20):
                        stream.send(samples(packet * 1600, 1600))
                    stream.end()
                    ends.append((len(list(stream)), stream.totals))

            threads = [threading.Thread(target=one) for _ in range(32)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE)
            self.assertEqual(ends, [(21, Closed(32000, 20))] * 32)

    def test_a_stream_that_is_left_gives_its_room_back(self):
        for url in self.doors():
            client = millrace.Client(url)
            for _ in range(4):  # with room for 2
                with client.open() as stream:
                    stream.send(samples(0, 1600))
                    next(iter(stream))
                self.await_none_open()


class Errors(ClientTest):
    def test_a_refusal_says_why(self):
        for url in self.doors():
            client = millrace.Client(url)
            with self.assertRaisesRegex(millrace.StreamRefused, "no pipeline of this name") as caught:
                client.open("elsewhere")
            self.assertEqual((caught.exception.code, caught.exception.parameter), ("unknown_pipeline", "pipeline"))
            with client.open(id="a"), self.assertRaises(millrace.StreamRefused) as caught:
                client.open(id="a")
            self.assertEqual(caught.exception.code, "conflict")

    def test_no_room_says_when_to_come_again(self):
        for url in self.doors():
            client = millrace.Client(url)
            with client.open(), client.open(), self.assertRaises(millrace.StreamRefused) as caught:
                client.open()
            self.assertEqual(caught.exception.code, "no_room")
            self.assertGreater(caught.exception.retry_after, 0)
            self.await_none_open()

    def test_an_error_of_the_service_ends_the_stream(self):
        self.attached.kill()
        for url in self.doors():
            with millrace.Client(url).open() as stream:
                stream.send(samples(0, 1600))
                for _ in range(2):
                    with self.assertRaisesRegex(millrace.StreamFailed, "no_worker") as caught:
                        stream.next()
                    self.assertEqual(caught.exception.code, "no_worker")

    def test_a_service_that_is_lost_is_an_error_of_every_stream(self):
        streams = [millrace.Client(url).open() for url in self.doors()]
        self.served.stop(signal.SIGKILL)
        for stream in streams:
            with self.assertRaises(millrace.ConnectionLost):
                stream.next()
            with self.assertRaises(millrace.ConnectionLost):
                stream.send(b"\0\0")
        for url in self.doors():
            with self.assertRaises(millrace.ConnectionLost):
                millrace.Client(url).open()

    def test_what_is_wrong_on_this_side_is_said_at_once(self):
        for url in ("http://here", "", "tcp://"):
            with self.assertRaises(ValueError):
                millrace.Client(url)
        with millrace.Client(self.url("zeromq")).open() as stream:
            with self.assertRaisesRegex(TypeError, "float64 is no s16le"):
                stream.send(np.zeros(4))
            with self.assertRaises(ValueError):
                stream.gap(0)
        with self.assertRaisesRegex(RuntimeError, "closed"):
            stream.send(b"")


class Asynchronous(ClientTest):
    async def talk(self, stream):
        async def send():
            for packet in range(5):
                await stream.send(samples(packet * 1600, 1600))
            await stream.flush(7)
            await stream.gap(500)
            await stream.reset()
            await stream.send(samples(8500, 800))
            await stream.end()

        sending = asyncio.create_task(send())
        results = told([result async for result in stream])
        await sending
        return results, stream.totals

    def test_results_are_iterated_over_while_frames_are_sent(self):
        async def over(url):
            async with millrace.connect(url).open(rate=16000) as stream:
                return await self.talk(stream)

        first = run(over(self.url("websocket")))
        self.assertEqual(first[1], Closed(8800, 6))
        self.assertEqual(run(over(self.url("zeromq"))), first)

    def test_many_streams_share_a_loop(self):
        served = self.service(PIPELINE.replace("slots = 2", "slots = 64"))
        self.tap(served, "default", "--data", "crc32c")

        async def one(client):
            async with client.open() as stream:
                return await self.talk(stream)

        async def many(url):
            client = millrace.connect(url)
            return await asyncio.gather(*(one(client) for _ in range(32)))

        for url in (f"ws://127.0.0.1:{served.port}", f"tcp://127.0.0.1:{served.zeromq_port}"):
            talks = run(many(url))
            self.assertEqual(talks, [talks[0]] * 32)

    def test_sending_waits_while_there_is_no_room_and_can_be_given_up(self):
        self.attached.process.send_signal(signal.SIGSTOP)

        async def flood(stream):
            while True:
                await stream.send(samples(0, 1600))

        async def over(url):
            async with millrace.connect(url).open() as stream:
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(flood(stream), 1)

        for url in self.doors():
            run(over(url))
        self.attached.process.send_signal(signal.SIGCONT)

    def test_a_refusal_and_a_lost_service_are_exceptions(self):
        async def over(url):
            with self.assertRaises(millrace.StreamRefused):
                async with millrace.connect(url).open("elsewhere"):
                    pass
            async with millrace.connect(url).open() as stream:
                waiting = asyncio.create_task(stream.next())
                await asyncio.sleep(0)
                self.served.stop(signal.SIGKILL)
                with self.assertRaises(millrace.ConnectionLost):
                    await waiting

        for door in DOORS:
            with self.subTest(door):
                run(over(self.url(door)))
                self.served = self.service(PIPELINE)


if __name__ == "__main__":
    unittest.main()
