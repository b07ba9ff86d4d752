# SPDX-License-Identifier: Apache-2.0
"""The workers that docs/workers.md prints for messages and late answers, as its readers run them."""
import pathlib
import sys
import tempfile
import unittest

from harness import PATIENCE, Process
from streams import WorkerTest

import millrace

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import printed_programs  # noqa: E402

PROGRAMS = printed_programs.programs()


class Guide(WorkerTest):
    def runs(self, name):
        """Runs the program until the test ends."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / "worker.py"
        path.write_text(PROGRAMS[name].text)
        worker = Process(sys.executable, str(path), environment={"MILLRACE_WORKERS": self.served.workers})
        self.addCleanup(worker.kill)

    def results_of(self, *commands):
        """The events of a stream of six frames, in rows of four, with these commands before its end."""
        with self.opened() as stream:
            stream.send(bytes(12))
            for command in commands:
                getattr(stream, command)()
            stream.end()
            yield from self.events(stream)

    def opened(self, **options):
        return millrace.Client(f"ws://127.0.0.1:{self.served.port}").open(format="s16le", options=options)

    def events(self, stream):
        while event := stream.next(PATIENCE):
            yield event

    def test_tokens_arrive_between_the_answers(self):
        self.runs("worker_messages")
        data = [event.data for event in self.results_of() if isinstance(event, (millrace.Result, millrace.Message))]
        tokens = [[{"token": word} for word in f"{size} frames at {begin}".split()] for size, begin in ((4, 0), (2, 4))]
        self.assertEqual(data, [*tokens[0], "complete", *tokens[1], "complete"])

    def test_the_final_of_a_second_pass_comes_in_order(self):
        self.runs("worker_pending")
        data = [event.data for event in self.results_of("flush") if isinstance(event, millrace.Result)]
        self.assertEqual(data, ["about 4 frames", "6 frames in all", "6 frames in all"])

    def test_hot_words_change_in_mid_stream(self):
        self.runs("worker_hot_words")
        with self.opened(words=["Millrace"]) as stream:
            stream.send(bytes(8))
            stream.message("ignored")
            stream.set({"words": ["weir", "sluice"]})
            stream.send(bytes(4))
            stream.set({"lang": "en"})
            stream.end()
            data = [event.data for event in self.events(stream) if isinstance(event, millrace.Result)]
        self.assertEqual(data, ["4 frames, with ['Millrace']", "2 frames, with ['weir', 'sluice']"])


if __name__ == "__main__":
    unittest.main()
