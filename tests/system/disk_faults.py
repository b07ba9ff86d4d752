# SPDX-License-Identifier: Apache-2.0
"""A service that records, and a disk with faults (tests/support/disk_faults)."""
import json
import mmap
import os
import struct
import subprocess
import tempfile

from faults import PACKET
from harness import MILLRACE, PATIENCE, Service

FIELDS = ("write_error", "longest_write", "write_ms", "interruptions", "reserve_error", "sync_errors", "create_error", "used_up",
          "faults", "repeated")


class Disk:
    """The faults of the disk of a process: integers that its library reads and counts."""

    def __init__(self, path):
        self.path = path
        with open(path, "wb+") as file:
            file.truncate(8 * len(FIELDS))
            self._memory = mmap.mmap(file.fileno(), 8 * len(FIELDS))

    def set(self, **fields):
        for name, value in fields.items():
            struct.pack_into("<q", self._memory, 8 * FIELDS.index(name), value)

    def heal(self):
        self.set(**dict.fromkeys(FIELDS[:-2], 0))

    def __getattr__(self, name):
        if name not in FIELDS:
            raise AttributeError(name)
        return struct.unpack_from("<q", self._memory, 8 * FIELDS.index(name))[0]


class RecordingService(Service):
    """A service that records all streams of the pipeline `default` into `directory`. `disk` has the faults of its disk: at the
    start, `faults`."""

    def __init__(self, directory, recording="", record="true", within=(), faults=None):
        self.directory = directory
        self.files = tempfile.TemporaryDirectory(prefix="millrace-disk-")
        self.disk = Disk(os.path.join(self.files.name, "faults"))
        self.disk.set(**(faults or {}))
        super().__init__(f"[[pipeline]]\nchunk = {{ size = {PACKET} }}\nrecord = {record}\n",
                         f'[recording]\ndirectory = "{directory}"\ncommit = "20ms"\nmin_free = "1MiB"\n{recording}', within=within)

    def environment(self):
        return {"LD_PRELOAD": os.environ["MILLRACE_DISK_FAULTS_LIBRARY"], "MILLRACE_DISK_FAULTS": self.disk.path}

    def recorded(self, name, **labels):
        """A metric of recording."""
        return self.metric(f"millrace_recording_{name}", **labels)

    def recording_files(self):
        return sorted(name for name in os.listdir(self.directory) if name.endswith(".mcap"))

    def close(self):
        try:
            super().close()
        finally:
            self.files.cleanup()


def recordings(command, directory, *more):
    """Runs `millrace recordings`. Returns (exit code, lines of its output, lines of its errors)."""
    done = subprocess.run([MILLRACE, "recordings", command, directory, *more], capture_output=True, text=True, timeout=PATIENCE)
    return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()


def listed(directory):
    """{name: what `ls --json` has of the stream}"""
    code, lines, errors = recordings("ls", directory, "--json")
    assert code == 0, errors
    return {stream["name"]: stream for stream in map(json.loads, lines)}


def events(directory, stream):
    """The events of a stream that `ls` lists."""
    code, lines, errors = recordings("show", directory, "--number", str(stream["number"]))
    assert code == 0, errors
    return [line for line in map(json.loads, lines) if "event" in line]


def frames_and_gaps(directory, stream):
    """(frames, frames in gaps of the recorder) of a stream."""
    found = events(directory, stream)
    return (sum(event["count"] for event in found if event["event"] == "frames"),
            sum(event["count"] for event in found if (event["event"], event["cause"]) == ("gap", "recorder")))
