# SPDX-License-Identifier: Apache-2.0
"""Transcripts: what a worker of a speech recogniser answers (docs/transcripts.md). For workers whose model does not itself
say which words are stable, or where a segment begins. Pure Python."""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from millrace.rows import Flag, Row


class Agreed(NamedTuple):
    """A text, and its beginning that will not change any more."""

    text: str
    stable: str


def words(text: str) -> list[str]:
    """Returns the words of a text, each with the space before it."""
    return re.findall(r"\s*\S+", text.strip())


class LocalAgreement:
    """The stable beginning of a segment that is decoded again and again while it grows: the words on which two decodings in
    a row agree (LocalAgreement-2 of Liu et al., https://arxiv.org/abs/2005.11185).

        agreement = LocalAgreement()
        agreement.add("he was not until")       # Agreed("he was not until", "")
        agreement.add("he was not an ill")      # Agreed("he was not an ill", "he was not")
        agreement.add("he has not an ill man")  # Agreed("he was not an ill man", "he was not an ill")
        agreement.clear()                       # the next text is of a new segment

    ``split`` divides a text into the pieces that are compared: ``list`` compares characters, for languages that are
    written without spaces. The pieces joined are the text.
    """

    def __init__(self, split: Callable[[str], list[str]] = words) -> None:
        self._split = split
        self._stable: list[str] = []
        self._last: list[str] = []

    def add(self, text: str) -> Agreed:
        """Takes the text of the whole segment. The stable words replace those at its beginning that are most like them."""
        pieces = self._split(text.strip())
        pieces[: _alike(self._stable, pieces)] = self._stable
        stable = 0
        while stable < min(len(pieces), len(self._last)) and pieces[stable] == self._last[stable]:
            stable += 1
        self._stable = pieces[: max(stable, len(self._stable))]
        self._last = pieces
        return Agreed("".join(pieces), "".join(self._stable))

    def clear(self) -> None:
        """Begins a new segment."""
        self._stable, self._last = [], []


def _alike(stable: list[str], pieces: list[str]) -> int:
    """Returns the number of pieces at the beginning that have the least edit distance to the stable ones."""
    same = 0
    while same < min(len(stable), len(pieces)) and stable[same] == pieces[same]:
        same += 1
    rest = pieces[same:]
    distances = list(range(len(rest) + 1))  # from the stable pieces so far to each beginning of the rest
    for i, piece in enumerate(stable[same:], 1):
        before, distances = distances, [i]
        for j, other in enumerate(rest, 1):
            distances.append(min(distances[-1] + 1, before[j] + 1, before[j - 1] + (piece != other)))
    length = len(stable) - same

    def unlike(end: int) -> tuple[int, bool, int]:
        return distances[end], rest[end - 1 : end] != stable[-1:], abs(end - length)

    return same + min(range(len(rest) + 1), key=unlike)


class Segment(NamedTuple):
    """A segment of a stream."""

    number: int  #: segments of the stream before this one, counted from the first row that the worker has had
    begin: float  #: where its audio begins for the model, in seconds of the stream: its first frame, or that after a lost state


class Segments:
    """Which segment of its stream each row belongs to, from the markers of the rows. Give it each row of the worker once,
    in order: those of ``batch.framed``, then those of ``batch.marks``.

        segments = Segments(worker.rate)
        for row, segment in zip(batch.framed, segments.of(batch.framed)):
            first = row.begin / worker.rate - segment.begin  # the seconds of the segment before this row
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._open: dict[int, tuple[int, Segment]] = {}  # slot: (stream, its segment)

    def of(self, rows: Iterable[Row]) -> list[Segment]:
        """Returns the segment of each row."""
        return [self._take(row) for row in rows]

    def _take(self, row: Row) -> Segment:
        stream, segment = self._open.get(row.slot, (None, Segment(0, 0.0)))
        if stream != row.stream:
            segment = Segment(0, row.begin / self._rate)
        elif row.flags & Flag.SEGMENT:
            segment = Segment(segment.number + 1, row.begin / self._rate)
        elif row.flags & Flag.RESET:
            segment = segment._replace(begin=row.begin / self._rate)
        self._open[row.slot] = row.stream, segment
        return segment
