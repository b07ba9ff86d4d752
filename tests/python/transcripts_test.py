# SPDX-License-Identifier: Apache-2.0
"""`millrace.transcripts`, for people who write workers."""
import unittest

from millrace.rows import Flag, Row
from millrace.transcripts import LocalAgreement, Segment, Segments


class Agreement(unittest.TestCase):
    def added(self, *texts, **options):
        agreement = LocalAgreement(**options)
        return [agreement.add(text) for text in texts]

    def test_words_are_stable_when_two_decodings_in_a_row_agree_on_them(self):
        self.assertEqual(self.added("a b c", "a b d", "a b d e", "a b d e"),
                         [("a b c", ""), ("a b d", "a b"), ("a b d e", "a b d"), ("a b d e", "a b d e")])

    def test_decodings_that_are_not_in_a_row_do_not_count(self):
        self.assertEqual(self.added("a b", "c b", "a b")[-1], ("a b", ""))

    def test_stable_words_stay_and_replace_those_of_the_new_text_that_are_most_like_them(self):
        self.assertEqual(self.added("I'd less to be", "I'd less to be", "Unless to be rather cold")[-1].text, "I'd less to be rather cold")
        self.assertEqual(self.added("one two", "one two", "one and two three")[-1].text, "one two three")
        self.assertEqual(self.added("a b c", "a b d", "x y d e")[-1], ("a b d e", "a b d"))
        self.assertEqual(self.added("a b c", "a b c", "z")[-1], ("a b c", "a b c"))
        self.assertEqual(self.added("a b", "a b", "")[-1], ("a b", "a b"))

    def test_the_text_always_begins_with_what_is_stable_and_that_never_gets_shorter(self):
        texts = ["", "He", "He was", " He was not.", "He was not  ill", "She was not ill at", "He", "He was not ill at all"]
        before = ""
        for text, stable in self.added(*texts):
            self.assertTrue(text.startswith(stable) and stable.startswith(before), (text, stable, before))
            before = stable

    def test_the_next_segment_begins_with_nothing_stable(self):
        agreement = LocalAgreement()
        agreement.add("a b")
        agreement.add("a b")
        agreement.clear()
        self.assertEqual(agreement.add("c"), ("c", ""))

    def test_languages_without_spaces_are_compared_by_characters(self):
        self.assertEqual(self.added("今日は", "今日も", split=list)[-1], ("今日も", "今日"))


class SegmentsOfRows(unittest.TestCase):
    def setUp(self):
        self.segments = Segments(10)

    def of(self, *rows):
        """`rows`: (slot, stream, begin, flags)."""
        return self.segments.of(Row(stream, 0, begin, 0, None, slot, 0, 5, 0, flags, None) for slot, stream, begin, flags in rows)

    def test_a_segment_begins_with_segment_and_its_begin_is_in_seconds(self):
        first = Flag.START | Flag.RESET | Flag.SEGMENT
        self.assertEqual(self.of((3, 7, 0, first), (3, 7, 5, 0), (3, 7, 10, Flag.LAST), (3, 7, 15, Flag.SEGMENT), (3, 7, 20, 0)),
                         [Segment(0, 0), Segment(0, 0), Segment(0, 0), Segment(1, 1.5), Segment(1, 1.5)])

    def test_after_a_lost_state_the_segment_is_heard_from_there(self):
        self.of((3, 7, 0, Flag.SEGMENT), (3, 7, 5, Flag.SEGMENT))
        self.assertEqual(self.of((3, 7, 10, Flag.RESET), (3, 7, 15, 0)), [Segment(1, 1.0)] * 2)

    def test_each_slot_has_its_own_and_the_next_stream_of_a_slot_begins_anew(self):
        self.of((0, 7, 0, Flag.SEGMENT), (1, 8, 0, Flag.SEGMENT), (0, 7, 5, Flag.SEGMENT))
        self.assertEqual(self.of((1, 8, 5, 0), (0, 9, 40, Flag.RESET)), [Segment(0, 0), Segment(0, 4.0)])


if __name__ == "__main__":
    unittest.main()
