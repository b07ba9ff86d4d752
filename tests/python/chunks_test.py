# SPDX-License-Identifier: Apache-2.0
"""millrace.chunks and millrace.values against the conformance vectors."""
import json
import re
import unittest
from pathlib import Path

import millrace

VECTORS = json.loads((Path(__file__).parents[1] / "conformance" / "chunks.json").read_text())


class Chunks(unittest.TestCase):
    def test_the_rows_are_those_of_every_vector(self):
        for case in VECTORS["cases"]:
            self.assertEqual(millrace.chunks(case["spec"], case["events"]), case["rows"], case)
        self.assertGreater(len(VECTORS["cases"]), 300)

    def test_the_values_are_those_of_every_vector(self):
        for case in VECTORS["values"]:
            made = millrace.values(case["spec"], case["events"], align=case["align"], pad=case["pad"])
            self.assertEqual(made, case["values"], case)
        self.assertGreater(len(VECTORS["values"]), 50)

    def test_the_presets_are_those_of_the_vectors(self):
        stream = [("frames", 100_000), ("flush", 0), ("frames", 7), ("gap", 3), ("frames", 1), ("end", 0)]
        for name, preset in VECTORS["presets"].items():
            laid = {"align": preset["align"], "pad": preset["pad"]}
            self.assertEqual(millrace.values({"preset": name}, stream), millrace.values(preset["spec"], stream, **laid))

    def test_the_document_has_the_lengths_of_every_preset(self):
        document = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
        for name, preset in VECTORS["presets"].items():
            _, _, body, context, _ = re.search(rf"\n\| `{name}` (\|.*\|)\n", document)[1].split("|")
            printed = {key: int(length) for key, length in re.findall(r"`(\w+) = (\d+)`", body + context)}
            self.assertEqual(printed, preset["spec"], name)

    def test_a_row_without_frames_has_no_values(self):
        self.assertEqual(millrace.values({"size": 2}, [("frames", 2), ("end", 0)]), [[1, 2], None])

    def test_times_count_at_the_rate(self):
        stream = [("frames", 5), ("end", 0)]
        self.assertEqual(millrace.chunks({"size": "1ms"}, stream, rate=2000)[0], [0, 0, 0, 2, 0, 7, 0])
        self.assertEqual(millrace.chunks({"size": "1ms"}, stream)[0], [0, 0, 0, 5, 0, 55, 0])

    def test_with_sizes_a_size_event_gives_one_of_them_or_its_first_body(self):
        spec = {"size": 4, "first": 5, "rule": "random", "sizes": [2, 4]}
        sized = [("size", 3), ("frames", 3), ("size", 2), ("frames", 4), ("end", 0)]
        self.assertEqual([row[1:4] for row in millrace.chunks(spec, sized)], [[0, 0, 3], [3, 0, 2], [5, 0, 2], [7, 0, 0]])
        self.assertEqual([row[3] for row in millrace.chunks(spec, [("frames", 9), ("end", 0)])], [5, 4, 0])
        self.assertEqual(millrace.values(spec, sized)[0], [1, 2, 3, 0, 0])
        for sizes in ((2, 4), "2+4", {"from": 2, "to": 4, "step": 2}):
            self.assertEqual(millrace.chunks({**spec, "sizes": sizes}, sized), millrace.chunks(spec, sized))
        with self.assertRaisesRegex(ValueError, "event 0: size 6 must be one of sizes, or its first body"):
            millrace.chunks(spec, [("size", 6)])

    def test_events_may_be_any_pairs_and_end_with_the_stream(self):
        pairs = iter([["frames", 3], ("abort", 0), "nonsense"])
        self.assertEqual(millrace.chunks({"size": 2}, pairs), [[0, 0, 0, 2, 0, 7, 0], [1, 3, 0, 0, 0, 112, 0]])

    def test_an_invalid_rule_or_event_is_named(self):
        for spec, events, words in (
            ({"size": 0}, [], 'size = "0" must be at least 1 frame'),
            ({"size": 1.5}, [], 'size = "1.5"'),
            ({"size": "100"}, [], '"100" must be a number without quotes, or a time with its unit, such as "100ms"'),
            ({"size": 4, "sizes": ["4", 8]}, [], '"4" must be a number without quotes'),
            ({"sise": 4}, [], "size is missing"),
            ({"size": 4, "tail": "cut"}, [], 'tail = "cut" must be every_start, cover or drop'),
            ({"preset": "silero"}, [], 'preset = "silero" must be silero-16k'),
            ({"size": 4, "sizes": [4, 2]}, [], 'sizes = "4+2" must be 2 to 16 lengths of at least 1 frame'),
            ({"size": 4, "sizes": {"from": 2}}, [], 'sizes = "2..None/None" contains "None"'),
            ({"size": 4}, [("stop", 0)], 'event 0: "stop" must be "frames"'),
            ({"size": 4}, [("frames", 1), ("flush", -1)],
             'event 1: the count of "flush" must be a whole number, at least 0, not -1'),
            ({"size": 4}, [("frames", 1.0)], 'event 0: the count of "frames" must be a whole number, at least 0, not 1.0'),
            ({"size": 4}, [("frames",)], "event 0: must be a pair"),
            ({"size": 4}, [7], "event 0: must be a pair"),
            ({"size": 4}, [("gap", 0)], "event 0: a gap must have at least 1 frame"),
        ):
            with self.subTest(words), self.assertRaises(ValueError) as caught:
                millrace.chunks(spec, events)
            self.assertIn(words, str(caught.exception))
        with self.assertRaisesRegex(ValueError, "pad: given twice"):
            millrace.values({"size": 4, "pad": "zero"}, [], pad="repeat")


if __name__ == "__main__":
    unittest.main()
