#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Throughput into a loop of Python, beside a bare gather and other loaders, on one core. All take turns in one run.

  bench/datasets/throughput.py [--core 1] [--rounds 7] [--kind s16|s16_to_f32|f32] [--only NAME,…]

Installs the other loaders below build/peers/training, from PyPI in the versions of requirements.txt.
"""
import argparse
import os
import statistics
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDER = Path(os.environ.get("MILLRACE_PEERS", ROOT / "build/peers")) / "training"
GOALS = {"millrace": None, "bare_gather": 0.75, "torch_best": 2.5, "torch_two_workers": 8, "torch_documented": 15, "grain": 2.5, "tf_data": 4, "tf_data_reads": 15}
ENOUGH = 0.25  # seconds of a turn


def installed():
    """The interpreter of the environment with all contestants."""
    python, stamp = FOLDER / "venv/bin/python", FOLDER / "installed"
    wanted = (HERE / "requirements.txt").read_text()
    if not stamp.exists() or stamp.read_text() != wanted:
        venv.create(FOLDER / "venv", clear=True, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", HERE / "requirements.txt"], check=True)
        stamp.write_text(wanted)
    subprocess.run([python, "-m", "pip", "install", "--quiet", ROOT / "python"], check=True)
    return python


class Contestant:
    def __init__(self, python, name, kind, core):
        self.name, self.batches, self.rates = name, 16, []
        self.process = subprocess.Popen(
            ["taskset", "-c", str(core), python, "-B", HERE / "contestants.py", name, kind, FOLDER / "corpus"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL if name.startswith("tf_data") else None)
        if self.process.stdout.readline() != "ready\n":
            sys.exit(f"{name}: does not start")
        while (took := self._take()) < ENOUGH:
            self.batches = int(self.batches * min(8, 1.3 * ENOUGH / took)) + 1

    def _take(self):
        print(self.batches, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def turn(self):
        self.rates.append(self.batches / self._take())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def main():
    sys.path.insert(0, str(HERE))
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--core", type=int, default=1, help="the core for all of them (default: 1)")
    options.add_argument("--rounds", type=int, default=7, help="turns of each (default: 7)")
    options.add_argument("--kind", choices=("s16", "s16_to_f32", "f32"), default="s16_to_f32",
                         help="WAV files, these as f32, or arrays of f32 (default: s16_to_f32)")
    options.add_argument("--only", default=",".join(GOALS), help="the others")
    options.add_argument("--ours", default="millrace_mapped", help="the contestant that is compared (default: millrace_mapped)")
    options.add_argument("--python", help="an interpreter that has everything; installs nothing")
    chosen = options.parse_args()
    python = chosen.python or installed()
    FOLDER.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-O3", "-shared", "-fPIC", "-o", FOLDER / "gather.so", HERE / "gather.c"], check=True)
    subprocess.run([python, "-B", "-c", "import corpus, pathlib, sys; folder = pathlib.Path(sys.argv[1]); corpus.make(folder);"
                    " corpus.touch(folder, sys.argv[2])", FOLDER / "corpus", chosen.kind],
                   check=True, env={**os.environ, "PYTHONPATH": str(HERE)})
    names = [chosen.ours, *(name for name in chosen.only.split(",") if name != chosen.ours)]
    contestants = [Contestant(python, name, chosen.kind, chosen.core) for name in names]
    for _ in range(chosen.rounds):
        for contestant in contestants:
            contestant.turn()
    ours = contestants[0]
    print("| loader | batches/s | ours divided by it | range | goal |\n|---|---|---|---|---|")
    for contestant in contestants:
        ratios = sorted(mine / theirs for mine, theirs in zip(ours.rates, contestant.rates))
        goal = GOALS.get(contestant.name)
        print(f"| `{contestant.name}` | {statistics.median(contestant.rates):.0f} | {statistics.median(ratios):.2f} |"
              f" {ratios[0]:.2f}–{ratios[-1]:.2f} | {goal or '–'} |")
        contestant.close()


if __name__ == "__main__":
    main()
