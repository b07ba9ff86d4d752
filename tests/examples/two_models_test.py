# SPDX-License-Identifier: Apache-2.0
"""Two models on one stream: Silero VAD ends the segments that Moonshine transcribes."""
import asyncio
import itertools
import json
import platform
import sys
import threading
import types
import unittest
from pathlib import Path
from unittest import mock

import numpy as np
from harness import SystemTest, run, wait_for
from silero_alone import UTTERANCES, Alone, utterance

import millrace

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "moonshine"
sys.path[:0] = [str(EXAMPLE), str(ROOT / "examples" / "demo")]
import endpoints  # noqa: E402
import model  # noqa: E402
import worker  # noqa: E402
from measures import spoken, word_errors  # noqa: E402
from recognisers import librivox  # noqa: E402

SECOND, ROW = 16000, 1536
PAUSE = np.zeros(SECOND, np.int16)


def speech():
    """Five utterances, each with a pause behind it, and where the pauses begin."""
    pieces = [piece for number in UTTERANCES for piece in (utterance(number), PAUSE)]
    lengths = list(itertools.accumulate(map(len, pieces)))
    return np.concatenate(pieces), lengths[::2]


class Probabilities(endpoints.Voice):
    """Keeps each probability of the model."""

    def __init__(self):
        super().__init__(1)
        self.all = []

    def __call__(self, windows, state):
        probability, state = super().__call__(windows, state)
        self.all.extend(probability)
        return probability, state


def ends_alone(samples, probabilities):
    """Whether each row ends its segment, from the probabilities of the model alone with one stream, which are appended."""
    alone, ends, spoke, quiet = Alone(), [], False, 0
    for at in range(0, len(samples), ROW):
        for window in range(at, min(at + ROW, len(samples)), 512):
            probabilities.append(alone.probability_of(samples[window:window + 512]))
            if probabilities[-1] > 0.5:
                spoke, quiet = True, 0
            else:
                quiet += 512
        ends.append(spoke and quiet >= 9600)
        spoke = spoke and not ends[-1]
    return ends


class Ends(unittest.TestCase):
    def test_a_slot_has_the_ends_of_its_stream_alone_also_if_a_stream_had_it_before(self):
        samples, _ = speech()
        late = np.concatenate([PAUSE, samples[:100000]])  # behind a stream that ends in mid-speech
        streams = {0: [samples, samples[5000:200000]], 2: [samples[SECOND:300000]], 5: [samples[-400000:-200000], samples[:100000], late]}
        probabilities, voice = [], Probabilities()
        expected = {slot: [end for each in parts for end in ends_alone(each, probabilities)] for slot, parts in streams.items()}
        rows = {slot: [row for each in parts for row in self.rows(each)] for slot, parts in streams.items()}
        found, model = {slot: [] for slot in streams}, endpoints.Endpoints(voice, 6)
        for together in itertools.zip_longest(*rows.values()):
            here = [(slot, row) for slot, row in zip(rows, together) if row] + [(6, (np.zeros(64 + ROW), 0, False))]
            windows, sizes, resets = zip(*(row for _, row in here))
            ends = model.of(types.SimpleNamespace(slot=np.array([slot for slot, _ in here]), size=np.array(sizes),
                                                  reset=np.array(resets), flags=np.where(resets, 2, 0), data=np.array(windows, np.float32)[:, :, None]))
            for (slot, _), end in zip(here[:-1], ends):
                found[slot].append(bool(end))
        self.assertEqual(found, expected)
        np.testing.assert_allclose(sorted(voice.all), sorted(probabilities), rtol=0, atol=1e-5)
        self.assertGreater(sum(map(sum, expected.values())), 10)

    def rows(self, samples):
        """(window, size, reset) of each row."""
        padded = np.concatenate([np.zeros(64), samples / 32768, np.zeros(ROW)])
        for at in range(0, len(samples), ROW):
            size = min(ROW, len(samples) - at)
            yield np.where(np.arange(64 + ROW) < 64 + size, padded[at:at + 64 + ROW], 0), size, at == 0

    def test_the_silence_of_a_segment_that_ended_otherwise_does_not_end_the_next(self):
        probability = iter([1.0, *[0.0] * 30])  # of one window of speech, and then silence
        model = endpoints.Endpoints(lambda windows, state: (np.array([next(probability)]), state), 1)

        def ends(flags):
            return bool(model.of(types.SimpleNamespace(slot=np.zeros(1, int), size=np.array([ROW]), reset=np.array([bool(flags & millrace.Flag.RESET)]),
                                                       flags=np.array([int(flags)]), data=np.zeros((1, 64 + ROW, 1), np.float32)))[0])

        first = [ends(millrace.Flag.START | millrace.Flag.RESET | millrace.Flag.SEGMENT), ends(0), ends(millrace.Flag.LAST)]
        self.assertEqual([*first, ends(millrace.Flag.SEGMENT), *(ends(0) for _ in range(5))], [False] * 9)

    def test_only_the_chunks_of_the_model_are_taken(self):
        right = {"size": 1536, "step": 0, "left": 64, "right": 0, "align": "body", "pad": "zero"}
        for other, fits in ({}, True), ({"step": 1536}, True), ({"step": 768}, False), ({"step": 2000}, False), ({"right": 64}, False):
            attached = types.SimpleNamespace(rate=16000, channels=1, dtype=np.float32, chunk=right | other)
            self.assertEqual(worker.corrections(attached, silero=True) == [], fits, other)

    def test_a_missing_model_is_an_error_with_the_command_that_installs_it(self):
        with mock.patch.object(sys, "path", []), self.assertRaisesRegex(RuntimeError, "missing: pip install --no-deps silero-vad$"):
            endpoints.Voice(1)


@unittest.skipUnless(platform.machine() == "x86_64", "the wheel with Moonshine's weights is for x86-64")
class TwoModels(SystemTest):
    def test_each_pause_that_silero_finds_ends_a_segment_that_moonshine_transcribes(self):
        service = self.service("[[pipeline]]" + (EXAMPLE / "silero.toml").read_text().split("[[pipeline]]")[1])
        attached = millrace.Worker(service.workers, reattach=False)
        self.addCleanup(attached.close)
        self.assertEqual(worker.corrections(attached, silero=True), [])
        rows, done = [], millrace.Batch.done
        with mock.patch.object(millrace.Batch, "done", lambda batch, *all, **named: (rows.extend(batch.framed), done(batch, *all, **named))):
            serving = threading.Thread(target=worker.serve, args=(attached, model.Model(1), 100, endpoints.Voice(1)), daemon=True)
            serving.start()
            samples, pauses = speech()
            messages = run(self.answers(service, samples, rows))
            attached.close()
            serving.join()
        answers = [message for message in messages if message["type"] == "result" and message["data"].get("final")]
        finals = [answer for answer in answers if answer["data"]["text"]]
        self.assertEqual(len(finals), len(pauses), answers)
        for final, pause in zip(finals, pauses):
            self.assertTrue(pause < final["end"] < pause + SECOND, (pause, final))
        references = " ".join(words for _, words in librivox().values())
        text = spoken(" ".join(final["data"]["text"] for final in finals))
        self.assertLessEqual(word_errors(references, text) / len(references.split()), 0.08, text)

    async def answers(self, service, samples, rows):
        """Sends a row when the row before it is answered, so that the segments do not depend on the speed of the machine."""
        async with service.connect() as connection:
            for number, at in enumerate(range(0, len(samples), ROW)):
                await asyncio.to_thread(wait_for, lambda: len(rows) >= number, "the row before", 0.001)
                await connection.send(samples[at:at + ROW].tobytes())
            await connection.send('{"type":"end"}')
            return [json.loads(message) async for message in connection]


if __name__ == "__main__":
    unittest.main()
