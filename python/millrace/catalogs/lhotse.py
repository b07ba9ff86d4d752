# SPDX-License-Identifier: Apache-2.0
"""Cut sets of Lhotse."""

import bisect
import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace.batch import Batch
from millrace.stream_sources import Form


class LhotseCuts:
    """The audio of the cuts of a Lhotse cut set, each a stream. The id of a cut is the name. Needs lhotse.

    ``meta`` has the cut's ``custom`` fields, and the ``text``, ``speaker`` and ``language`` of its first supervision.
    """

    def __init__(self, cuts: Any, *, companions: Mapping[str, Any] | None = None) -> None:
        """``cuts``: a CutSet, any iterable of cuts with the same sampling rate, or the path of a manifest of cuts.

        ``companions``: sources of companions, as for Dataset.
        """
        self._cuts = list(_cuts_in(os.fspath(cuts)) if isinstance(cuts, (str, os.PathLike)) else cuts)
        self.companions: Mapping[str, Any] = companions or {}
        #: Frames per second.
        self.rate: float | None = self._cuts[0].sampling_rate if self._cuts else None
        for cut in self._cuts:
            if cut.sampling_rate != self.rate:
                raise ValueError(f"cut {cut.id!r} has {cut.sampling_rate} Hz instead of {self.rate} Hz:"
                                 f" use cuts.resample({self.rate})")

    def __len__(self) -> int:
        return len(self._cuts)

    def frames(self, i: int) -> int:
        return int(self._cuts[i].num_samples)

    def name(self, i: int) -> str:
        return str(self._cuts[i].id)

    def unit(self, i: int) -> str:
        """Cuts of one recording belong together."""
        cut = self._cuts[i]
        for part in cut, *(track.cut for track in getattr(cut, "tracks", ())):  # a cut that is mixed or padded
            if getattr(part, "recording_id", None):
                return str(part.recording_id)
        return str(cut.id)

    def meta(self, i: int) -> dict[str, Any]:
        cut = self._cuts[i]
        meta = dict(getattr(cut, "custom", None) or {})
        meta = {key: value for key, value in meta.items() if isinstance(value, (str, int, float, bool))}
        for supervision in cut.supervisions[:1]:
            for key in "text", "speaker", "language":
                if getattr(supervision, key) is not None:
                    meta[key] = getattr(supervision, key)
        return meta

    def read(self, i: int, begin: int, n: int) -> NDArray[Any]:
        part = self.cut(i, begin, n)
        return np.asarray(part.load_audio(), np.float32).T

    def _form(self, i: int) -> Form | None:
        cut = self._cuts[i]
        return int(getattr(cut, "num_channels", None) or 1), np.dtype(np.float32), cut.sampling_rate

    def cut(self, i: int, begin: int, n: int) -> Any:
        """The frames [begin, begin + n) of stream i as a cut."""
        cut = self._cuts[i]
        if begin == 0 and n == cut.num_samples:
            return cut
        return cut.truncate(offset=begin / cut.sampling_rate, duration=n / cut.sampling_rate, preserve_id=False)


def is_cut_set(given: Any) -> bool:
    """Whether the object is a CutSet. Does not import Lhotse."""
    lhotse = sys.modules.get("lhotse")
    return lhotse is not None and isinstance(given, lhotse.CutSet)


def _cuts_in(path: str) -> Any:
    try:
        lhotse: Any = importlib.import_module("lhotse")
    except ImportError:
        raise ImportError("cuts of Lhotse need lhotse: pip install lhotse") from None
    return lhotse.CutSet.from_file(path)


def cuts_of(sources: Sequence[Any], place: Callable[[int], tuple[int, int]], batch: Batch) -> list[Any]:
    """The bodies of the rows as cuts. ``place`` gives the stream of the sources, one after the other, and the frame of it,
    where a stream of the batch begins. Raises TypeError if one of the sources has no cuts."""
    starts = [0]
    for source in sources:
        if not hasattr(source, "cut"):
            raise TypeError("cuts() needs streams of millrace.catalogs.LhotseCuts")
        starts.append(starts[-1] + len(source))
    cuts = []
    for row in batch.framed:
        stream, begin = place(row.stream)
        part = bisect.bisect_right(starts, stream) - 1
        cuts.append(sources[part].cut(stream - starts[part], begin + row.begin, row.size))
    return cuts
