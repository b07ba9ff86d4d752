# SPDX-License-Identifier: Apache-2.0
"""The commands and programs of docs/recording.md, run as they are printed, on calls that a service has recorded. Only
the directory of the page is replaced by that of the test."""
import array
import asyncio
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import wave
from pathlib import Path

from harness import PATIENCE, Process, Service, SystemTest, await_decoder, kept_open, read_all, run, samples, wait_for

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import printed_programs as printed  # noqa: E402

PYTHON = os.environ["PYTHON"]  # has the packages millrace, returnn and lhotse
DECODER = os.environ["POCKETSPHINX_WORKER"]
DATA = Path("/usr/share/pocketsphinx/test/data")
PRINTED_DIRECTORY = "/var/lib/millrace"
PROGRAMS = printed.programs()
PACKET = 3200
NEVER = 1 << 30
CONFIGURATION = """
[recording]
directory = "{}"
[[pipeline]]
chunk = {{ size = "320ms" }}
record = {{ answers = true }}
answer_wait = "10min"
"""
# Answers each row with its number, and from row `wrong` on with another one.
COUNTING = """
import sys, millrace
wrong = int(sys.argv[1])
number = lambda row: int(row.seq) + (row.seq >= wrong)
with millrace.Worker(reattach=False) as worker:
    for batch in worker:
        batch.done([number(row) for row in batch.framed], [number(row) for row in batch.marks])
"""


def speech(name):
    """The samples of a file of mono audio at 16 kHz."""
    path = DATA / name
    if path.suffix == ".raw":
        return path.read_bytes()
    with wave.open(str(path)) as file:
        return file.readframes(file.getnframes())


CALLS = {  # the name of each caller, and the utterances of the call
    "caller-4711": ["goforward.raw", "something.raw"],
    "caller-0815": ["librivox/sense_and_sensibility_01_austen_64kb-0880.wav"],
}


def stream_of(service, name, utterances):
    """Streams utterances, with a flush between them. Returns the messages."""
    async def call():
        async with service.connect(id=name) as connection:
            for number, frames in enumerate(utterances):
                if number:
                    await connection.send('{"type":"flush"}')
                for at in range(0, len(frames), PACKET):
                    await connection.send(frames[at:at + PACKET])
            await connection.send('{"type":"end"}')
            return await read_all(connection)

    messages, code = run(call())
    assert code == 1000, messages[-1:]
    return messages


def finals(messages):
    """The texts of the utterances, as the client received them."""
    return [message["data"]["text"] for message in messages if (message.get("data") or {}).get("final")]


class Page(SystemTest):
    """Runs what the page prints. `self.folder` is the folder of the commands."""

    def setUp(self):
        super().setUp()
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.workers = f"unix:{self.folder}/replay.sock"

    def started(self, *arguments, **environment):
        process = Process(*arguments, environment=environment)
        self.addCleanup(process.kill)
        return process

    def command(self, name, directory):
        """The command of a printed program. Its arguments follow."""
        program = PROGRAMS[name]
        text = program.text.replace(PRINTED_DIRECTORY, str(directory))
        return [PYTHON, "-c", text] if program.language == "python" else ["/bin/sh", "-euc", f"cd '{self.folder}'\n{text}", name]

    def environment(self):
        return {"PATH": os.path.dirname(os.environ["MILLRACE"]) + os.pathsep + os.environ["PATH"]}

    def printed(self, name, directory, *arguments):
        """The lines that a printed program prints."""
        done = subprocess.run([*self.command(name, directory), *map(str, arguments)], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, **self.environment()}, timeout=4 * PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def replay(self, directory):
        """The printed command that compares answers. A worker attaches to `self.workers`."""
        *shell, text, name = self.command("recording_replay", directory)
        return self.started(*shell, text.replace("\nmillrace", "\nexec millrace"), name, **self.environment())  # kill() reaches it

    def replayed(self, replay, worker):
        """The exit code of a replay. Its worker may end only with it: the replay would wait for another one."""
        processes = replay.process, worker.process
        wait_for(lambda: any(process.poll() is not None for process in processes), "the replay to end", patience=4 * PATIENCE)
        if replay.process.poll() is None:
            self.assertEqual(worker.wait(), 0, worker.errors)
        return replay.wait()


class Calls(Page):
    """Calls that a speech recogniser has answered."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.recorded = Path(cls.enterClassContext(tempfile.TemporaryDirectory())) / "millrace"
        service = Service(CONFIGURATION.format(cls.recorded))
        decoder = Process(DECODER, "--url", service.workers, "--warm", "1")
        try:
            await_decoder(decoder)
            cls.signals = {name: [speech(file) for file in files] for name, files in CALLS.items()}
            cls.answered = {name: stream_of(service, name, utterances) for name, utterances in cls.signals.items()}
        finally:
            try:
                service.close()
            finally:
                decoder.kill()

    def listed(self):
        """The streams, by name."""
        done = subprocess.run([os.environ["MILLRACE"], "recordings", "ls", str(self.recorded), "--json"], capture_output=True, text=True,
                              check=True, timeout=PATIENCE)
        return {stream["name"]: stream for stream in map(json.loads, done.stdout.splitlines())}

    def test_ls_lists_each_call_as_whole(self):
        head, *lines = self.printed("recording_ls", self.recorded)
        (page,) = [after.text for block, after in itertools.pairwise(printed.blocks()) if block.name == "recording_ls"]
        self.assertEqual(head.strip(), page.splitlines()[0])
        for name in CALLS:
            self.assertEqual([line.split()[3:] for line in lines if name in line], [["whole", "default", name]])

    def test_a_call_is_found_by_its_name_and_shown_with_its_answers(self):
        _, listed, *shown = self.printed("recording_find", self.recorded)
        self.assertEqual(listed.split()[-1], "caller-4711")
        items = list(map(json.loads, shown))
        self.assertEqual([item["event"] for item in items if item.get("event") not in (None, "frames")], ["open", "flush", "end"])
        self.assertEqual([item["data"]["text"] for item in items if item.get("data", {}).get("final")], finals(self.answered["caller-4711"]))

    def test_verify_cuts_the_rows_of_the_calls_again(self):
        subprocess.run([os.environ["MILLRACE"], "recordings", "verify", str(self.recorded), "--rows"], check=True, capture_output=True,
                       timeout=PATIENCE)

    def test_the_exported_call_is_the_audio_of_the_client_bit_for_bit(self):
        self.printed("recording_export", self.recorded)
        known = {line["number"]: line for line in map(json.loads, (self.folder / "calls/streams.jsonl").read_text().splitlines())}
        for name, utterances in self.signals.items():
            number = self.listed()[name]["number"]
            with wave.open(str(self.folder / f"calls/{number}.wav")) as file:
                self.assertEqual((file.getframerate(), file.getnchannels(), file.getsampwidth()), (16000, 1, 2))
                self.assertEqual(file.readframes(file.getnframes()), b"".join(utterances))
            self.assertEqual(known[number]["name"], name)

    def test_python_reads_the_samples_and_the_answers(self):
        lines = self.printed("recording_python", self.recorded, self.recorded)
        for name, utterances in self.signals.items():
            seconds = len(b"".join(utterances)) / 32000
            self.assertTrue([line for line in lines if name in line and f"{seconds:.1f} s" in line], lines)

    def test_returnn_reads_the_samples_and_the_texts(self):
        self.printed("recording_returnn", self.recorded, self.recorded, "calls.hdf")
        read = subprocess.run([PYTHON, "-c", READ_HDF, self.folder / "calls.hdf", self.folder / "read.json"], capture_output=True, text=True)
        self.assertEqual(read.returncode, 0, read.stderr)
        sequences = json.loads((self.folder / "read.json").read_text())
        for name, utterances in self.signals.items():
            sequence = sequences[str(self.listed()[name]["number"])]
            self.assertEqual(sequence["data"], array.array("h", b"".join(utterances)).tolist())
            self.assertEqual(sequence["text"], " ".join(finals(self.answered[name])))

    def test_lhotse_reads_the_samples_and_an_utterance_for_each_segment(self):
        self.printed("recording_lhotse", self.recorded, self.recorded, "cuts")
        read = subprocess.run([PYTHON, "-c", READ_CUTS, self.folder / "cuts", self.folder / "read.json"], capture_output=True, text=True)
        self.assertEqual(read.returncode, 0, read.stderr)
        cuts = json.loads((self.folder / "read.json").read_text())
        for name, utterances in self.signals.items():
            cut = cuts[str(self.listed()[name]["number"])]
            self.assertEqual(cut["samples"], array.array("h", b"".join(utterances)).tolist())
            begins = [sum(map(len, utterances[:number])) / 32000 for number in range(len(utterances))]
            self.assertEqual(cut["supervisions"], [[begin, len(frames) / 32000, text] for begin, frames, text in
                                                   zip(begins, utterances, finals(self.answered[name]))])

    def test_the_same_model_answers_the_replayed_calls_as_the_live_ones(self):
        replay = self.replay(self.recorded)
        decoder = self.started(DECODER, "--url", self.workers, "--warm", str(len(CALLS)))
        self.assertEqual((self.replayed(replay, decoder), replay.lines), (0, []), replay.errors)
        self.assertTrue([line for line in replay.errors if f"{len(CALLS)} without a difference, 0 with one" in line], replay.errors)

    def test_rm_deletes_the_calls_of_one_caller(self):
        directory = self.folder / "copy"
        shutil.copytree(self.recorded, directory)
        self.printed("recording_rm", directory)
        left = "\n".join(self.printed("recording_ls", directory))
        self.assertNotIn("caller-4711", left)
        self.assertIn("caller-0815", left)
        audio = self.signals["caller-4711"][0][2000:2100]
        self.assertTrue(any(audio in file.read_bytes() for file in self.recorded.glob("*.mcap")))
        self.assertFalse(any(audio in file.read_bytes() for file in directory.glob("*.mcap")))


# Each writes what a library has read as JSON.
READ_HDF = """
import json, sys
from returnn.datasets.hdf import HDFDataset
data = HDFDataset(files=[sys.argv[1]])
data.initialize()
data.init_seq_order(epoch=1)
data.load_seqs(0, data.num_seqs)
json.dump({data.get_tag(seq): {"data": data.get_data(seq, "data")[:, 0].tolist(), "text": bytes(data.get_data(seq, "text")).decode()}
           for seq in range(data.num_seqs)}, open(sys.argv[2], "w"))
"""
READ_CUTS = """
import json, sys
from lhotse import CutSet
json.dump({cut.recording_id: {"samples": (cut.load_audio()[0] * 32768).astype("int16").tolist(),
                              "supervisions": [[part.start, part.duration, part.text] for part in cut.supervisions]}
           for cut in CutSet.from_shar(in_dir=sys.argv[1])}, open(sys.argv[2], "w"))
"""


class Differences(Page):
    """Calls that a worker has answered with numbers."""

    def count(self, workers, wrong):
        """A worker that answers each row with its number, and from row `wrong` on with another number."""
        return self.started(PYTHON, "-c", COUNTING, str(wrong), MILLRACE_WORKERS=workers)

    def recorded(self):
        directory = self.folder / "millrace"
        service = self.service(CONFIGURATION.format(directory))
        self.count(service.workers, NEVER)
        wait_for(lambda: "pipeline default " not in service.get("/readyz")[1], "the worker to attach")
        for name, seconds in (("long", 3), ("short", 1)):
            stream_of(service, name, [samples(0, 16000 * seconds)])
        self.assertEqual(service.stop(), 0, service.errors)
        return directory

    def test_the_first_row_that_a_new_model_answers_differently_is_printed_for_each_stream(self):
        replay = self.replay(self.recorded())
        worker = self.count(self.workers, 5)
        self.assertEqual(self.replayed(replay, worker), 1, replay.errors)
        (different,) = map(json.loads, replay.lines)  # the short stream has four rows
        self.assertEqual({key: different[key] for key in ("stream", "type", "seq", "begin", "end", "recorded", "replayed")},
                         {"stream": "long", "type": "difference", "seq": 5, "begin": 25600, "end": 30720, "recorded": {"data": 5},
                          "replayed": {"data": 6}})

    def test_a_call_is_listed_and_exported_while_the_service_records_it(self):
        directory = self.folder / "millrace"
        service = self.service(CONFIGURATION.format(directory))
        self.tap(service)

        async def call():
            async with service.connect(id="caller-4711") as connection:
                await connection.send(samples(0, 16000))
                async with kept_open(connection):
                    await asyncio.to_thread(wait_for, lambda: "caller-4711" in "".join(self.printed("recording_ls", directory)), "the call")
                    await asyncio.to_thread(wait_for, lambda: self.exported(directory), "its first second")
                await connection.send('{"type":"end"}')
                await read_all(connection)

        run(call())

    def exported(self, directory):
        """True if the first second of the only call was exported."""
        shutil.rmtree(self.folder / "calls", ignore_errors=True)
        self.printed("recording_export", directory)
        files = list((self.folder / "calls").glob("*.wav"))  # none before the first frames are written
        if not files:
            return False
        with wave.open(str(files[0])) as file:
            return file.readframes(file.getnframes()) == samples(0, 16000)


if __name__ == "__main__":
    unittest.main()
