# SPDX-License-Identifier: Apache-2.0
"""Matrices of Kaldi."""

import os
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace.stream_sources import Place

_PLAIN: dict[bytes, np.dtype[Any]] = {b"FM ": np.dtype("<f4"), b"DM ": np.dtype("<f8")}
_COMPRESSED = (b"CM ", b"CM2", b"CM3")


class Kaldi:
    """The matrices of a Kaldi ``.scp`` file, each a stream. The key of a matrix is the name. Needs kaldiio.

    Uncompressed matrices of floats in files are mapped and read in place. Others are read whole, by kaldiio.
    """

    def __init__(
        self,
        scp: str | os.PathLike[str],
        *,
        companions: Mapping[str, Any] | None = None,
        rate: float | None = None,
    ) -> None:
        """``companions``: sources of companions, as for Dataset. ``rate``: frames per second, usually 100."""
        try:
            import kaldiio
        except ImportError:
            raise ImportError("files of Kaldi need kaldiio: pip install kaldiio") from None
        self._load = kaldiio.load_mat
        with open(scp, encoding="utf-8") as file:
            entries = [line.strip().split(None, 1) for line in file if line.strip()]
        for entry in entries:
            if len(entry) != 2:
                raise ValueError(f"{os.fspath(scp)}: {entry[0]!r} has no file")
        self._entries = entries
        self._last: tuple[int, NDArray[Any]] | None = None
        self.companions: Mapping[str, Any] = companions or {}
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

    def read(self, i: int, begin: int, n: int) -> NDArray[Any]:
        return self._matrix(i)[begin : begin + n]

    def _matrix(self, i: int) -> NDArray[Any]:
        last = self._last
        if last is None or last[0] != i:
            matrix = self._load(self._entries[i][1])
            if isinstance(matrix, tuple):  # audio: the rate, and the samples
                matrix = matrix[1] if isinstance(matrix[1], np.ndarray) else matrix[0]
            self._last = last = (i, np.asarray(matrix))
        return last[1]

    def _head(self, i: int) -> tuple[int, Place] | None:
        """Rows and place of a binary matrix in a file; None for everything else."""
        path, _, offset = self._entries[i][1].rpartition(":")
        if not path or not offset.isdecimal() or not os.path.isfile(path):
            return None
        with open(path, "rb") as file:
            file.seek(int(offset))
            head = file.read(15)
            if head[:2] != b"\0B":
                return None
            kind = head[2:5]
            if kind in _PLAIN and head[5:6] == head[10:11] == b"\4":
                rows = struct.unpack("<i", head[6:10])[0]
                return rows, (path, int(offset) + 15, _PLAIN[kind])
            if kind in _COMPRESSED:  # then two floats, rows and columns
                file.seek(int(offset) + (5 if kind == b"CM " else 6))
                return struct.unpack("<ffii", file.read(16))[2], None
        return None

    def _place(self, i: int) -> Place:
        head = self._head(i)
        return None if head is None else head[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": None}
