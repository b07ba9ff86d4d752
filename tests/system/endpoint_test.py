# SPDX-License-Identifier: Apache-2.0
"""Endpoints by voice: utterances with a second of silence between them become a segment each, and a speech recognizer gives
the same transcripts as without Millrace."""
import asyncio
import glob
import itertools
import json
import os
import subprocess
import unittest
import wave

from harness import PATIENCE, Process, SystemTest, await_decoder, read_all, run

WORKER, DIRECT = os.environ["POCKETSPHINX_WORKER"], os.environ["POCKETSPHINX_DIRECT"]
UTTERANCES = "/usr/share/pocketsphinx/test/data/librivox/*.wav"
PACKET, SECOND = 1600 * 2, 16000 * 2  # bytes


def read(path):
    with wave.open(path) as file:
        return file.readframes(file.getnframes())


def pipeline(name, sensitivity, silence, on_endpoint):
    return (f'[[pipeline]]\nname = "{name}"\nslots = 1\nchunk = {{ size = 1600 }}\n'
            f'endpoint = {{ by = "vad", silence = "{silence}ms", sensitivity = {sensitivity}, on_endpoint = "{on_endpoint}" }}\n')


class Endpoints(SystemTest):
    def speak(self, count):
        """Sets the audio to this number of utterances, and the pauses between them, in which the segments must end."""
        utterances = [read(path) for path in sorted(glob.glob(UTTERANCES))[:count]]
        self.assertEqual(len(utterances), count)
        self.audio = bytes(SECOND).join(utterances)
        ends = itertools.accumulate(utterances, lambda end, each: end + SECOND + len(each), initial=-SECOND)
        self.pauses = [range(end // 2, (end + SECOND) // 2 + 1) for end in list(ends)[1:-1]]

    async def stream(self, service, name):
        """The results of one stream of all utterances."""
        async with service.connect(pipeline=name) as connection:
            answers = asyncio.ensure_future(read_all(connection))
            for at in range(0, len(self.audio), PACKET):
                await connection.send(self.audio[at:at + PACKET])
            await connection.send('{"type":"end"}')
            messages, code = await answers
        self.assertEqual(code, 1000)
        return [each for each in messages if each["type"] == "result"]

    def segments(self, results):
        """The last result of each segment. Checks that there is one segment per utterance."""
        last = [each for each in results if "LAST" in each["flags"]]
        ends = [each["end"] for each in last]
        self.assertEqual(len(ends), len(self.pauses) + 1, ends)
        for end, pause in zip(ends, self.pauses):
            self.assertIn(end, pause)
            self.assertEqual(end % 160, 0, "whole pieces of 10 ms")
        self.assertEqual(ends[-1], len(self.audio) // 2)
        return last

    def test_five_utterances_are_five_segments_at_each_sensitivity_and_silence(self):
        self.speak(5)
        rules = {f"p{sensitivity}-{silence}": (sensitivity, silence) for sensitivity in range(4) for silence in (300, 900)}
        service = self.service("".join(pipeline(name, *rule, "segment") for name, rule in rules.items()))
        for name in rules:
            self.tap(service, name)

        async def all_streams():
            return await asyncio.gather(*(self.stream(service, name) for name in rules))

        for (name, (_, silence)), results in zip(rules.items(), run(all_streams())):
            with self.subTest(name):
                for segment, pause in zip(self.segments(results), self.pauses):
                    self.assertLess(segment["end"], pause.start + 16 * (silence + 500))
        self.await_metric(service, 4 * len(rules), "millrace_endpoints_total", by="silence")
        self.assertEqual(service.metric("millrace_endpoints_total"), 4 * len(rules))

    def test_each_final_transcript_is_that_of_the_decoder_fed_directly(self):
        self.speak(2)
        rules = {"a": (1, 300, "segment"), "b": (2, 800, "reset")}
        service = self.service("".join(pipeline(name, *rule) for name, rule in rules.items()))
        for name, (*_, on_endpoint) in rules.items():
            with self.subTest(name):
                decoder = Process(WORKER, "--url", service.workers, "--pipeline", name, "--warm", "1")
                self.addCleanup(decoder.kill)
                await_decoder(decoder)
                last = self.segments(run(self.stream(service, name)))
                finals = [each["data"] for each in last]
                self.assertTrue(all(each["final"] and each["text"] for each in finals), finals)
                self.assertEqual([(each["text"], each["score"]) for each in finals], self.decode_directly(
                    service.folder.name, [each["end"] for each in last], on_endpoint == "segment"))
                decoder.stop()

    def decode_directly(self, folder, ends, one_stream):
        """The answers of the decoder, without Millrace, to the frames between these positions."""
        paths = []
        for begin, end in zip([0, *ends], ends):
            paths.append(os.path.join(folder, f"{begin}.wav"))
            with wave.open(paths[-1], "wb") as file:
                file.setparams((1, 2, 16000, 0, "NONE", ""))
                file.writeframes(self.audio[2 * begin:2 * end])
        lines = subprocess.run([DIRECT, *(["--stream"] if one_stream else []), *paths], check=True,
                               capture_output=True, text=True, timeout=4 * PATIENCE).stdout.splitlines()
        return [(each["text"], each["score"]) for each in map(json.loads, lines)]


if __name__ == "__main__":
    unittest.main()
