# SPDX-License-Identifier: Apache-2.0
import math
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../examples/demo"))
from measures import Metrics, quantile, spoken, word_errors  # noqa: E402

PAGE = """\
# HELP wait_seconds Time.
# TYPE wait_seconds histogram
wait_seconds_bucket{pipeline="a",stage="batch",le="0.01"} 2
wait_seconds_bucket{pipeline="a",stage="batch",le="0.1"} 6
wait_seconds_bucket{pipeline="a",stage="batch",le="+Inf"} 8
wait_seconds_bucket{pipeline="b",stage="batch",le="0.01"} 1
wait_seconds_bucket{pipeline="b",stage="batch",le="0.1"} 1
wait_seconds_bucket{pipeline="b",stage="batch",le="+Inf"} 1
wait_seconds_bucket{pipeline="b",stage="copy",le="+Inf"} 5
workers{pipeline="a \\"}, b"} 2
workers 1e3
"""


class WordErrors(unittest.TestCase):
    def test_counts_inserted_omitted_and_substituted_words(self):
        for reference, recognised, expected in [
                ("a b c", "a b c", 0), ("a b c", "a x c", 1), ("a b c", "a c", 1),
                ("a b c", "a b x c", 1), ("a b c", "", 3), ("", "a b", 2), ("", "", 0),
                ("a b c d", "b c d e", 2), ("he was not", "she was so not", 2)]:
            self.assertEqual(word_errors(reference, recognised), expected, (reference, recognised))


class Spoken(unittest.TestCase):
    def test_words_are_compared_without_case_punctuation_and_abbreviations(self):
        self.assertEqual(spoken("Mr. John Dashwood's son; he said: \"No.\""), "mister john dashwood's son he said no")


class Quantile(unittest.TestCase):
    def test_is_linear_within_a_bucket(self):
        self.assertAlmostEqual(quantile(0.5, [(1, 0), (2, 10), (math.inf, 10)]), 1.5)
        self.assertAlmostEqual(quantile(0.99, [(1, 0), (2, 100), (math.inf, 100)]), 1.99)

    def test_the_first_bucket_begins_at_zero(self):
        self.assertAlmostEqual(quantile(0.5, [(0.01, 4), (math.inf, 4)]), 0.005)

    def test_above_all_finite_bounds_it_is_the_last_of_them(self):
        self.assertEqual(quantile(0.99, [(1, 1), (2, 1), (math.inf, 3)]), 2)

    def test_skips_empty_buckets(self):
        self.assertAlmostEqual(quantile(0.25, [(1, 0), (2, 0), (4, 2), (math.inf, 2)]), 2.5)

    def test_without_observations_it_is_not_a_number(self):
        self.assertTrue(math.isnan(quantile(0.5, [])))
        self.assertTrue(math.isnan(quantile(0.5, [(1, 0), (math.inf, 0)])))


class Page(unittest.TestCase):
    def test_sums_the_series_of_a_name(self):
        self.assertEqual(Metrics(PAGE).sum("workers"), 1002)
        self.assertEqual(Metrics(PAGE).sum("workers", pipeline='a \\"}, b'), 2)
        self.assertEqual(Metrics(PAGE).sum("nothing"), 0)

    def test_adds_the_buckets_of_all_series_with_the_labels(self):
        self.assertEqual(Metrics(PAGE).buckets("wait_seconds", stage="batch"),
                         [(0.01, 3), (0.1, 7), (math.inf, 9)])
        self.assertEqual(Metrics(PAGE).buckets("wait_seconds", pipeline="b", stage="batch"),
                         [(0.01, 1), (0.1, 1), (math.inf, 1)])


if __name__ == "__main__":
    unittest.main()
