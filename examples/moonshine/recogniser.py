# SPDX-License-Identifier: Apache-2.0
"""The state of each stream for a model that needs a whole segment at once: the audio of the open segment. The worker decodes it
again while it grows, and a last time at its end."""

import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from model import RATE
from numpy.typing import NDArray

from millrace import Flag, Row
from millrace.transcripts import LocalAgreement

LONGEST = 20 * RATE  # samples of a segment: the text of a longer one is final there, and begins anew
UNSURE = 3 * RATE // 2  # samples; words of less audio are often wrong, so they are never stable
SILENCE = 0.01  # the peak of audio that is not decoded
AT_ONCE = 8  # the most segments that are decoded together
PASS = 0.5  # seconds for which texts that are not final may delay the other answers of a batch

# Integers, because operators of Flag take a µs each.
_BEGINS, _START, _RESET, _LAST = map(int, (Flag.RESET | Flag.SEGMENT, Flag.START, Flag.RESET, Flag.LAST))

Answers = list[dict[str, object] | None]


class Segment:
    """A segment of a stream that has not ended: its audio, and the texts so far."""

    def __init__(self, width: int) -> None:
        """``width``: the most samples of a row."""
        self._room = np.empty(LONGEST + width, np.float32)
        self._agreement = LocalAgreement()
        self.size = self.decoded = 0  # samples so far, and in the newest text
        self.peak = 0.0

    @property
    def audio(self) -> NDArray[np.float32]:
        return self._room[: self.size]

    def append(self, samples: NDArray[np.float32], peak: float) -> None:
        self._room[self.size : self.size + len(samples)] = samples
        self.size += len(samples)
        self.peak = max(self.peak, peak)

    def transcript(self, text: str, final: bool) -> dict[str, object]:
        """Returns the answer with a text of all audio so far."""
        self.decoded = self.size
        if not final and self.size < UNSURE:
            return {"text": text, "stable": ""}
        agreed = self._agreement.add(text)
        return {"text": agreed.text, "final": True} if final else {"text": agreed.text, "stable": agreed.stable}


class _Decoding(NamedTuple):
    """A segment to be decoded, and the place of its answer."""

    segment: Segment
    final: bool
    answers: Answers
    place: int


class Recogniser:
    """The open segments of all slots. Confined to one thread."""

    def __init__(
        self,
        transcribe: Callable[[Sequence[NDArray[np.float32]]], list[str]],
        slots: int,
        width: int,
        every: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``transcribe``: returns the text of each segment. ``width``: the most samples of a row. ``every``: a segment is
        decoded again after this many seconds of new audio, or later: at most half of the time is spent on texts that are not
        final. ``clock``: in seconds."""
        self._transcribe, self._width, self._every, self._clock = transcribe, width, int(every * RATE), clock
        self._open = [Segment(width) for _ in range(slots)]
        self._pace = 10.0 * RATE  # samples that are decoded in a second, as last measured
        self._next_pass = clock()

    def take(self, framed: Sequence[Row], audio: NDArray[np.float32], marks: Sequence[Row]) -> tuple[Answers, Answers]:
        """Returns the transcripts for the rows with frames, and for the marker rows. ``audio``: samples [rows, columns], those of
        a row from column 0 on."""
        answers: tuple[Answers, Answers] = [None] * len(framed), [None] * len(marks)
        finals: list[_Decoding] = []
        growing: dict[int, int] = {}  # slots and their rows
        peaks = np.abs(audio).max(1, initial=0).tolist()
        for i, (row, samples, peak) in enumerate(zip(framed, audio, peaks)):
            if row.flags & _BEGINS:
                self._open[row.slot] = Segment(self._width)
                if row.flags & (_RESET | _START) == _RESET:
                    answers[0][i] = {"text": ""}  # so that the client learns that the text begins anew
            segment = self._open[row.slot]
            segment.append(samples[: row.size], peak)
            if row.flags & _LAST or segment.size > LONGEST:
                finals.append(self._end(row.slot, answers[0], i))
            else:
                growing[row.slot] = i
        for i, row in enumerate(marks):
            if row.flags & _RESET:
                self._open[row.slot] = Segment(self._width)
            if row.flags & _LAST:
                finals.append(self._end(row.slot, answers[1], i))
            growing.pop(row.slot, None)
        self._decode(finals)
        self._decode_growing(growing, answers[0])
        return answers

    def _end(self, slot: int, answers: Answers, place: int) -> _Decoding:
        ended, self._open[slot] = self._open[slot], Segment(self._width)
        return _Decoding(ended, True, answers, place)

    def _decode_growing(self, rows: dict[int, int], answers: Answers) -> None:
        """Decodes the segments with most new audio, as many as one pass has time for."""
        begin = self._clock()
        new = {slot: self._open[slot].size - self._open[slot].decoded for slot in rows}
        due = sorted((slot for slot in rows if new[slot] >= self._every), key=lambda slot: -new[slot])
        if begin < self._next_pass or not due:
            return
        fit = bisect_right(list(accumulate(self._open[slot].size for slot in due)), PASS * self._pace)
        decoded = self._decode([_Decoding(self._open[slot], False, answers, rows[slot]) for slot in due[: max(1, fit)]])
        end = self._clock()
        self._next_pass = end + (end - begin)
        if decoded and end > begin:
            self._pace = decoded / (end - begin)

    def _decode(self, decodings: list[_Decoding]) -> int:
        """Answers the rows. Returns how many samples the model took: silent segments have no text without it. Segments of
        similar length are decoded together, because shorter ones are padded."""
        loud = sorted((each.segment for each in decodings if each.segment.peak >= SILENCE), key=lambda segment: segment.size)
        texts: dict[Segment, str] = {}
        for at in range(0, len(loud), AT_ONCE):
            group = loud[at : at + AT_ONCE]
            texts.update(zip(group, self._transcribe([segment.audio for segment in group])))
        for segment, final, answers, place in decodings:
            answers[place] = segment.transcript(texts.get(segment, ""), final)
        return sum(segment.size for segment in loud)
