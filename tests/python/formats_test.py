# SPDX-License-Identifier: Apache-2.0
"""Formats, rates, channels and packets of the package's clients, over both transports."""
import asyncio
import sys
import unittest
from pathlib import Path

import numpy as np
from clients import ClientTest
from harness import sample

import millrace

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "system"))
from speech_formats import opus_packets  # noqa: E402


def tone(count, rate=16000, loudness=8000):
    return (loudness * np.sin(2 * np.pi * 440 * np.arange(count) / rate)).astype(np.int16)


class Formats(ClientTest):
    def streamed(self, url, *parts, **arguments):
        """The number of frames of the pipeline, and the checksums of the rows."""
        with millrace.Client(url).open(**arguments) as stream:
            for part in parts:
                stream.send(part)
            stream.end()
            rows = [result.data["crc32c"] for result in stream]
            return stream.totals.frames, rows

    def test_the_service_converts_formats_and_rates(self):
        for url in self.urls():
            for frames, arguments in ((bytes(3 * 4800), {"format": "s24le", "rate": 48000}),
                                      (b"\xff" * 800, {"format": "mulaw", "rate": 8000}), (b"\xd5" * 800, {"format": "alaw", "rate": 8000}),
                                      (np.zeros((4410, 2), np.int16), {"rate": 44100, "channels": 2, "channel": "mean"})):
                with self.subTest(arguments):
                    self.assertEqual(self.streamed(url, frames, **arguments)[0], 1600)

    def test_one_channel_of_several_is_selected(self):
        left, right = (np.array([*map(sample, range(at, at + 1600))], np.int16) for at in (0, 5000))
        for url in self.urls():
            for channel, mono in ((0, left), (1, right)):
                self.assertEqual(self.streamed(url, np.stack([left, right], 1), channels=2, channel=channel), self.streamed(url, mono))

    def test_each_send_of_an_opus_stream_is_one_packet(self):
        packets, rows = opus_packets(tone(8000), 16000), []
        for url in self.urls():
            frames, seen = self.streamed(url, *packets, format="opus")
            self.assertEqual(frames, 8000)
            rows.append(seen)
        self.assertEqual(rows[0], rows[1])

    def test_a_gap_of_an_opus_stream_counts_packets(self):
        packets = opus_packets(tone(3200), 16000)
        for url in self.urls():
            with millrace.Client(url).open(format="opus") as stream:
                stream.send(packets[0])
                stream.gap(3)
                for packet in packets[1:]:
                    stream.send(packet)
                stream.end()
                self.assertEqual(max(result.end for result in stream), 13 * 320)
                self.assertEqual(stream.totals.frames, 3200)

    def test_the_client_for_asyncio_sends_packets_too(self):
        async def frames(url):
            async with millrace.connect(url).open(format="opus", channels=1) as stream:
                for packet in opus_packets(tone(1600), 16000):
                    await stream.send(packet)
                await stream.end()
                async for _ in stream:
                    pass
                return stream.totals.frames

        for url in self.urls():
            self.assertEqual(asyncio.run(frames(url)), 1600)

    def test_only_bytes_of_a_possible_length_are_a_packet(self):
        for url in self.urls():
            with millrace.Client(url).open(format="opus") as stream:
                for packet, error, words in ((b"", ValueError, "an Opus packet must have 1 to 61298 bytes, not 0"),
                                             (bytes(61299), ValueError, "not 61299"),
                                             (np.zeros(9, np.int16), TypeError, "an Opus packet must be bytes, not an array")):
                    with self.assertRaisesRegex(error, words):
                        stream.send(packet)

    def test_a_chunk_size_is_selected_by_a_time_or_a_number_of_frames(self):
        self.served = self.service('[[pipeline]]\nchunk = { size = "320ms", sizes = ["80ms", "160ms", "320ms"] }\n')
        self.tap(self.served)
        for url in self.urls():
            for chunk, size in ((None, 5120), ("160ms", 2560), (1280, 1280)):
                with millrace.Client(url).open(format="mulaw", rate=8000, chunk=chunk) as stream:
                    stream.send(bytes(2560))
                    stream.end()
                    self.assertEqual({result.end - result.begin for result in stream} - {0}, {size})

    def test_an_invalid_channel_or_chunk_is_named(self):
        client = millrace.Client(self.url("zeromq"))
        for arguments, error, words in (({"channel": "left"}, ValueError, "channel must be a whole number or \"mean\", not 'left'"),
                                        ({"channel": 0.5}, TypeError, 'channel must be a whole number or "mean", not 0.5'),
                                        ({"chunk": 0.16}, TypeError, 'chunk must be a time such as "160ms" or a number of frames, not 0.16')):
            with self.subTest(arguments), self.assertRaisesRegex(error, words):
                client.open(**arguments)

    def test_the_service_names_a_channel_or_chunk_that_it_does_not_have(self):
        for url in self.urls():
            for arguments in ({"channels": 2, "channel": 2}, {"channels": 2}, {"chunk": "33ms"}):
                with self.subTest(arguments), self.assertRaises(millrace.StreamRefused) as refused:
                    millrace.Client(url).open(**arguments)
                self.assertEqual(refused.exception.parameter, "chunk" if "chunk" in arguments else "channel")

    def test_a_stream_that_declines_to_be_recorded_is_served(self):
        for url in self.urls():
            with millrace.Client(url).open(record=False) as stream:
                stream.send(bytes(3200))
                stream.end()
                self.assertEqual(next(iter(stream)).end, 1600)

    def test_record_is_true_or_false(self):
        with self.assertRaisesRegex(TypeError, "record must be True or False, not 'no'"):
            millrace.Client(self.url("websocket")).open(record="no")


if __name__ == "__main__":
    unittest.main()
