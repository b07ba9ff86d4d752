# SPDX-License-Identifier: Apache-2.0
"""`millrace check-worker` finds the workers that mix streams, and passes those that do not."""
import os
import subprocess
import sys
import tempfile
import unittest
import wave
from pathlib import Path

import numpy as np
from harness import PATIENCE

WORKER = Path(__file__).with_name("broken_workers.py")
PIPELINE = '[[pipeline]]\nslots = 64\nchunk = { size = "100ms", left = "20ms" }\nbatch = { rows = 8 }\n'
LEFT = "left at SIGTERM\n" * 2  # the log of both workers
USED, PADDING, TOGETHER = "alone, in a used slot", "with padding rows", "with other streams"

# Each fault, the first stage in which it shows, and a text of the report that names it.
FAULTS = {
    "StateByRow": (TOGETHER, "the state belongs to the slot"),
    "ResetIgnored": (USED, "the state must be fresh before each row with RESET"),
    "ResetLate": (USED, "flags START,RESET,SEGMENT"),
    "PaddingUpdates": (PADDING, "The answers depend on padding rows"),
    "NotClearedAfterEnd": (USED, ', which had "generated-'),
    "BatchNorm": (TOGETHER, "The answers depend on the other rows of the batch"),
    "LastRowLost": (TOGETHER, "here              no answer"),
    "SharedState": (TOGETHER, "The answers depend on the other rows of the batch"),
    "WrongOrder": (TOGETHER, "answers are in the order of the rows"),
    "LeftContextAsBody": (TOGETHER, 'beside "generated-'),
    "FullBatchLosesLast": (TOGETHER, "8 rows, this is number 7"),
    "GlobalMessages": (TOGETHER, "The answers depend on the other rows of the batch"),
    "GlobalOptions": (TOGETHER, "  messages          set {\"check_worker"),
    "OptionsByRow": (TOGETHER, "the state belongs to the slot"),
    "OptionsOfStart": (USED, "here              ["),
    "SetReplaces": (USED, "Options change by messages with `set` alone"),
    "HearsTooEarly": (TOGETHER, "marker row"),
    "SpeaksToFirstRow": (TOGETHER, "The first message of the worker that differs is number"),
    "NeverReset": ("alone again, in another order", "the worker has state outside of its slots"),
}


class CheckWorker(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "millrace.toml").write_text(PIPELINE)

    def check(self, *worker, options=()):
        command = [os.environ["MILLRACE"], "check-worker", "--config", self.folder / "millrace.toml", *options]
        return subprocess.run([*command, "--", sys.executable, WORKER, *worker], capture_output=True, text=True, timeout=PATIENCE)

    def test_a_right_worker_passes(self):
        checked = self.check("Model")
        self.assertEqual((checked.returncode, checked.stderr), (0, LEFT))
        self.assertIn("The worker passes: each stream gets the answers that it gets alone.\n", checked.stdout)

    def test_each_broken_worker_is_found_and_the_report_names_its_fault(self):
        for fault, (stage, text) in FAULTS.items():
            with self.subTest(fault):
                checked = self.check(fault)
                self.assertEqual((checked.returncode, checked.stderr), (1, LEFT), checked.stdout)
                self.assertIn(f"  stage             {stage}\n", checked.stdout)
                self.assertIn(text, checked.stdout)

    def test_a_worker_that_listens_to_clients_passes(self):
        checked = self.check("Listens", options=("--message", "[1,2]", "--message", '"hot"', "--set", '{"lang":"de"}'))
        self.assertEqual((checked.returncode, checked.stderr), (0, LEFT), checked.stdout)
        checked = self.check("GlobalMessages", options=("--message", "[1,2]"))
        self.assertIn('"[1, 2]', checked.stdout)

    def test_messages_of_the_worker_are_compared_unless_they_depend_on_the_time(self):
        for worker, text in ("Speaks", " messages of the worker compared.\n"), ("SpeaksOfTime", "Messages of the worker are not compared: they differ"):
            checked = self.check(worker)
            self.assertEqual((checked.returncode, checked.stderr), (0, LEFT), checked.stdout)
            self.assertIn(text, checked.stdout)

    def test_a_worker_that_answers_with_the_next_row_of_the_stream_passes(self):
        checked = self.check("AnswersWithNext")
        self.assertEqual((checked.returncode, checked.stderr), (0, LEFT), checked.stdout)

    def test_numbers_may_differ_by_the_tolerance(self):
        checked = self.check("Float")
        self.assertEqual(checked.returncode, 1)
        self.assertIn("depend a little on the batch: try --tolerance 1e-", checked.stdout)
        checked = self.check("Float", options=("--tolerance", "0.01"))
        self.assertEqual(checked.returncode, 0, checked.stdout)
        self.assertIn("within the tolerance", checked.stdout)
        self.assertRegex(checked.stdout, r"Differences: numbers by up to \d")

    def test_the_report_is_the_same_each_time(self):
        self.assertEqual(self.check("BatchNorm").stdout, self.check("BatchNorm").stdout)

    def test_streams_come_from_audio_files(self):
        with wave.open(str(self.folder / "a b.wav"), "wb") as file:
            file.setparams((1, 2, 16000, 0, "NONE", ""))
            file.writeframes(np.random.default_rng(1).integers(-9000, 9000, 20000, np.int16).tobytes())
        for fault, code in ("Model", 0), ("ResetIgnored", 1):
            checked = self.check(fault, options=("--streams", self.folder))
            self.assertEqual((checked.returncode, checked.stderr), (code, LEFT), checked.stdout)
        self.assertIn('stream "a-b" row 0', checked.stdout)

    def test_a_worker_whose_answers_show_nothing_does_not_pass(self):
        for fault, text in (
            ("Silent", "has answered no row: nothing was compared"),
            ("Fails", "The first: ValueError: no model"),
            ("FailsOnce", "The first: RuntimeError: too short"),
            ("Constant", "All answers are equal: give --streams"),
        ):
            checked = self.check(fault)
            self.assertEqual(checked.returncode, 1)
            self.assertIn(text, checked.stdout)

    def test_a_worker_that_dies_is_an_error_after_its_last_words(self):
        checked = self.check("Dies")
        self.assertEqual(checked.returncode, 1)
        last_words, *_, error = checked.stderr.splitlines()
        self.assertEqual(last_words, "the last words")
        self.assertIn("the command ended with exit code 7", error)

    def test_output_of_the_worker_is_no_part_of_the_report(self):
        checked = self.check("Talks")
        self.assertEqual(checked.returncode, 0)
        self.assertNotIn("words", checked.stdout)
        self.assertIn("words", checked.stderr)

    def test_wrong_arguments_are_errors_in_one_line(self):
        several = self.folder / "several.toml"
        several.write_text('[[pipeline]]\nname = "a"\n[[pipeline]]\nname = "b"\n')
        for options, text in (
            (("--pipeline", "x"), "there is no pipeline x"),
            (("--streams", self.folder / "none"), "no such file or folder"),
            (("--config", several), "has several pipelines: name one with --pipeline"),
            (("--tolerance", "2"), "not in range"),
            (("--message", "hot"), "--message: is not JSON: hot"),
            (("--set", "[1]"), "--set: is not a JSON object"),
        ):
            with self.subTest(options):
                command = [os.environ["MILLRACE"], "check-worker", *options, "--", "true"]
                checked = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
                self.assertEqual((checked.returncode, checked.stderr.count("\n")), (1, 1), checked.stderr)
                self.assertIn(text, checked.stderr)


if __name__ == "__main__":
    unittest.main()
