# SPDX-License-Identifier: Apache-2.0
"""Matrices of Kaldi."""

import math
import os
import struct
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from millrace.stream_sources import Form, Place, form_of

_PLAIN: dict[bytes, np.dtype[Any]] = {b"FM ": np.dtype("<f4"), b"DM ": np.dtype("<f8")}
_COMPRESSED = (b"CM ", b"CM2", b"CM3")
_OVERSHOOT = 0.5  # seconds that a segment may end behind its audio, as in Kaldi

#: A key, its file, and the seconds of a part of it; None: all of it.
_Entry = tuple[str, str, tuple[float, float] | None]


class Kaldi:
    """The matrices of a Kaldi ``.scp`` file, or the audio of a ``wav.scp``, each a stream. The key is the name. Needs
    kaldiio.

    Uncompressed matrices of floats in files are read by the threads of a Dataset. Others are read whole, by kaldiio.
    """

    def __init__(
        self,
        scp: str | os.PathLike[str],
        *,
        segments: str | os.PathLike[str] | Literal[False] | None = None,
        companions: Mapping[str, Any] | None = None,
        rate: float | None = None,
    ) -> None:
        """``segments``: a file with lines of name, key, begin and end in seconds: each line is a stream, a part of the
        audio of its key, up to its end if that is -1 or up to 0.5 s later. False: ``wav.scp`` is read whole, although
        its folder has ``segments``.

        ``companions``: sources of companions, as for Dataset. ``rate``: frames per second, usually 100; audio has its own.

        Raises ValueError that names the line if a file cannot be used.
        """
        try:
            import kaldiio
        except ImportError:
            raise ImportError("files of Kaldi need kaldiio: pip install kaldiio") from None
        self._load = kaldiio.load_mat
        path = os.fspath(scp)
        beside = os.path.join(os.path.dirname(path), "segments")
        if segments is None and os.path.basename(path) == "wav.scp" and os.path.exists(beside):
            raise ValueError(f"{path}: its folder has segments, parts of the audio that are the utterances: give"
                             f" segments={beside!r}, or segments=False for whole files")
        files = _fields(path, 2, "a key and a file")
        self._entries: list[_Entry] = [(key, place, None) for key, place in files]
        if segments:
            self._entries = _parts(os.fspath(segments), {key: place for key, place in files}, path)
        self._last: tuple[str, NDArray[Any], float | None] | None = None
        self.companions: Mapping[str, Any] = companions or {}
        self._given = rate
        self.rate = rate

    def __len__(self) -> int:
        return len(self._entries)

    def frames(self, i: int) -> int:
        head = self._head(i)
        return len(self._matrix(i)) if head is None else head[0]

    #: Entries of a companion, if the matrices are one.
    entries = frames

    def name(self, i: int) -> str:
        return self._entries[i][0]

    def unit(self, i: int) -> str:
        """Segments of one recording belong together."""
        name, place, part = self._entries[i]
        return name if part is None else place

    def read(self, i: int, begin: int, n: int) -> NDArray[Any]:
        return self._matrix(i)[begin : begin + n]

    def _form(self, i: int) -> Form | None:
        head = self._head(i)
        if head is not None:
            return (head[1], head[2], None) if head[0] else None
        matrix = self._matrix(i)
        found = form_of(matrix)
        assert self._last is not None
        rate = self._last[2]
        if rate is None or found is None:
            return found
        if self._given is not None and self._given != rate:
            raise ValueError(f"stream {self.name(i)!r} has {rate:g} Hz instead of {self._given:g} Hz")
        return found[0], found[1], rate

    def _matrix(self, i: int) -> NDArray[Any]:
        name, place, part = self._entries[i]
        last = self._last
        if last is None or last[0] != place:
            loaded, rate = self._load(place), None
            if isinstance(loaded, tuple):  # audio: the rate, and the samples
                audio_first = isinstance(loaded[0], np.ndarray)
                rate, loaded = float(loaded[1 if audio_first else 0]), loaded[0 if audio_first else 1]
            self._last = last = (place, np.asarray(loaded), rate)
            self.rate = self.rate or rate
        matrix, rate = last[1], last[2]
        if part is None:
            return matrix
        if rate is None:
            raise ValueError(f"segment {name!r} is a part of {place}, which is not audio")
        seconds = len(matrix) / rate
        if math.inf > part[1] > seconds + _OVERSHOOT:
            raise ValueError(f"segment {name!r} ends at {part[1]:g} s; {place} has {seconds:g} s")
        begin, end = round(part[0] * rate), round(min(part[1], seconds) * rate)
        if begin >= len(matrix):
            raise ValueError(f"segment {name!r} begins at {part[0]:g} s; {place} has {seconds:g} s")
        if begin == end:
            raise ValueError(f"segment {name!r} from {part[0]:g} s to {part[1]:g} s has no samples at {rate:g} Hz")
        return matrix[begin:end]

    def _head(self, i: int) -> tuple[int, int, np.dtype[Any], Place] | None:
        """Rows, columns, type and place of a binary matrix in a file; None for everything else."""
        _, place, part = self._entries[i]
        path, _, offset = place.rpartition(":")
        if part is not None or not path or not offset.isdecimal() or not os.path.isfile(path):
            return None
        with open(path, "rb") as file:
            file.seek(int(offset))
            head = file.read(15)
            if head[:2] != b"\0B":
                return None
            kind = head[2:5]
            if kind in _PLAIN and head[5:6] == head[10:11] == b"\4":
                rows, columns = struct.unpack("<i", head[6:10])[0], struct.unpack("<i", head[11:15])[0]
                return rows, columns, _PLAIN[kind], (path, int(offset) + 15, _PLAIN[kind])
            if kind in _COMPRESSED:  # then two floats, rows and columns
                file.seek(int(offset) + (5 if kind == b"CM " else 6))
                _, _, rows, columns = struct.unpack("<ffii", file.read(16))
                return rows, columns, np.dtype(np.float32), None
        return None

    def _place(self, i: int) -> Place:
        head = self._head(i)
        return None if head is None else head[3]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": None}


def _fields(path: str, count: int, what: str) -> list[list[str]]:
    """The lines of a file, each with this many fields; the last one may have spaces."""
    with open(path, encoding="utf-8-sig", errors="surrogateescape") as file:
        lines = [line.strip().split(None, count - 1) for line in file]
    for number, fields in enumerate(lines, 1):
        if fields and len(fields) != count:
            raise ValueError(f"{path}: line {number} must have {what}, not {' '.join(fields)!r}")
    return [fields for fields in lines if fields]


def _parts(path: str, files: Mapping[str, str], scp: str) -> list["_Entry"]:
    """The streams of a file ``segments``."""
    parts: list[_Entry] = []
    for name, key, *times in _fields(path, 4, "a name, a key, a begin and an end"):
        try:
            begin, end = (float(time) for time in times)
        except ValueError:
            begin = end = 0
        is_whole = end == -1  # up to the end of the audio
        if not (0 <= begin < end < math.inf or (is_whole and 0 <= begin < math.inf)):
            raise ValueError(f"{path}: segment {name!r} must have a begin and a later end in seconds,"
                             f" not {' '.join(times)!r}")
        if key not in files:
            raise ValueError(f"{path}: segment {name!r} is a part of {key!r}, which {scp} does not have")
        parts.append((name, files[key], (begin, math.inf if is_whole else end)))
    return parts
