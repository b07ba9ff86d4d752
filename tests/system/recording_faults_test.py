# SPDX-License-Identifier: Apache-2.0
"""Faults of the disk to which streams are recorded. Each time the live streams lose nothing, and the recording names what it
lacks. Ids like E4 are those of docs/internals/guarantees.md."""
import contextlib
import errno
import json
import os
import subprocess
import tempfile
import unittest
import urllib.parse

import memory_test
from disk_faults import RecordingService, frames_and_gaps, listed, recordings
from faults import PACKET, FaultTest
from harness import MILLRACE, PATIENCE, wait_for
from memory_test import LIMIT, ShortService
from raw_client import RawClient, upgrade

WITHIN = ("unshare", "--user", "--map-root-user", "--mount")  # a new mount namespace: no other process sees its mounts
MOUNT = ("sh", "-c", 'mount -t tmpfs -o "$0" tmpfs "$1" && shift && exec "$@"')


def mounts(options, directory):
    """The command that runs a program with a tmpfs at `directory`."""
    return (*WITHIN, *MOUNT, options, directory)


class RecordingFaultTest(FaultTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="millrace-recordings-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.directory = os.path.join(folder.name, "recordings")

    def recording(self, *arguments, **more):
        service = RecordingService(self.directory, *arguments, **more)
        self.addCleanup(service.close)
        self.worker = self.tap(service)
        return service

    @contextlib.contextmanager
    def streamed(self, service, name="good"):
        """A stream whose rows are all answered, also while the disk has faults. Then the service is stopped."""
        good = self.good_stream(service, id=name)
        good.row()
        yield good
        good.row()
        good.end()
        self.frames = good.rows * PACKET

    def rows_until(self, good, condition, what):
        """Streams rows until the condition holds."""
        def rows():
            for _ in range(10):  # a file of 1 MiB has 330, and a condition may take longer than a row
                good.row()
            return condition()

        wait_for(rows, what)

    def stop(self, service):
        self.assertEqual(service.stop(), 0, service.errors[-3:])

    def is_good(self, *options):
        code, lines, errors = recordings("verify", self.directory, *options)
        self.assertEqual((code, errors), (0, []), lines)

    def has_lost(self, name="good"):
        """Checks that the stream is not whole, and that frames and gaps of the recorder are all of its frames."""
        stream = listed(self.directory)[name]
        self.assertFalse(stream["whole"])
        frames, gaps = frames_and_gaps(self.directory, stream)
        self.assertEqual(frames + gaps, self.frames)
        self.assertGreater(gaps, 0)

    def is_whole(self, name="good"):
        stream = listed(self.directory)[name]
        self.assertTrue(stream["whole"])
        self.assertEqual(frames_and_gaps(self.directory, stream), (self.frames, 0))


class NoSpace(RecordingFaultTest):
    def suspended_and_resumed(self, service, breaks, heals):
        with self.streamed(service) as good:
            self.rows_until(good, lambda: service.recorded("records_total") > 0, "a commit")
            breaks()
            self.rows_until(good, lambda: service.recorded("suspended") == 1, "recording to be suspended")
            self.rows_until(good, lambda: service.recorded("records_dropped_total", reason="disk_full") > 0, "slices to be dropped")
            heals()
            self.rows_until(good, lambda: service.recorded("suspended") == 0, "recording to resume")
            before = service.recorded("records_total")
            self.rows_until(good, lambda: service.recorded("records_total") > before, "a commit")

    def test_a_small_file_system_that_is_full_is_used_again_when_it_has_space(self):  # E4
        os.mkdir(self.directory)
        within = mounts("size=40m", self.directory)
        if subprocess.run([*within, "true"], capture_output=True).returncode != 0:
            self.skipTest("no mount namespace can be made here")
        service = self.recording('file_size = "4MiB"\n', within=within)  # one file when the disk is full: none can be deleted
        inside = f"/proc/{service.process.pid}/root{self.directory}"
        filler = os.path.join(inside, "filler")

        def fill():
            with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
                while file.write(bytes(1 << 16)):
                    pass

        self.suspended_and_resumed(service, fill, lambda: os.unlink(filler))
        self.directory = inside
        wait_for(lambda: not listed(inside)["good"]["open"], "the end of the stream to be recorded")
        self.has_lost()
        self.is_good()


class ReadOnly(RecordingFaultTest):
    def test_a_read_only_file_system_does_not_keep_the_service_from_starting(self):  # E22
        os.mkdir(self.directory)
        within = mounts("ro", self.directory)
        if subprocess.run([*within, "true"], capture_output=True).returncode != 0:
            self.skipTest("no mount namespace can be made here")
        service = self.recording(within=within)
        self.assertEqual(service.recorded("suspended"), 1)
        with self.streamed(service):
            pass
        self.assertTrue(any("recording suspended" in line and "Read-only" in line for line in service.errors), service.errors)
        self.stop(service)


class BrokenDisk(RecordingFaultTest):
    def quarantined(self, operation, **fault):
        service = self.recording()
        with self.streamed(service) as good:
            self.rows_until(good, lambda: service.recorded("records_total") > 0, "a commit")
            service.disk.set(**fault)
            self.rows_until(good, lambda: service.recorded("errors_total", op=operation) > 0, "the error")
            service.disk.heal()
            self.rows_until(good, lambda: service.recorded("suspended") == 0 and len(service.recording_files()) > 1, "the next file")
            before = service.recorded("records_total")
            self.rows_until(good, lambda: service.recorded("records_total") > before, "a commit")
        self.assertGreater(service.recorded("files_total", event="quarantined"), 0)
        self.stop(service)
        return service

    def check_repaired(self):
        """The file with the error is left for `repair`; then all is good. Returns the frames that are lost."""
        code, lines, _ = recordings("verify", self.directory)
        self.assertEqual(code, 1)
        self.assertTrue(any("0000000001.mcap" in line and "unsealed" in line for line in lines), lines)
        self.assertEqual(recordings("repair", self.directory)[0], 0)
        self.is_good("--rows")
        frames, gaps = frames_and_gaps(self.directory, listed(self.directory)["good"])
        self.assertEqual(frames + gaps, self.frames)
        return gaps

    def test_after_an_error_of_a_write_the_file_is_left_for_repair_and_another_begins(self):  # E5
        self.quarantined("write", write_error=errno.EIO)
        self.assertGreater(self.check_repaired(), 0)


class ShortOfMemory(RecordingFaultTest):
    def test_while_memory_is_short_nothing_is_recorded_and_streams_continue(self):
        memory_test.setUpModule()
        service = ShortService(f"[[pipeline]]\nchunk = {{ size = {PACKET} }}\nrecord = true\n"
                               f'[recording]\ndirectory = "{self.directory}"\ncommit = "20ms"\n')
        self.addCleanup(service.close)
        self.worker = self.tap(service)

        def recorded(name, **labels):
            return service.metric(f"millrace_recording_{name}", **labels)

        with self.streamed(service) as good:
            self.rows_until(good, lambda: recorded("records_total") > 0, "a commit")
            service.use(92)
            self.rows_until(good, lambda: recorded("records_dropped_total", reason="memory") > 0, "slices to be dropped")
            self.assertLessEqual({"shed_recording"}, service.active())
            service.set_free(LIMIT)
            self.rows_until(good, lambda: not service.active(), "memory to be free")
            before = recorded("records_total")
            self.rows_until(good, lambda: recorded("records_total") > before, "a commit")
        self.stop(service)
        self.has_lost()
        self.is_good("--rows")


class Directories(RecordingFaultTest):
    def refusal(self):
        """The line with which a service does not start."""
        config = os.path.join(self.folder, "millrace.toml")
        with open(config, "w") as file:
            file.write(f'[listen]\nwebsocket = "127.0.0.1:0"\nadmin = "127.0.0.1:0"\nzeromq = "off"\n'
                       f'workers = "unix:{self.folder}/w/workers.sock"\n'
                       f'[recording]\ndirectory = "{self.directory}"\n[[pipeline]]\nrecord = true\n')
        done = subprocess.run([MILLRACE, "serve", config], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 1, done.stderr)
        [line] = [line for line in done.stderr.splitlines() if self.directory in line]
        return line

    def test_a_link_a_file_or_a_directory_of_others_ends_the_start_with_one_line(self):  # E7, J25
        target = os.path.join(self.folder, "target")
        os.mkdir(target)
        os.symlink(target, self.directory)
        self.assertIn("link", self.refusal())
        self.assertEqual(os.listdir(target), [])
        os.unlink(self.directory)
        with open(self.directory, "w"):
            pass
        self.assertIn("not a directory", self.refusal())
        os.unlink(self.directory)
        os.mkdir(self.directory)
        os.chmod(self.directory, 0o755)
        self.assertIn("run chmod 700", self.refusal())
        self.assertEqual(os.listdir(self.directory), [])

    def test_a_second_writer_is_refused_and_the_first_continues(self):  # E8
        service = self.recording()
        with self.streamed(service):
            self.assertIn("another process", self.refusal())
        self.stop(service)
        self.is_whole()
        self.is_good("--rows")

    def test_if_the_directory_is_removed_recording_is_suspended_and_streams_continue(self):  # E7
        service = self.recording()
        with self.streamed(service) as good:
            self.rows_until(good, lambda: service.recorded("records_total") > 0, "a commit")
            for name in os.listdir(self.directory):
                os.unlink(os.path.join(self.directory, name))
            os.rmdir(self.directory)
            self.rows_until(good, lambda: service.recorded("suspended") == 1, "recording to be suspended")
        self.stop(service)
        self.assertFalse(os.path.exists(self.directory))


NAMES = ["..%2f..%2fa", "a/b", '"a"', "a%0ab", "'", "a" * 300, "%00"]
TEXTS = ["../../a", "/", '"\'', "a\nb", "a" * 300, "..", ".", "%s%n"]


class Names(RecordingFaultTest):
    def test_text_of_clients_is_part_of_no_path(self):  # E16
        service = self.recording()
        for name in NAMES:
            with self.subTest(name), RawClient(service.port, upgrade(f"/v1/stream?id={name}")) as client:
                self.assertEqual(client.head()[0], 400)
        options = json.dumps(dict(enumerate(TEXTS)))
        for name in ("..", "."):
            with self.streamed(service, f"{name}&options={urllib.parse.quote(options)}"):
                pass
        before = set(os.listdir(self.folder))
        self.stop(service)
        self.assertEqual(set(listed(self.directory)), {"..", "."})
        self.assertEqual(service.recording_files(), ["0000000001.mcap"])
        self.is_good("--rows")
        exported = os.path.join(self.folder, "exported")
        code, _, errors = recordings("export", self.directory, "--to", exported)
        self.assertEqual(code, 0, errors)
        self.assertEqual(set(os.listdir(self.folder)), before | {"exported"})
        names = sorted(os.listdir(exported))
        self.assertEqual([name for name in names if name != "streams.jsonl"],
                         sorted(f"{stream['number']}.wav" for stream in listed(self.directory).values()))
        with open(os.path.join(exported, "streams.jsonl")) as file:
            for line in map(json.loads, file):
                self.assertEqual(line["options"], json.loads(options))


class Declining(RecordingFaultTest):
    def test_a_stream_that_declines_is_not_recorded(self):
        service = self.recording(record="{ answers = true }")
        for name in ("declined&record=no", "recorded"):
            with self.streamed(service, name):
                pass
        self.stop(service)
        self.assertEqual(list(listed(self.directory)), ["recorded"])


if __name__ == "__main__":
    unittest.main()
