# SPDX-License-Identifier: Apache-2.0
"""Functions of Python that `millrace train-serve` calls in processes."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

import pool_streams
from datasets import contents
from harness import MILLRACE, wait_for
from training_server import TrainServer, write_speech

import millrace

KEYS = {"chunk": {"size": "10ms"}, "slots": 4, "dtype": "f32", "seed": 7}


class ServedAugment(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        write_speech(self.folder / "speech")

    def server(self, function, more="", name=None):
        server = TrainServer(self.folder, name or function, more=f'augment = "pool_streams:{function}"\npython = "{sys.executable}"\nprocesses = 2\n{more}')
        self.addCleanup(server.kill)
        return server

    def test_batches_are_those_of_a_data_set_with_the_function(self):
        for function in "louder", "halves":
            with self.subTest(function):
                own = millrace.Dataset(str(self.folder / "speech"), **KEYS, augment=getattr(pool_streams, function))
                data = millrace.Dataset(self.server(function).unix)
                for _ in range(2):
                    self.assertEqual(contents(data), contents(own))
                data.close()

    def test_the_default_is_the_python_of_the_virtual_environment_with_the_program(self):
        environment = self.folder / "venv"
        program, python = environment / "lib" / "millrace.scripts" / "millrace", environment / "bin" / "python3"
        for file in program, python:
            file.parent.mkdir(parents=True)
        shutil.copy(MILLRACE, program)
        (environment / "pyvenv.cfg").touch()
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
        with unittest.mock.patch("training_server.MILLRACE", program), unittest.mock.patch.dict(os.environ, PATH="/nowhere"):
            server = TrainServer(self.folder, more='augment = "pool_streams:louder"\n')
        self.addCleanup(server.kill)
        own = millrace.Dataset(str(self.folder / "speech"), **KEYS, augment=pool_streams.louder)
        self.assertEqual(contents(millrace.Dataset(server.unix)), contents(own))

    def test_a_function_that_fails_is_an_error_of_its_stream(self):
        data = millrace.Dataset(self.server("fails_with_s03").unix)
        with self.assertRaisesRegex(millrace.DataError, "s03.*augment: RuntimeError: no luck"):
            contents(data)
        data.close()

    def test_with_skip_the_stream_is_skipped(self):
        data = millrace.Dataset(self.server("fails_with_s03", 'on_error = "skip"').unix)
        contents(data)
        self.assertEqual([failed.name for failed in data.failed], ["s03"])
        data.close()

    def test_each_stream_is_changed_once_also_by_two_servers(self):
        called = self.folder / "called"
        with unittest.mock.patch.dict(os.environ, CALLED=str(called)):
            servers = [self.server("notes", name=name) for name in ("one", "two")]
        data = millrace.Dataset([server.unix for server in servers])
        contents(data)
        data.close()
        calls = called.read_text().splitlines()
        self.assertEqual(len(calls), len(set(calls)))
        self.assertEqual({call for call in calls if call.startswith("0 ")}, {f"0 s{i:02}" for i in range(12)})

    def test_a_length_that_fails_is_an_error_of_its_stream(self):
        frames = min(millrace.Dataset(str(self.folder / "speech"), **KEYS)._open().catalog.frames(i) for i in range(12))
        with unittest.mock.patch.dict(os.environ, FAILS_AT=str(frames)):
            server, skips = self.server("fails_at_length"), self.server("fails_at_length", 'on_error = "skip"', name="skips")
        with self.assertRaisesRegex(millrace.DataError, r"stream \d+ \(s\d+\), epoch 0, step 0: augment.frames: KeyError: 'no such length'"):
            millrace.Dataset(server.unix)
        data = millrace.Dataset(skips.unix)
        contents(data)
        self.assertEqual([failed.reason for failed in data.failed], ["function"])
        data.close()

    def test_the_end_of_a_process_has_its_reason(self):
        for function, text in ("ends_with_s03", "ended with exit code 3"), ("is_killed_with_s03", "ended by signal 9"):
            data = millrace.Dataset(self.server(function).unix)
            with self.assertRaisesRegex(millrace.DataError, f"s03.*augment: its process .*{text}"):
                contents(data)
            data.close()

    def test_a_server_ends_at_sigterm_while_a_function_hangs(self):
        called = self.folder / "called"
        with unittest.mock.patch.dict(os.environ, CALLED=str(called)):
            server = self.server("hangs")
        data = millrace.Dataset(server.unix)
        self.addCleanup(data.close)
        self.assertIsNone(data.next(timeout=0))
        wait_for(called.exists, "the call")
        self.assertEqual(server.stop(), 0)

    def test_a_function_that_cannot_be_loaded_is_an_error_at_the_start(self):
        for augment, python, text in [("pool_streams:nothing", sys.executable, "augment: its process has ended with exit code 1"),
                                      ("nowhere:louder", sys.executable, "augment: its process has ended"),
                                      ("pool_streams:louder", "/nowhere/python", "/nowhere/python: No such file"),
                                      ("louder", sys.executable, 'must be "MODULE:FUNCTION"')]:
            config = self.folder / "wrong.toml"
            config.write_text(f'[listen]\nworkers = "unix:{self.folder}/w.sock"\nadmin = "127.0.0.1:0"\n[plan]\n'
                              f'streams = "{self.folder}/speech"\nchunk = {{ size = "10ms" }}\nslots = 4\n'
                              f'augment = "{augment}"\npython = "{python}"\n')
            ended = subprocess.run([MILLRACE, "train-serve", config], capture_output=True, text=True, timeout=60)
            self.assertEqual(ended.returncode, 1)
            self.assertIn(text, ended.stderr)


if __name__ == "__main__":
    unittest.main()
