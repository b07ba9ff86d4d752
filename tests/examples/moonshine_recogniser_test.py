# SPDX-License-Identifier: Apache-2.0
"""When the Moonshine worker decodes which audio, with a model that says how long its segments are."""
import os
import sys
import unittest

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "examples", "moonshine"))
from recogniser import AT_ONCE, LONGEST, PASS, Recogniser  # noqa: E402

from millrace import Flag, Row  # noqa: E402

SECOND = 16000
BEGINS = Flag.START | Flag.RESET | Flag.SEGMENT


class Fake:
    """A model that takes time, and answers with the seconds of each segment and its first value."""

    def __init__(self):
        self.now, self.calls = 100.0, []
        self.cost = 0.0  # seconds of time for a second of audio

    def transcribe(self, segments):
        self.calls.append([len(each) / SECOND for each in segments])
        self.now += self.cost * sum(map(len, segments)) / SECOND
        return [f"{len(each) / SECOND:g} s of {each[0]:.1f}" for each in segments]


class Decoding(unittest.TestCase):
    def setUp(self):
        self.model = Fake()
        self.recogniser = Recogniser(self.model.transcribe, 32, SECOND, clock=lambda: self.model.now)

    def row(self, slot, flags, size):
        return Row(slot + 1000, 0, 0, 0, None, slot, 0, size, 0, flags, None)

    def take(self, framed=(), marks=(), value=0.5):
        """`framed`: (slot, flags, seconds); `marks`: (slot, flags). Returns the texts of the answers, final ones with a point."""
        rows = [self.row(slot, flags, int(seconds * SECOND)) for slot, flags, seconds in framed]
        audio = np.full((len(rows), SECOND), value, np.float32)
        answers, marked = self.recogniser.take(rows, audio, [self.row(slot, flags, 0) for slot, flags in marks])
        return [each and each["text"] + ("." if each.get("final") else "") for each in (*answers, *marked)]

    def test_a_segment_is_decoded_again_after_each_second_of_it_and_at_its_end(self):
        texts = [self.take([(3, BEGINS if i == 0 else 0, 0.5)])[0] for i in range(5)]
        self.assertEqual(texts, [None, "1 s of 0.5", None, "2 s of 0.5", None])
        self.assertEqual(self.take([(3, Flag.LAST, 0.5)]), ["3 s of 0.5."])
        self.assertEqual(self.take([(3, Flag.SEGMENT, 1)]), ["1 s of 0.5"])

    def test_the_end_may_be_on_a_marker_row(self):
        self.take([(3, BEGINS, 0.5)])
        self.assertEqual(self.take(marks=[(3, Flag.LAST | Flag.END)]), ["0.5 s of 0.5."])
        self.assertEqual(self.take([(3, BEGINS, 1)], marks=[(3, Flag.LAST)]), [None, "1 s of 0.5."])

    def test_a_segment_without_audio_has_an_empty_text(self):
        self.assertEqual(self.take(marks=[(3, BEGINS | Flag.LAST), (3, Flag.END)]), [".", None])
        self.assertEqual(self.model.calls, [])

    def test_after_a_reset_the_text_begins_anew(self):
        self.take([(3, BEGINS, 1)], value=0.1)
        self.assertEqual(self.take([(3, Flag.RESET, 1)], value=0.2), ["1 s of 0.2"])
        self.take(marks=[(3, Flag.ABORT)])
        self.assertEqual(self.take([(3, BEGINS | Flag.LAST, 1)], value=0.3), ["1 s of 0.3."])

    def test_the_first_row_after_a_reset_has_an_answer_so_that_the_client_learns_of_it(self):
        self.assertEqual(self.take([(3, BEGINS, 0.1)]), [None])
        self.assertEqual(self.take([(3, Flag.RESET, 0.1)]), [""])

    def test_a_segment_that_is_too_long_has_a_final_text_there_and_loses_nothing(self):
        rows = [self.take([(3, BEGINS if i == 0 else 0, 0.75)])[0] for i in range(40)]
        finals = [text for text in rows if text and text.endswith(".")]
        self.assertEqual(finals, [f"{27 * 0.75} s of 0.5."])
        self.assertGreater(27 * 0.75 * SECOND, LONGEST)
        self.assertEqual(self.take(marks=[(3, Flag.LAST)]), [f"{13 * 0.75} s of 0.5."])

    def test_a_segment_of_the_longest_length_has_one_final_text(self):
        rows = [self.take([(3, BEGINS if i == 0 else 0, 1)])[0] for i in range(LONGEST // SECOND)]
        self.assertEqual([text for text in rows if text.endswith(".")], [])
        self.assertEqual(self.take(marks=[(3, Flag.LAST)]), ["20 s of 0.5."])

    def test_silence_is_not_decoded(self):
        self.assertEqual(self.take([(3, BEGINS, 1)], value=0.005), [""])
        self.assertEqual(self.take([(3, Flag.LAST, 1)], value=0), ["."])
        self.assertEqual(self.model.calls, [])
        self.assertEqual(self.take([(3, Flag.SEGMENT | Flag.LAST, 1)]), ["1 s of 0.5."])
        self.assertEqual(self.take([(3, Flag.SEGMENT | Flag.LAST, 1)], value=0), ["."])

    def test_segments_of_similar_length_are_decoded_together_but_not_too_many(self):
        self.take([(slot, BEGINS | Flag.LAST, 0.5 + slot % 2 / 2) for slot in range(2 * AT_ONCE)])
        self.assertEqual(self.model.calls, [[0.5] * AT_ONCE, [1] * AT_ONCE])

    def test_texts_that_are_not_final_take_at_most_half_of_the_time(self):
        self.model.cost = 0.5
        self.take([(0, BEGINS, 1)])
        self.assertEqual(self.model.now, 100.5)
        self.model.now += 0.4
        self.assertEqual(self.take([(1, BEGINS, 1)]), [None])
        self.model.now += 0.2
        self.assertEqual(self.take([(1, 0, 1)]), ["2 s of 0.5"])

    def test_texts_that_are_not_final_delay_a_batch_by_one_short_pass(self):
        self.model.cost = 0.125
        self.take([(0, BEGINS, 1)])  # from now on a pass has time for 4 seconds of audio
        self.model.now = 200
        self.take([(slot, BEGINS, 1) for slot in range(16)])
        self.assertEqual(self.model.now, 200 + PASS)

    def test_a_segment_that_is_longer_than_a_pass_is_decoded_alone(self):
        self.model.cost = 0.125
        for second in range(10):
            self.model.now += 100
            self.take([(slot, 0 if second else BEGINS, 1) for slot in range(3)])
        self.assertEqual(self.model.calls[-3:], [[8], [9], [10]])

    def test_a_pass_takes_the_segments_with_most_new_audio(self):
        self.model.cost = 0.125
        self.take([(0, BEGINS, 1)])
        self.model.now = 0
        self.take([(slot, BEGINS, 0.5) for slot in range(6)])
        self.model.now = 200
        texts = self.take([(slot, 0, 0.5 + slot / 100) for slot in range(6)])
        self.assertEqual([slot for slot, text in enumerate(texts) if text], [3, 4, 5])

    def test_all_texts_that_are_final_are_in_the_answer_to_their_batch(self):
        self.model.cost = 1
        texts = self.take([(slot, BEGINS | Flag.LAST, 1) for slot in range(20)])
        self.assertEqual(texts, ["1 s of 0.5."] * 20)

    def answers(self, *texts):
        """The answers to a segment of rows of a second whose decodings are these texts."""
        given = iter(texts)
        recogniser = Recogniser(lambda segments: [next(given)], 32, SECOND, clock=lambda: 0.0)
        flags = [BEGINS, *[0] * (len(texts) - 2), Flag.LAST]
        return [recogniser.take([self.row(0, each, SECOND)], np.ones((1, SECOND), np.float32), [])[0][0] for each in flags]

    def test_words_on_which_two_decodings_agree_stay(self):
        self.assertEqual(self.answers("he", "he was not until", "he was not an ill", "she has not an ill man"), [
            {"text": "he", "stable": ""}, {"text": "he was not until", "stable": ""},
            {"text": "he was not an ill", "stable": "he was not"}, {"text": "he was not an ill man", "final": True}])

    def test_words_of_short_audio_are_not_stable(self):
        self.assertEqual(self.answers("ensure", "ensure the", "in short the")[1:], [
            {"text": "ensure the", "stable": ""}, {"text": "in short the", "final": True}])


if __name__ == "__main__":
    unittest.main()
