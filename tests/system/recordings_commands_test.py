# SPDX-License-Identifier: Apache-2.0
"""`millrace recordings` on the directory of a service that records: live, stopped and killed."""
import array
import asyncio
import contextlib
import json
import signal
import struct
import subprocess
import tempfile
import unittest
import wave
from pathlib import Path

from harness import MILLRACE, PATIENCE, SystemTest, kept_open, read_all, run, samples, wait_for
from raw_worker import RawWorker

CONFIGURATION = """
[recording]
directory = "{directory}"
commit = "20ms"
[[pipeline]]
name = "default"
chunk = {{ size = 1600 }}
record = {{ answers = true }}
[[pipeline]]
name = "floats"
frames = "f32"
chunk = {{ size = 1600 }}
record = true
"""


def records(text):
    """Opcode and content of each record of MCAP."""
    while text:
        opcode, length = struct.unpack_from("<BQ", text)
        yield opcode, text[9:9 + length]
        text = text[9 + length:]


def opcodes(text):
    """The kinds of records in a sealed file: outside of chunks, and in them."""
    outside, inside = set(), set()
    for opcode, content in records(text[8:-8]):
        outside.add(opcode)
        if opcode == 0x06:
            size, = struct.unpack_from("<Q", content, 16)
            inside.update(opcode for opcode, _ in records(content[-size:]))
    return outside, inside


class CommandTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(dir="/dev/shm")))
        self.directory = self.folder / "recordings"

    def started(self):
        service = self.service(CONFIGURATION.format(directory=self.directory))
        for pipeline in ("default", "floats"):
            self.tap(service, pipeline)
        return service

    def command(self, name, *arguments, code=0):
        """The lines on standard output."""
        done = subprocess.run([MILLRACE, "recordings", name, self.directory, *map(str, arguments)], capture_output=True, text=True,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout.splitlines()

    def listed(self, *arguments):
        return {stream["name"]: stream for stream in map(json.loads, self.command("ls", "--json", *arguments))}

    def stream(self, service, name, messages, **parameters):
        """Streams these messages as one stream, to its end."""
        async def call():
            async with service.connect(id=name, **parameters) as connection:
                for message in messages:
                    await connection.send(message)
                await connection.send('{"type":"end"}')
                return await read_all(connection)

        _, code = run(call())
        self.assertEqual(code, 1000)

    def exported(self, *arguments):
        """The folder of an export, and the lines of its list by the name of the stream."""
        folder = self.folder / f"export-{len(list(self.folder.iterdir()))}"
        self.command("export", "--to", folder, *arguments)
        lines = map(json.loads, (folder / "streams.jsonl").read_text().splitlines())
        return folder, {line["name"]: line for line in lines}


def frames_of(path):
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16000, 1, 2)
        return file.readframes(file.getnframes())


class Stopped(CommandTest):
    """Streams of a service that has stopped."""

    def setUp(self):
        super().setUp()
        service = self.started()
        self.first, self.second = samples(0, 4000), samples(4000, 2000)
        self.stream(service, "call", [self.first, '{"type":"flush","mark":7}', '{"type":"gap","frames":500}', self.second])
        self.floats = array.array("f", [0.25, -0.5, 1.0]).tobytes()
        self.stream(service, "music", [self.floats], pipeline="floats", format="f32le")
        self.assertEqual(service.stop(), 0, service.errors)

    def test_all_streams_are_whole_and_their_rows_are_those_of_the_service(self):
        self.assertEqual({name: stream["whole"] for name, stream in self.listed().items()}, {"call": True, "music": True})
        (summary,) = self.command("verify", "--rows")
        self.assertTrue(summary.endswith("2 streams, 2 whole, 0 lost parts, rows of 2 streams cut again: good"), summary)

    def test_a_chunk_has_only_schemas_channels_and_messages(self):
        # Other readers accept private records between chunks, but none in them.
        files = list(self.directory.glob("*.mcap"))
        found = [opcodes(file.read_bytes()) for file in files]
        self.assertTrue(files)
        for outside, inside in found:
            self.assertLessEqual(outside, {*range(0x01, 0x10), 0x81})
            self.assertLessEqual(inside, {0x03, 0x04, 0x05})
        self.assertEqual(set.union(*(inside for _, inside in found)), {0x04, 0x05})


class Live(CommandTest):
    """A service that is recording."""

    def during(self, service, name, check):
        """Calls check() while the service records the stream, after its first second is on the disk."""
        async def call():
            async with service.connect(id=name) as connection:
                await connection.send(samples(0, 16000))
                async with kept_open(connection):
                    await asyncio.to_thread(wait_for, lambda: self.listed().get(name, {}).get("frames") == 16000, "the recorded second")
                    await asyncio.to_thread(check)
                await connection.send('{"type":"end"}')
                return await read_all(connection)

        _, code = run(call())
        self.assertEqual(code, 1000)

    def test_commands_read_a_stream_that_is_being_recorded(self):
        service = self.started()

        def check():
            self.assertTrue(self.listed()["call"]["open"])
            folder, lines = self.exported("call")
            self.assertEqual(frames_of(folder / lines["call"]["files"][0]["file"]), samples(0, 16000))
            self.assertTrue(self.command("verify", "--rows")[-1].endswith(": good"))
            self.assertEqual(self.command("repair"), ["0 files sealed"])

        self.during(service, "call", check)
        self.assertEqual(service.stop(), 0, service.errors)
        self.assertTrue(self.listed()["call"]["whole"])

    def test_a_stream_that_is_removed_while_it_is_recorded_is_in_no_file_once_they_are_sealed(self):
        service = self.started()
        self.during(service, "call", lambda: self.command("rm", "--name", "call"))
        self.stream(service, "other", [samples(20000, 3000)])
        self.assertEqual(service.stop(), 0, service.errors)
        self.assertEqual(list(self.listed()), ["other"])
        self.assertFalse(any(samples(0, 200) in file.read_bytes() for file in self.directory.glob("*.mcap")))
        self.assertTrue(self.command("verify", "--rows")[-1].endswith("rows of 1 stream cut again: good"))

    def test_a_stream_that_is_removed_before_the_service_is_killed_is_in_no_file_once_it_runs_again(self):
        service = self.started()
        self.stream(service, "call", [samples(0, 16000)])
        wait_for(lambda: self.listed().get("call", {}).get("whole"), "the stream to be on the disk")
        self.command("rm", "--name", "call")
        service.stop(signal.SIGKILL)
        service.again()

        def is_in_no_file():
            with contextlib.suppress(FileNotFoundError):  # the service replaces a file at this moment
                return not any(samples(0, 200) in file.read_bytes() for file in self.directory.glob("*.mcap"))

        wait_for(is_in_no_file, "the rewritten file")
        self.assertEqual(self.listed(), {})

    def test_streams_that_do_not_end_in_time_are_cut_and_the_file_is_sealed(self):
        service = self.service(CONFIGURATION.format(directory=self.directory), extra='[limits]\ndrain = "3s"\n')
        worker = RawWorker(service.workers).attached().beat()  # it has rows, and does not answer
        self.addCleanup(worker.close)

        async def call():
            async with service.connect(id="waiting") as connection:
                await connection.send(samples(0, 3000))
                await asyncio.to_thread(wait_for, lambda: "waiting" in self.listed(), "the stream to be on the disk")
                await asyncio.to_thread(service.stop)

        run(call())
        self.assertEqual(service.process.returncode, 1)
        self.assertEqual(self.command("verify")[-1].rpartition(": ")[2], "good")

    def test_after_a_second_signal_the_file_is_left_as_after_a_kill(self):
        service = self.service(CONFIGURATION.format(directory=self.directory))

        async def call():
            async with service.connect(id="waiting") as connection:
                await connection.send(samples(0, 3000))
                await asyncio.to_thread(wait_for, lambda: "waiting" in self.listed(), "the stream to be on the disk")
                service.process.send_signal(signal.SIGTERM)
                await asyncio.to_thread(wait_for, lambda: any("stopping" in line for line in service.errors), "the drain")
                await asyncio.to_thread(service.stop)

        run(call())
        self.assertEqual(service.process.returncode, 1)
        self.assertIn("left unsealed", self.command("verify", code=1)[0])

    def test_what_a_killed_service_leaves_is_not_good_until_it_is_repaired(self):
        service = self.started()
        self.stream(service, "whole", [samples(0, 3000)])
        wait_for(lambda: self.listed().get("whole", {}).get("whole"), "the stream to be on the disk")
        service.stop(signal.SIGKILL)
        self.assertIn("left unsealed", self.command("verify", code=1)[0])
        self.assertEqual(self.command("repair")[-1], "1 file sealed")
        self.assertTrue(self.command("verify", "--rows")[-1].endswith("1 whole, 0 lost parts, rows of 1 stream cut again: good"))


if __name__ == "__main__":
    unittest.main()
