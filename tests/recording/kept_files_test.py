# SPDX-License-Identifier: Apache-2.0
"""PyPI's mcap reads every file that the tests of damage and the crash loop have sealed or repaired: whole, with all
checksums, and with the same messages.

    kept_files_test.py PROGRAM [ARGUMENT...]    runs the program with KEEP_FILES, and reads the files that it keeps
"""
import os
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

from mcap.reader import NonSeekingReader, SeekingReader

import slices

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


def messages(path, kind):
    """Stream, number and checksum of each message, and its slice."""
    with open(path, "rb") as file:
        for _, channel, message in kind(file, validate_crcs=True).iter_messages(log_time_order=False):
            piece = slices.decode(message.data, channel.metadata, message.sequence, message.log_time)
            yield (int(channel.metadata["number"]), message.sequence, zlib.crc32(message.data)), piece


def counted(pieces):
    """Of each stream: its slices, its position after the last one, its frames."""
    streams = {}
    for piece in pieces:
        number, _, frames = streams.get(int(piece.meta["number"]), (0, 0, 0))
        counts = [(event.kind, event.count) for event in piece.events]
        moved = sum(count for kind, count in counts if kind in ("frames", "gap"))
        own = sum(count for kind, count in counts if kind == "frames")
        streams[int(piece.meta["number"])] = (number + 1, piece.begin + moved, frames + own)
    return streams


def check(path):
    listed = [tuple(map(int, line.split())) for line in Path(f"{path}.txt").read_text().splitlines()]
    read = list(messages(path, NonSeekingReader))
    assert [key for key, _ in read] == listed, path
    assert [key for key, _ in messages(path, SeekingReader)] == listed, path
    parts = {part.stream: (part.slices, part.end, part.frames) for part in slices.parts(path)}
    assert parts == counted(piece for _, piece in read), path
    assert slices.metadata(path)["format"] == "1", path


def main():
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        subprocess.run(sys.argv[1:], env=os.environ | {"KEEP_FILES": folder}, check=True)
        files = sorted(Path(folder).glob("*.mcap"))
        for path in files:
            check(path)
    print(len(files), "files were read")
    assert files


if __name__ == "__main__":
    main()
