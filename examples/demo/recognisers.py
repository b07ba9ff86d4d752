# SPDX-License-Identifier: Apache-2.0
"""The recognisers that the demo can show: their worker, their pipeline, their speech, and the same model without Millrace."""

import functools
import importlib.metadata
import json
import subprocess
import sys
import wave
from pathlib import Path

from processes import Failure

EXAMPLES = Path(__file__).resolve().parents[1]
LIBRIVOX = Path("/usr/share/pocketsphinx/test/data/librivox")


def librivox():
    """Returns {number ("0870"): (file, the words that are read in it)}: Debian's five utterances."""
    found = {}
    for line in (LIBRIVOX / "transcription").read_text().splitlines():
        words, name = line.strip().rstrip(")").split(" (")
        found[name[-4:]] = str(LIBRIVOX / f"{name}.wav"), words.replace("<s>", "").replace("</s>", "").strip()
    return found


def cut(path, seconds, folder):
    """Writes the beginning of a WAV file into the folder. Returns the new file."""
    with wave.open(str(path)) as whole, wave.open(str(folder / path.name), "wb") as part:
        part.setparams(whole.getparams())
        part.writeframes(whole.readframes(int(seconds * whole.getframerate())))
    return folder / path.name


class Moonshine:
    """Moonshine Tiny, a neural network. Needs a Python with the packages of examples/moonshine."""

    worst = 0.08  # the highest word error rate that is no fault
    pipeline = "[[pipeline]]" + (EXAMPLES / "moonshine" / "millrace.toml").read_text().split("[[pipeline]]")[1]

    def __init__(self, build):
        pass

    def speech(self, folder):
        """Returns {name: (file, the words that are read in it, or None if they are unknown)}. ``folder``: for files that it
        makes."""
        assets = importlib.metadata.distribution("moonshine-voice").locate_file("moonshine_voice/assets")
        longest = cut(assets / "two_cities.wav", 24.5, Path(folder))  # at a pause; all of it would take 44 s
        return {**librivox(), "beckett": (str(assets / "beckett.wav"), None), "two_cities": (str(longest), None)}

    def worker(self, url):
        """Returns the command that starts the worker."""
        return [sys.executable, "-B", str(EXAMPLES / "moonshine" / "worker.py"), "--url", url]

    def alone(self, path, segments):
        """Returns the texts of these parts of a file, (begin, end) in frames, each decoded alone, without Millrace."""
        with wave.open(path) as file:
            samples = self._numpy.frombuffer(file.readframes(file.getnframes()), "<i2") / self._numpy.float32(32768)
        return [self._model.transcribe([samples[begin:end]])[0] for begin, end in segments]

    @functools.cached_property
    def _numpy(self):
        import numpy  # the Python that shows PocketSphinx may not have it
        return numpy

    @functools.cached_property
    def _model(self):
        sys.path.insert(0, str(EXAMPLES / "moonshine"))
        from model import Model
        return Model(threads=1)


class PocketSphinx:
    """CMU PocketSphinx, a recogniser of the time before neural networks. Its members are as Moonshine's."""

    worst = 0.4
    pipeline = """\
[[pipeline]]
rate = 16000
slots = 8
chunk = { size = "100ms" }
batch = { rows = 8, max_wait = "10ms" }
"""

    def __init__(self, build):
        self._programs = Path(build) / "examples/pocketsphinx"

    def speech(self, folder):
        return librivox()

    def worker(self, url):
        return [str(self._programs / "pocketsphinx_worker"), "--url", url, "--warm", "5"]

    def alone(self, path, segments):
        """There is one segment, the whole file."""
        run = subprocess.run([self._programs / "pocketsphinx_direct", path], check=False, text=True, capture_output=True)
        if run.returncode:
            raise Failure(run.stderr.strip())
        return [json.loads(line)["text"] for line in run.stdout.splitlines()]


RECOGNISERS = {"moonshine": Moonshine, "pocketsphinx": PocketSphinx}
