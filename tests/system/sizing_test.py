# SPDX-License-Identifier: Apache-2.0
"""The figures of docs/sizing.md agree with the program, and with the formulas of the page."""
import itertools
import math
import os
import re
import subprocess
import tempfile
import unittest

from harness import MILLRACE
from worker_model import PACKET, Worker

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "sizing.md")
START = {False: "at any time", True: "together"}


def refused(mean, slots):
    """The share of streams that are refused because no slot is free, by Erlang's formula."""
    share = 1.0
    for n in range(1, slots + 1):
        share = mean * share / (n + mean * share)
    return share


class Sizing(unittest.TestCase):
    def setUp(self):
        with open(PAGE) as file:
            self.page = file.read()

    def test_the_bounds_on_memory_are_those_that_check_config_prints(self):
        config, printed = re.search(r"```toml\n(.*?)```\n\nit prints:\n\n```\n(.*?)```", self.page, re.DOTALL).groups()
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(config)
            file.flush()
            checked = subprocess.run([MILLRACE, "check-config", file.name], capture_output=True, text=True, check=True)
        self.assertEqual([line for line in checked.stdout.splitlines() if line.startswith("#") and "memory" in line],
                         printed.splitlines())

    def test_the_formulas_give_the_figures_beside_them(self):
        streams, seconds, call, row, rows = 256, 0.32, 0.008, 0.00025, 64
        possible = rows / (call + rows * row)
        figures = [streams / seconds, possible, 0.7 * seconds * possible]
        self.assertEqual([round(figure) for figure in figures], [800, 2667, 597])
        self.assertEqual(round(streams * call / (seconds - streams * row)), 8)
        for figure in ("800", "2667", "0.30", "597"):
            self.assertRegex(self.page, rf"= +{figure}\n")

    def row(self, first):
        """The cells of the table row with this first cell, as lists of numbers."""
        cells = re.search(rf"^\| {re.escape(first)} \|(.*)\|$", self.page, re.MULTILINE)[1].split("|")
        return [[float(number) for number in re.findall(r"[\d.]+", cell)] for cell in cells]

    def assert_near(self, printed, computed):
        """Allows for the rounding of printed figures: to whole numbers, or to two digits."""
        printed = list(printed)
        self.assertEqual(len(printed), len(computed))
        for figure, exact in zip(printed, computed):
            self.assertAlmostEqual(figure, exact, delta=max(0.51, 0.05 * exact))

    def test_the_latencies_are_those_of_the_calculated_worker(self):
        for streams, together in itertools.product((50, 256, 597, 850), (False, True)):
            worker = Worker().run(streams, together)
            load, (size,), *stages = self.row(f"{streams} | {START[together]}")
            self.assert_near([size], [worker.fill() * worker.rows])
            self.assertAlmostEqual(load[0], streams / 0.32 / (64 / 0.024), delta=0.01)
            for stage, printed in zip(("batch", "handover", "compute", "all"), stages):
                self.assert_near(printed, [worker.quantile(stage, 0.5), worker.quantile(stage, 0.99)])
        single = Worker(credits=1).run(256)
        printed = re.search(r"`credits=1`: here (\d+) ms and (\d+) ms", self.page).groups()
        self.assert_near(map(float, printed), [single.quantile("all", 0.5), single.quantile("all", 0.99)])

    def test_streams_that_start_together_wait_as_long_as_the_page_states(self):
        at_once, late = map(int, re.search(r"with (\d+) streams 224 − 100 = (\d+) ms", self.page).groups())
        self.assertEqual(late, round(1000 * (at_once / (64 / 0.024) - PACKET)))
        # A row at the end of the queue also waits for a batch before it, and for its own.
        self.assertAlmostEqual(Worker().run(at_once, True).quantile("all", 0.99), late + 24, delta=5)
        self.assertRegex(self.page, rf"= +{PACKET * 64 / 0.024:.0f}\n")

    def test_the_worked_cases_are_those_of_the_calculated_worker(self):
        cases = {"as planned": Worker().run(256), "a worker that stalls: 1 s every 4 s": Worker(stall=(1, 4)).run(256, seconds=60),
                 "batches too small: `rows = 8`": Worker(rows=8).run(256)}
        for name, worker in cases.items():
            with self.subTest(name):
                *stages, full = self.row(name)
                for stage, printed in zip(("batch", "handover", "compute"), stages):
                    self.assert_near(printed, [worker.quantile(stage, 0.5), worker.quantile(stage, 0.99)])
                self.assert_near(full, [100 * worker.fill()])
        few = Worker().run(1000)
        self.assertGreater(few.quantile("batch", 0.5), 1000)
        self.assertGreater(few.fill(), 0.99)

    def test_the_shares_of_refused_streams_are_those_of_erlangs_formula(self):
        lines = re.findall(r"\| (\d+) \| (\d+) \| 1 in (\d+) \|", self.page)
        self.assertEqual(len(lines), 4)
        for mean, slots, one_in in lines:
            mean, slots, one_in = int(mean), int(slots), int(one_in)
            self.assertEqual(slots, math.ceil(mean + 3 * math.sqrt(mean)))
            self.assertAlmostEqual(1 / refused(mean, slots) / one_in, 1, delta=0.05)
        self.assertAlmostEqual(1 / refused(200, 256) / 54_000, 1, delta=0.05)


if __name__ == "__main__":
    unittest.main()
