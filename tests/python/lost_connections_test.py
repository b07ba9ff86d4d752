# SPDX-License-Identifier: Apache-2.0
"""Streams survive their connection: a proxy cuts it, and the results are those without a loss."""
import asyncio
import itertools
import random
import signal
import tempfile
import unittest
from pathlib import Path

from clients import PIPELINE, TRANSPORTS, ClientTest, comparable
from cutting_proxy import CuttingProxy, at_random
from harness import samples, wait_for

import millrace
from millrace import Closed, Result, Resumed


def port_of(service, transport):
    return {"websocket": service.port, "zeromq": service.zeromq_port}[transport]


class LostConnections(ClientTest):
    def proxy(self, limits=(), transport="websocket", service=None):
        proxy = CuttingProxy(port_of(service or self.served, transport), limits)
        self.addCleanup(proxy.close)
        proxy.url = {"websocket": "ws", "zeromq": "tcp"}[transport] + f"://127.0.0.1:{proxy.port}"
        return proxy

    def talk(self, proxy, seed=0):
        """The events of a stream without Resumed, and how often it was kept. A stream of which nothing has arrived is
        opened anew."""
        cuts = random.Random(seed)
        with millrace.Client(proxy.url).open(rate=16000) as stream:
            position, frames = 0, samples(0, 16000)
            while position < len(frames):
                size = cuts.choice((1, 321, 3200, 5001))
                stream.send(frames[position:position + size])
                position += size
            stream.flush(7)
            stream.send(samples(16000, 3000))
            stream.gap(500)
            stream.set({"lang": "de"})
            stream.send(samples(19500, 4000))
            stream.reset()
            stream.send(samples(23500, 100))
            stream.end()
            events = list(iter(stream.next, None))
        return comparable([event for event in events if not isinstance(event, Resumed)]), events.count(Resumed(True))

    def test_wherever_a_connection_is_cut_the_events_are_those_without_a_loss(self):
        for transport in TRANSPORTS:
            whole, losses = self.talk(self.proxy(transport=transport))
            self.assertEqual((losses, whole[-1]), (0, Closed(23100, 16)))
            drawn = at_random(1, 700, 9000)
            resumed = 0
            for seed in range(40):
                limits = list(itertools.islice(drawn, 3))
                with self.subTest(limits=limits, transport=transport):
                    events, losses = self.talk(self.proxy(limits, transport), seed)
                    self.assertEqual(events, whole)
                    resumed += losses
            self.assertGreater(resumed, 40)

    def test_the_streams_of_a_zeromq_connection_continue_together_over_the_next_one(self):
        proxy = self.proxy(transport="zeromq")
        client = millrace.Client(proxy.url)
        streams = [client.open() for _ in range(2)]
        for packet in range(3):
            for stream in streams:
                stream.send(samples(1600 * packet, 1600))
                self.assertEqual(next(iter(stream)).seq, packet)
            proxy.cut()
        for stream in streams:
            stream.end()
            events = list(iter(stream.next, None))
            self.assertEqual((events.count(Resumed(True)), events[-1]), (1, Closed(4800, 3)))
        self.assertEqual(proxy.count, 4)

    def test_a_loss_is_logged_and_waiting_for_results_goes_on(self):
        proxy = self.proxy()
        with millrace.Client(proxy.url).open(id="mic") as stream, self.assertLogs("millrace", "INFO") as logs:
            stream.send(samples(0, 1600))
            results = iter(stream)
            first = next(results)
            proxy.cut()
            stream.send(samples(1600, 1600))
            self.assertEqual((first.seq, next(results).seq), (0, 1))
        self.assertEqual(logs.output, ["INFO:millrace:stream mic: the connection was lost; it continues"])

    def test_with_asyncio_a_stream_survives_too(self):
        async def over(proxy):
            async with millrace.connect(proxy.url).open() as stream:
                for packet in range(5):
                    await stream.send(samples(1600 * packet, 1600))
                    proxy.cut()
                await stream.end()
                return [result.seq async for result in stream]

        for transport in TRANSPORTS:
            with self.subTest(transport):
                self.assertEqual(asyncio.run(over(self.proxy(transport=transport))), [0, 1, 2, 3, 4, 5])

    def another(self, extra=""):
        served = self.service(PIPELINE, extra)
        self.tap(served, "default", "--data", "crc32c")
        return served

    def test_a_restarted_service_with_another_key_no_longer_has_the_stream(self):
        proxies = [self.proxy(transport=transport) for transport in TRANSPORTS]
        streams = [millrace.Client(proxy.url).open() for proxy in proxies]
        for stream in streams:
            stream.send(samples(0, 1600))
            next(iter(stream))
        self.served.stop(signal.SIGKILL)
        restarted = self.another()
        for proxy, transport, stream in zip(proxies, TRANSPORTS, streams):
            proxy.to = port_of(restarted, transport)
            with self.subTest(transport), self.assertRaisesRegex(millrace.ConnectionLost, "no longer has the stream: refused as "):
                list(stream)

    def keys(self):
        """The part of a configuration that names a file with a key."""
        folder = tempfile.TemporaryDirectory(prefix="millrace-")
        self.addCleanup(folder.cleanup)
        key = Path(folder.name, "key")
        key.write_text("7" * 64)
        key.chmod(0o600)
        return f'[access]\nresume_key = "{key}"\n'

    def test_a_service_with_the_same_key_opens_the_stream_anew_and_each_result_comes_once(self):
        for transport in TRANSPORTS:
            with self.subTest(transport):
                self.check_restart(transport)

    def check_restart(self, transport):
        keys = self.keys()
        first = self.another(keys)
        proxy = self.proxy(transport=transport, service=first)
        with millrace.Client(proxy.url).open() as stream:
            for packet in range(5):
                stream.send(samples(1600 * packet, 1600))
            results = [next(iter(stream)) for _ in range(3)]
            first.stop(signal.SIGKILL)
            proxy.to = port_of(self.another(keys), transport)
            for packet in range(5, 8):
                stream.send(samples(1600 * packet, 1600))
            stream.end()
            events = list(iter(stream.next, None))
        self.assertEqual([event.kept for event in events if isinstance(event, Resumed)], [False])
        results += [event for event in events if isinstance(event, Result)]
        self.assertEqual([(result.seq, result.begin) for result in results], [(seq, 1600 * seq) for seq in range(9)])
        self.assertEqual([result.data["size"] for result in results], [1600] * 8 + [0])

    def test_without_resume_a_loss_is_an_exception(self):
        for transport in TRANSPORTS:
            proxy = self.proxy(transport=transport)
            stream = millrace.Client(proxy.url, millrace.ClientSettings(resume=False)).open()
            proxy.cut()
            with self.subTest(transport), self.assertRaises(millrace.ConnectionLost):
                stream.next()
        wait_for(lambda: not self.served.streams(), "the stream to end")


if __name__ == "__main__":
    unittest.main()
