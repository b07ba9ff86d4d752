# SPDX-License-Identifier: Apache-2.0
"""`run` of both clients: sends and receives, raises the sender's exception, and leaves nothing behind."""
import asyncio
import itertools
import queue
import signal
import threading
import unittest

import numpy as np
from clients import TRANSPORTS, ClientTest, comparable
from harness import run, samples, wait_for

import millrace
from millrace import Closed

PACKETS = [samples(packet * 1600, 1600) for packet in range(5)]


class Broken(Exception):
    """What the sender of a test raises."""


def broken_after(packets):
    yield from packets
    raise Broken


def endless():
    return itertools.cycle(PACKETS)


def senders():
    return [thread for thread in threading.enumerate() if thread.name == "millrace-run"]


class RunTest(ClientTest):
    def tearDown(self):
        wait_for(lambda: not senders(), "the sending threads to end")
        self.await_none_open()
        super().tearDown()


class Waiting(RunTest):
    def test_the_packets_are_sent_and_their_results_are_given(self):
        expected = None
        for url in self.urls():
            for packets in PACKETS, iter(PACKETS), [np.frombuffer(packet, np.int16) for packet in PACKETS]:
                self.await_none_open()
                with millrace.Client(url).open(rate=16000) as stream:
                    results = comparable(stream.run(packets))
                    self.assertEqual(stream.totals, Closed(8000, 5))
                expected = expected or results
                self.assertEqual(results, expected)
        self.assertEqual(len(expected), 6)

    def test_results_come_while_packets_are_still_awaited(self):
        for url in self.urls():
            packets = queue.SimpleQueue()
            with millrace.Client(url).open() as stream:
                results = stream.run(iter(packets.get, None))
                for packet in PACKETS:
                    packets.put(packet)
                    next(results)
                packets.put(None)
                self.assertEqual(len(list(results)), 1)

    def test_an_exception_of_the_packets_is_raised_where_the_results_are_received(self):
        for url in self.urls():
            with millrace.Client(url).open() as stream:
                with self.assertRaises(Broken):
                    list(stream.run(broken_after(PACKETS)))
                with self.assertRaisesRegex(millrace.StreamFailed, "closed"):
                    stream.send(PACKETS[0])

    def test_packets_that_cannot_be_sent_raise_the_error_of_send(self):
        for url in self.urls():
            for error, packets in ((TypeError, [np.zeros(160, np.float64)]), (TypeError, [7]), (TypeError, 7)):
                self.await_none_open()
                with millrace.Client(url).open() as stream, self.assertRaises(error):
                    list(stream.run(packets))

    def test_an_error_of_another_stream_that_gives_the_packets_is_raised(self):
        def from_another():
            yield PACKETS[0]
            raise millrace.StreamFailed("another stream", "code")

        for url in self.urls():
            with millrace.Client(url).open() as stream, self.assertRaisesRegex(millrace.StreamFailed, "another stream"):
                list(stream.run(from_another()))

    def test_leaving_the_loop_ends_the_sender_and_closes_a_generator(self):
        closed = []

        def microphone():
            try:
                yield from endless()
            finally:
                closed.append(True)

        def leave(stream, how):
            for _ in stream.run(microphone()):
                if how == "break":
                    break
                raise Broken

        for url in self.urls():
            client = millrace.Client(url)
            leave(client.open(), "break")
            self.await_none_open()
            with self.assertRaises(Broken):
                leave(client.open(), "raise")
            self.await_none_open()
        wait_for(lambda: len(closed) == 4, "the generators to be closed")

    def test_leaving_the_loop_does_not_wait_for_the_next_packet(self):
        for url in self.urls():
            packets = queue.SimpleQueue()
            packets.put(PACKETS[0])
            stream = millrace.Client(url).open()
            for _ in stream.run(iter(packets.get, None)):
                break
            self.await_none_open()
            self.assertEqual(len(senders()), 1)
            packets.put(PACKETS[0])
            wait_for(lambda: not senders(), "the sending thread to end")

    def test_an_error_of_the_service_is_raised_while_a_packet_is_awaited(self):
        self.attached.kill()
        for url in self.urls():
            packets = queue.SimpleQueue()
            packets.put(PACKETS[0])
            with millrace.Client(url).open() as stream, self.assertRaisesRegex(millrace.StreamFailed, "no_worker"):
                list(stream.run(iter(packets.get, None)))
            packets.put(None)

    def test_a_service_that_ends_the_stream_before_its_packets_is_an_error_after_the_results(self):
        for transport in TRANSPORTS:
            with self.subTest(transport):
                packets = queue.SimpleQueue()
                packets.put(samples(0, 2000))
                results = []
                with millrace.Client(self.url(transport)).open() as stream:
                    with self.assertRaisesRegex(millrace.StreamFailed, "the service has ended the stream"):
                        for result in stream.run(iter(packets.get, None)):
                            results.append(result)
                            self.served.process.send_signal(signal.SIGTERM)
                self.assertEqual(stream.totals, Closed(2000, 2))
                self.assertGreaterEqual(len(results), 2)
                packets.put(None)
                self.setUp()


class Asynchronous(RunTest):
    def over_both(self, talk):
        for url in self.urls():
            run(talk(url))

    def test_iterables_of_both_kinds_are_sent(self):
        async def slowly():
            for packet in PACKETS:
                await asyncio.sleep(0)
                yield packet

        async def talk(url):
            expected = None
            for packets in PACKETS, slowly():
                self.await_none_open()
                async with millrace.connect(url).open() as stream:
                    results = comparable([result async for result in stream.run(packets)])
                    self.assertEqual(stream.totals, Closed(8000, 5))
                expected = expected or results
                self.assertEqual(results, expected)

        self.over_both(talk)

    def test_an_iterable_that_waits_does_not_hold_up_the_event_loop(self):
        async def talk(url):
            packets = queue.SimpleQueue()
            async with millrace.connect(url).open() as stream:
                results = stream.run(iter(packets.get, None))
                for packet in PACKETS:
                    packets.put(packet)
                    await anext(results)
                packets.put(None)
                self.assertEqual(len([result async for result in results]), 1)

        self.over_both(talk)

    def test_an_exception_of_the_packets_is_raised_where_the_results_are_received(self):
        async def broken():
            for packet in broken_after(PACKETS):
                yield packet

        async def talk(url):
            for packets in broken_after(PACKETS), broken():
                self.await_none_open()
                async with millrace.connect(url).open() as stream:
                    with self.assertRaises(Broken):
                        async for _ in stream.run(packets):
                            pass
            self.await_none_open()
            async with millrace.connect(url).open() as stream:
                with self.assertRaises(TypeError):
                    async for _ in stream.run(7):
                        pass

        self.over_both(talk)

    def test_leaving_the_loop_or_cancelling_it_ends_the_sender(self):
        async def microphone(closed):
            try:
                for packet in endless():
                    yield packet
                    await asyncio.sleep(0)
            finally:
                closed.set()

        async def receive(stream, packets, started, leave):
            async for _ in stream.run(packets):
                started.set()
                if leave:
                    return

        async def talk(url):
            for leave in True, False:
                self.await_none_open()
                closed, started = asyncio.Event(), asyncio.Event()
                async with millrace.connect(url).open() as stream:
                    receiving = asyncio.create_task(receive(stream, microphone(closed), started, leave))
                    await started.wait()
                    if not leave:
                        receiving.cancel()
                    await asyncio.wait([receiving])
                    await closed.wait()
            self.await_none_open()
            async with millrace.connect(url).open() as stream:
                await receive(stream, endless(), started, True)
            if sending := [task for task in asyncio.all_tasks() if task.get_name() == "millrace-run"]:
                await asyncio.wait(sending)

        self.over_both(talk)

    def test_an_error_of_the_service_is_raised_while_a_packet_is_awaited(self):
        async def never():
            yield PACKETS[0]
            await asyncio.Event().wait()

        async def talk(url):
            async with millrace.connect(url).open() as stream:
                with self.assertRaisesRegex(millrace.StreamFailed, "no_worker"):
                    async for _ in stream.run(never()):
                        pass

        self.attached.kill()
        self.over_both(talk)


if __name__ == "__main__":
    unittest.main()
