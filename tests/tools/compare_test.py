# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of bench/compare, and its results for programs that fail."""
import json
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
from comparing import neighbours, streams  # noqa: E402
from comparing.figure import ANY, Figure, at_least, at_most  # noqa: E402
from comparing.programs import Failed, well_but_for_strangers  # noqa: E402


def line(bound, *rounds):
    figure = Figure("f", "us", bound)
    for ours, control in rounds:
        figure.add(ours, control)
    return figure.line()


class FigureOfTime(unittest.TestCase):
    def test_a_time_of_twice_the_control_has_the_ratio_one_half(self):
        self.assertEqual(line(at_most(times=2), (200, 100))["ratio"], 0.5)

    def test_the_goal_is_the_ratio_at_the_bound(self):
        self.assertEqual(line(at_most(250), (200, 100))["goal"], 0.4)
        self.assertEqual(line(at_most(times=1.25), (200, 100))["goal"], 0.8)
        self.assertEqual(line(at_most(plus=100), (200, 100))["goal"], 0.5)

    def test_the_most_generous_of_several_bounds_counts(self):
        self.assertEqual(line(at_most(400, times=2, plus=150), (200, 100))["goal"], 0.25)
        self.assertEqual(line(at_most(100, times=4, plus=150), (200, 100))["goal"], 0.25)
        self.assertEqual(line(at_most(100, times=2, plus=300), (200, 100))["goal"], 0.25)

    def test_a_figure_holds_up_to_the_bound_itself(self):
        self.assertTrue(line(at_most(250), (250, 100))["holds"])
        self.assertFalse(line(at_most(250), (251, 100))["holds"])

    def test_without_a_bound_the_goal_is_0(self):
        shown = line(ANY, (200, 100))
        self.assertEqual((shown["goal"], shown["ratio"], shown["holds"], shown["allowed"]), (0, 0.5, True, None))

    def test_the_allowed_value_has_the_unit_of_the_figure(self):
        self.assertEqual(line(at_most(250, times=2), (200, 100))["allowed"], 250)

    def test_the_goal_is_at_most_1(self):
        shown = line(at_most(50), (100, 100))
        self.assertEqual((shown["goal"], shown["allowed"], shown["clamped"]), (1, 50, True))
        self.assertFalse(line(at_most(100), (100, 100))["clamped"])

    def test_a_figure_of_0_does_not_hold(self):
        self.assertFalse(line(at_most(250), (0, 100))["holds"])
        self.assertFalse(line(at_most(250), (100, 0))["holds"])
        self.assertFalse(line(at_least(200, part=0.65), (300, 0))["holds"])


class FigureOfRate(unittest.TestCase):
    def test_larger_is_better(self):
        self.assertEqual(line(at_least(200, part=0.65), (900, 1000))["ratio"], 0.9)

    def test_the_more_modest_of_several_bounds_counts(self):
        self.assertEqual(line(at_least(200, part=0.65), (900, 1000))["goal"], 0.2)
        self.assertEqual(line(at_least(200, part=0.65), (90, 100))["goal"], 0.65)
        self.assertEqual(line(at_least(200, part=0.65), (90, 100))["allowed"], 65)


class Rounds(unittest.TestCase):
    def test_medians_of_rounds_count_and_their_ranges_are_reported(self):
        shown = line(at_most(400), (300, 100), (9000, 100), (200, 120))
        self.assertEqual((shown["ours"], shown["control"], shown["rounds"]), (300, 100, 3))
        self.assertEqual((shown["ours_range"], shown["control_range"]), ([200, 9000], [100, 120]))
        self.assertEqual(shown["ratio_range"], [0.01111, 0.6])

    def test_other_values_of_rounds_are_reported_as_medians(self):
        figure = Figure("f", "us", at_most(400))
        for late in (10, 90, 20):
            figure.add(300, 100, lateness_us=late)
        self.assertEqual(figure.line()["lateness_us"], 20)


class Answers(unittest.TestCase):
    def test_another_number_of_results_than_packets_is_a_failure(self):
        for shown in ({"results": 99, "packets": 100}, {"results": 101, "packets": 100}):
            with self.assertRaisesRegex(Failed, "results of 100 packets"):
                streams.all_answered(shown)
        streams.all_answered({"results": 100, "packets": 100})


class Neighbour(unittest.TestCase):
    def test_a_failing_neighbour_is_a_failure(self):
        def fail():
            raise Failed("no stream was refused")

        with self.assertRaisesRegex(Failed, "no stream"), neighbours.meanwhile(fail):
            pass

    def test_a_result_is_awaited_behind_other_messages(self):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.sendall(b'\x81\x10{"type":"ready"}\x81\x11{"type":"re')
            theirs.sendall(b'sult"}')
            neighbours.await_result(ours)

    def test_a_stream_that_ends_before_its_result_is_a_failure(self):
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                theirs.sendall(b'\x81\x10{"type":"ready"}')
            with self.assertRaisesRegex(Failed, "ready"):
                neighbours.await_result(ours)


class OtherPrograms(unittest.TestCase):
    WORKER = {"damaged": 0, "repeated": 0, "unended": 0, "shed_frames": 0, "ended": 5, "unknown": 7}
    FIGURES = {"broken": 0, "failed": 0, "repeated": 0, "wrong": 0, "lost_frames": 0, "shed_frames": 0, "refused": {},
            "ended": 5, "worker": WORKER}

    def test_streams_of_other_programs_are_no_fault_of_the_run(self):
        self.assertTrue(well_but_for_strangers(self.FIGURES))

    def test_streams_of_other_programs_excuse_no_other_fault(self):
        for fault in ({"lost_frames": 1}, {"refused": {"503": 1}}, {"worker": {**self.WORKER, "damaged": 1}},
                      {"worker": {**self.WORKER, "unended": 1}}, {"ended": 6}):
            self.assertFalse(well_but_for_strangers({**self.FIGURES, **fault}))


class Program(unittest.TestCase):
    def compare(self, script, only="gather"):
        with tempfile.TemporaryDirectory() as build:
            program = Path(build, "bench", "batcher_bench")
            program.parent.mkdir()
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)
            return subprocess.run([BENCH / "compare", "--quick", "--json", "--only", only, "--build", build],
                                  capture_output=True, text=True)

    def test_a_figure_is_a_line_and_a_missed_goal_is_not_a_failure(self):
        done = self.compare("""echo '{"ours":[9000,9000],"control":[100,100]}'""")
        shown = json.loads(done.stdout)
        self.assertEqual((shown["figure"], shown["ratio"], shown["holds"]), ("gather_row", 0.01111, False))
        self.assertEqual(done.returncode, 0)

    def test_a_program_that_fails_is_a_failure(self):
        done = self.compare("echo no memory >&2; exit 3")
        self.assertEqual((done.stdout, done.returncode), ("", 1))
        self.assertIn("no memory", done.stderr)

    def test_a_program_that_prints_nothing_is_a_failure(self):
        done = self.compare("")
        self.assertEqual((done.stdout, done.returncode), ("", 1))
        self.assertIn("no JSON", done.stderr)

    def test_experiments_are_chosen_by_whole_words(self):
        for only in ("gath", "in_only 10"):
            done = self.compare("", only)
            self.assertEqual((done.stdout, done.returncode), ("", 2))
            self.assertIn("no experiment begins", done.stderr)


if __name__ == "__main__":
    unittest.main()
