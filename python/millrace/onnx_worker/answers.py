# SPDX-License-Identifier: Apache-2.0
"""How the output of a model is shown to clients."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from millrace.batch import Batch
from millrace.onnx_worker.configuration import Answer
from millrace.rows import Flag, Row

LONGEST = 1000  # characters of a text that is not final: a longer one is final, and the next begins

# Integers, because operators of Flag take a µs each.
_BEGINS, _START, _RESET, _LAST = map(int, (Flag.RESET | Flag.SEGMENT, Flag.START, Flag.RESET, Flag.LAST))

Result = tuple[NDArray[Any], NDArray[Any]]  # the output, a line per row; how many times of each row are real


class Shown(Protocol):
    """Returns the answers to the rows of a batch, and to its marker rows. ``result``: None for a batch of marker rows alone."""

    def __call__(self, batch: Batch, result: Result | None) -> tuple[Any, Any]: ...


def shown_as(answer: Answer, slots: int) -> Shown:
    """Returns how an output is shown."""
    if answer.tokens:
        return Transcripts(answer.tokens, answer.blank, slots)
    return Labels(answer.labels) if answer.labels else numbers


def numbers(batch: Batch, result: Result | None) -> tuple[Any, Any]:
    """Each row has its part of the output, up to the last real time; a single number is not a list."""
    if result is None:
        return None, None
    output, lengths = result
    if output.size == len(output):
        return output.reshape(-1), None
    return output if output.ndim < 3 else [line[:count] for line, count in zip(output, lengths.clip(0))], None


class Labels:
    """The likeliest label and its number in the output, or a list of them if the output has an axis of time."""

    def __init__(self, labels: list[str]) -> None:
        self._labels = labels

    def __call__(self, batch: Batch, result: Result | None) -> tuple[Any, Any]:
        if result is None:
            return None, None
        output, lengths = result
        best, scores = output.argmax(-1), output.max(-1)
        if output.ndim == 2:
            return [self._named(*each) for each in zip(best, scores)], None
        counts = lengths.clip(0)
        return [[self._named(*each) for each in zip(ids[:count], row)] for ids, row, count in zip(best, scores, counts)], None

    def _named(self, label: int, score: Any) -> dict[str, Any]:
        return {"label": self._labels[label], "score": score}


class Transcripts:
    """Greedy CTC: the likeliest token of each time, without repetitions and blanks. A slot has the text of its segment."""

    def __init__(self, tokens: list[str], blank: int | None, slots: int) -> None:
        """``blank``: the number of the blank. The default is 0, or the last if the output has one class more than there are tokens."""
        self._tokens = [*(token.replace("\u2581", " ") for token in tokens), ""]
        self._blank = blank
        self._last = np.full(slots + 1, -1)  # the newest token; -1 in a fresh state
        self._texts = [""] * slots

    def __call__(self, batch: Batch, result: Result | None) -> tuple[Any, Any]:
        added = [""] * len(batch.framed) if result is None else self._decode(batch, *result)
        answers = [self._take(row, text) for row, text in zip(batch.framed, added)]
        return answers, [self._take(row, "") for row in batch.marks]

    def _decode(self, batch: Batch, output: NDArray[Any], lengths: NDArray[Any]) -> list[str]:
        """Returns the new text of each row."""
        _, times, classes = output.shape
        blank = self._blank if self._blank is not None else len(self._tokens) - 1 if classes == len(self._tokens) else 0
        slot, best, counts = batch.slot, output.argmax(-1), lengths.clip(0, times)
        self._last[slot[batch.reset]] = -1
        before = np.concatenate((self._last[slot, None], best), 1)  # column t: the token before time t
        self._last[slot] = np.take_along_axis(before, counts[:, None], 1)[:, 0]
        new = (best != blank) & (best != before[:, :-1]) & (np.arange(times) < counts[:, None])
        return ["".join(map(self._tokens.__getitem__, ids[kept])) for ids, kept in zip(best, new)]

    def _take(self, row: Row, added: str) -> dict[str, Any] | None:
        if row.flags & _BEGINS:
            self._texts[row.slot] = ""
        before = self._texts[row.slot].strip()
        self._texts[row.slot] += added
        text = self._texts[row.slot].strip()
        if row.flags & _LAST or len(text) > LONGEST:
            self._texts[row.slot] = ""
            return {"text": text, "final": True}
        begins_anew = row.flags & (_RESET | _START) == _RESET  # the client learns it only from an answer
        return {"text": text, "stable": text} if text != before or begins_anew else None
