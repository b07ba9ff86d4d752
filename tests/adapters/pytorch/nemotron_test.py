# SPDX-License-Identifier: Apache-2.0
"""The Nemotron example: a stream gets the tokens that the model gives to this stream alone, and those are the library's own."""
import copy
import os
import random
import sys
import unittest
from types import SimpleNamespace
from unittest import mock

import numpy as np
import torch
from random_nemotron import BLANK, processor, random_model, tones

import millrace
from millrace import Flag, Row

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "..", "examples", "nemotron"))
from caches import Rows  # noqa: E402
from features import CONTEXT, FACTOR, Features, chunk_rule  # noqa: E402
from model import Streams  # noqa: E402
from recogniser import Recogniser  # noqa: E402

LOOKAHEADS = (0, 1, 6, 13)
SLOTS, STREAMS = 12, 64


def events(shuffle, lookahead):
    """Events of a stream of a few chunks: its segments end anywhere in a chunk."""
    yield "frames", shuffle.randrange(1, 20000)
    for _ in range(shuffle.randrange(3)):
        kind = shuffle.choice(("flush", "flush", "reset", "gap"))
        yield kind, shuffle.randrange(1, 3000) if kind == "gap" else 0
        yield "frames", shuffle.choice((100, 160, 777, 1280 * (lookahead + 1), shuffle.randrange(1, 12000)))
    yield shuffle.choice(("end", "end", "end", "abort")), 0


class Stream:
    """A stream as the worker receives it: its rows, each with its samples. Some rows come after the loss of a worker."""

    def __init__(self, number, lookahead, stream_events=None, lost=0.05):
        shuffle = random.Random(f"{number} {lookahead}")
        self.rule = chunk_rule(lookahead)
        made = list(stream_events or events(shuffle, lookahead))
        samples = tones(sum(n for kind, n in made if kind in ("frames", "gap")), number).astype(np.float32) / 32768
        width = self.rule["left"] + self.rule["size"] + self.rule["right"]
        self.samples, self.rows, self.answers = samples, [], []
        for seq, begin, left, size, right, flags, gap in millrace.chunks(self.rule, made):
            window = np.zeros(width, np.float32)
            window[:left + size + right] = samples[begin - left:begin + size + right]
            self.rows.append((Row(number, seq, begin, gap, None, 0, left, size, right, flags, None), window))
            if size and shuffle.random() < lost:
                self.lose_worker_before(seq)

    def lose_worker_before(self, seq):
        row, window = self.rows[seq]
        self.rows[seq] = row._replace(flags=row.flags | Flag.RESET), window


class Checked(Streams):
    """Keeps the encoder frames of each row, by its stream and number."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.encoded = {}

    def step(self, audio, rows):
        self.names = [(row.stream, row.seq) for row in rows]
        return super().step(audio, rows)

    def _decode(self, encoded, rows):
        self.encoded.update((name, frames[:count]) for name, frames, count in zip(self.names, encoded, rows.frames))
        return super()._decode(encoded, rows)


def take(recogniser, chosen):
    """Gives the recogniser one batch: pairs of a stream and its slot. The streams keep the answers to their next rows. A marker
    row comes with the row before it, as in the service."""
    framed, marks = [], []
    for stream, slot in chosen:
        for kind in framed, marks:
            if len(stream.answers) < len(stream.rows):
                row, window = stream.rows[len(stream.answers)]
                if (row.size > 0) == (kind is framed):
                    kind.append((stream, row._replace(slot=slot), window))
                    stream.answers.append(None)
    audio = torch.from_numpy(np.array([window for *_, window in framed]))[:, :, None] if framed else None
    answers = recogniser.take([row for _, row, _ in framed], audio, [row for _, row, _ in marks])
    for (stream, row, _), answer in zip((*framed, *marks), (*answers[0], *answers[1])):
        stream.answers[row.seq] = answer


class Nemotron(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.set_num_threads(1)
        cls.model, cls.processor = random_model(window=15), processor()

    def recogniser(self, slots, lookahead):
        self.streams = Checked(copy.deepcopy(self.model), Features(self.processor.feature_extractor, lookahead), slots)
        return Recogniser(self.streams, self.processor, slots)

    def alone(self, stream, lookahead):
        """Returns the answers to a stream that has a recogniser of its own."""
        recogniser = self.recogniser(1, lookahead)
        while len(stream.answers) < len(stream.rows):
            take(recogniser, [(stream, 0)])
        return stream.answers

    def together(self, streams, lookahead):
        """Runs all streams in batches of any of those that have a slot."""
        shuffle, recogniser = random.Random(lookahead), self.recogniser(SLOTS, lookahead)
        waiting, free, live = list(streams), list(range(SLOTS)), {}
        while waiting or live:
            while waiting and free and shuffle.random() < 0.7:
                live[waiting.pop()] = free.pop(shuffle.randrange(len(free)))
            take(recogniser, shuffle.sample(sorted(live.items(), key=lambda each: each[1]), shuffle.randint(0, len(live))))
            for stream in [each for each in live if len(each.answers) == len(each.rows)]:
                free.append(live.pop(stream))

    def test_each_stream_gets_the_tokens_that_it_gets_alone(self):
        for lookahead in LOOKAHEADS:
            with self.subTest(lookahead=lookahead):
                streams = [Stream(number, lookahead) for number in range(STREAMS)]
                self.together(streams, lookahead)
                together, texts = self.streams, set()
                for number, stream in enumerate(streams):
                    self.assertEqual(stream.answers, self.alone(Stream(number, lookahead), lookahead))
                    for name, encoded in self.streams.encoded.items():
                        torch.testing.assert_close(together.encoded[name], encoded, rtol=0, atol=1e-4)
                    texts.update(answer["text"] for answer in stream.answers if answer)
                self.assertGreater(len(texts), 50)

    def test_the_tokens_are_those_of_the_librarys_own_streaming(self):
        for lookahead in LOOKAHEADS:
            with self.subTest(lookahead=lookahead):
                rule = chunk_rule(lookahead)
                samples = rule["first"] + 40 // (lookahead + 1) * rule["size"] + rule["right"]
                stream = Stream(1, lookahead, [("frames", samples), ("end", 0)], lost=0)
                texts = [answer["text"] for answer in self.alone(stream, lookahead)]
                self.processor.set_num_lookahead_tokens(lookahead)
                made = self.processor.feature_extractor(stream.samples, sampling_rate=16000, return_tensors="pt")

                def chunks(at=0, size=self.processor.num_mel_frames_first_audio_chunk):
                    while at + size <= len(stream.samples) // 160:
                        yield made.input_features[:, at:at + size]
                        at, size = at + size, self.processor.num_mel_frames_per_audio_chunk

                tokens = self.model.generate(input_features=chunks(), num_lookahead_tokens=lookahead).sequences[0, 1:]
                self.assertTrue(texts[-2])
                self.assertEqual(self.processor.decode(tokens, skip_special_tokens=True), texts[-2])

    def test_the_encoder_frames_are_those_of_the_librarys_encoder_with_the_whole_recording(self):
        for lookahead in LOOKAHEADS:
            for samples in (160, 1000, 16000, 20001, 41000):
                with self.subTest(lookahead=lookahead, samples=samples):
                    stream = Stream(1, lookahead, [("frames", samples), ("end", 0)], lost=0)
                    self.alone(stream, lookahead)
                    own = torch.cat(list(self.streams.encoded.values()))
                    torch.testing.assert_close(own, self.encoded_by_the_library(stream, lookahead), rtol=0, atol=1e-4)

    def encoded_by_the_library(self, stream, lookahead, lost=0):
        """Returns the frames of the library's encoder. Its layers do not see the first ``lost`` ones."""
        made = self.processor.feature_extractor(stream.samples, sampling_rate=16000, return_tensors="pt")
        real = len(stream.samples) // 160
        frames = real + -(real - 1) % FACTOR  # the last encoder frame is filled with zeros
        mel = torch.zeros(1, frames, 80)
        mel[:, :real] = made.input_features[:, :real]
        subsampling = self.model.encoder.subsampling
        subsampled = subsampling(mel)[:, lost:]
        with mock.patch.object(subsampling, "forward", lambda *_, **__: subsampled):
            return self.model.get_audio_features(mel, num_lookahead_tokens=lookahead).pooler_output[0]

    def test_after_the_loss_of_a_worker_the_encoder_begins_at_the_row(self):
        for lookahead in LOOKAHEADS:
            with self.subTest(lookahead=lookahead):
                stream = Stream(1, lookahead, [("frames", 70000), ("end", 0)], lost=0)
                stream.lose_worker_before(2)
                self.alone(stream, lookahead)
                own = torch.cat([frames for (_, seq), frames in self.streams.encoded.items() if seq >= 2])
                library = self.encoded_by_the_library(stream, lookahead, lost=2 * (lookahead + 1))
                torch.testing.assert_close(own, library, rtol=0, atol=1e-4)

    def texts(self, lookahead, *stream_events):
        return [answer and (answer["text"], answer["final"])
                for answer in self.alone(Stream(1, lookahead, stream_events, lost=0), lookahead)]

    def test_each_segment_has_its_own_final_text_and_the_state_continues(self):
        first, size = chunk_rule(1)["first"], chunk_rule(1)["size"]
        texts = self.texts(1, ("frames", first + 3 * size), ("flush", 0), ("frames", 3 * size), ("flush", 0), ("end", 0))
        self.assertEqual([final for _, final in texts], [False] * 3 + [True] + [False] * 2 + [True] * 2)
        self.assertTrue(texts[3][0].startswith(texts[2][0]) and texts[2][0])
        self.assertFalse(texts[6][0].startswith(texts[3][0]))
        self.assertEqual(texts[7][0], "")
        self.assertEqual(self.kept_frames(), sum(map(len, self.streams.encoded.values())))

    def kept_frames(self):
        return int(self.streams._caches.seen[0])

    def test_after_a_reset_the_text_and_the_state_begin_anew(self):
        first, size = chunk_rule(1)["first"], chunk_rule(1)["size"]
        texts = self.texts(1, ("frames", first + size), ("reset", 0), ("frames", first + 240), ("abort", 0))
        self.assertEqual([final for _, final in texts], [False, True, False, True])
        self.assertFalse(texts[2][0].startswith(texts[1][0]))
        self.assertEqual(self.kept_frames(), 2)

    def test_after_the_loss_of_a_worker_the_text_begins_anew_in_mid_segment(self):
        stream = Stream(2, 1, [("frames", 16000), ("end", 0)], lost=0)
        stream.lose_worker_before(2)
        texts = [answer["text"] for answer in self.alone(stream, 1)]
        self.assertTrue(texts[1] and texts[2])
        self.assertFalse(texts[2].startswith(texts[1]))
        self.assertTrue(texts[3].startswith(texts[2]))

    def test_a_character_without_all_of_its_bytes_is_not_stable(self):
        pieces = iter((b"caf", b"\xc3", b"\xa9 c", b"\xc3"))
        streams = SimpleNamespace(clear=lambda slots: None, step=lambda audio, rows: [list(next(pieces))])
        utf8 = SimpleNamespace(decode=lambda tokens, **_: bytes(tokens).decode(errors="replace"))
        stream = Stream(1, 0, [("frames", 160 + 2 * 1280 + 800), ("end", 0)], lost=0)
        recogniser = Recogniser(streams, utf8, 1)
        for _ in stream.rows:
            take(recogniser, [(stream, 0)])
        self.assertEqual([(answer["text"], answer["stable"]) for answer in stream.answers],
                         [("caf", "caf"), ("caf\ufffd", "caf"), ("café c", "café c"), ("café c\ufffd", "café c\ufffd")])

    def test_after_the_warm_up_the_state_is_that_of_new_streams(self):
        warm, fresh = (Streams(copy.deepcopy(self.model), Features(self.processor.feature_extractor, 1), 3) for _ in range(2))
        warm.warm_up(3)
        fresh.clear(range(3))
        for state in "keys", "values", "convolved", "seen", "predictor", "predicted":
            torch.testing.assert_close(getattr(warm._caches, state), getattr(fresh._caches, state), rtol=0, atol=0)

    def test_the_tokens_of_a_frame_are_bounded(self):
        model = random_model()
        with torch.no_grad():
            model.joint.head.bias[BLANK] = -1e9
        streams = Streams(model, Features(self.processor.feature_extractor, 6), 1)
        (row, window), = Stream(1, 6, [("frames", 7840), ("end", 0)], lost=0).rows
        streams.clear([0])
        self.assertEqual([len(tokens) for tokens in streams.step(torch.from_numpy(window)[None], [row])], [7 * 4])

    def test_the_mel_frames_of_a_row_are_those_of_the_whole_run(self):
        for lookahead in LOOKAHEADS:
            stream = Stream(1, lookahead, [("frames", 30001), ("end", 0)])
            whole = self.processor.feature_extractor(stream.samples, sampling_rate=16000, return_tensors="pt")
            features = Features(self.processor.feature_extractor, lookahead)
            for row, window in stream.rows:
                if row.size >= 160:
                    mel = features(torch.from_numpy(window)[None], [row])
                    begin, end = row.begin // 160 - min(CONTEXT, row.left // 160), (row.begin + row.size) // 160
                    own = mel.frames[0, int(mel.missing):][:end - begin]
                    torch.testing.assert_close(own, whole.input_features[0, begin:end], rtol=0, atol=1e-4)


class State(unittest.TestCase):
    def test_a_short_row_adds_only_its_real_frames(self):
        state = torch.tensor([[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]]])
        rows = Rows(slots=[2, 0], frames=[2, 1], width=2, device=torch.device("cpu"))
        frames = rows.extend(state, torch.tensor([[[10, 11]], [[12, 0]]]))
        self.assertEqual(frames.tolist(), [[[7, 8, 9, 10, 11]], [[1, 2, 3, 12, 0]]])
        self.assertEqual(state.tolist(), [[[2, 3, 12]], [[4, 5, 6]], [[9, 10, 11]]])


if __name__ == "__main__":
    unittest.main()
