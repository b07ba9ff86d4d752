# SPDX-License-Identifier: Apache-2.0
"""The transcripts of all streams: the text of the open segment in each slot."""

from collections.abc import Sequence

import torch
from features import HOP
from model import Streams
from transformers import NemotronAsrStreamingProcessor

import millrace
from millrace import Flag, Row

Transcript = dict[str, object]


class Recogniser:
    """Confined to one thread."""

    def __init__(self, streams: Streams, processor: NemotronAsrStreamingProcessor, slots: int) -> None:
        self._streams, self._processor = streams, processor
        self._tokens: list[list[int]] = [[] for _ in range(slots)]

    def answer(self, batch: millrace.Batch) -> tuple[list[Transcript], list[Transcript | None]]:
        """Returns the transcripts for the rows with frames, and for the marker rows."""
        return self.take(batch.framed, torch.from_dlpack(batch.data) if batch.rows else None, batch.marks)

    def take(
        self, framed: Sequence[Row], audio: torch.Tensor | None, marks: Sequence[Row]
    ) -> tuple[list[Transcript], list[Transcript | None]]:
        """As ``answer``. ``audio``: [rows, width, 1], from -1 to 1."""
        begun = [row.slot for row in framed if row.flags & Flag.RESET]
        self._streams.clear(begun)
        for slot in begun:
            self._tokens[slot] = []
        heard = [i for i, row in enumerate(framed) if row.size >= HOP]  # the others have no mel frame
        if heard and audio is not None:
            rows = [framed[i] for i in heard]
            for row, tokens in zip(rows, self._streams.step(audio[heard, :, 0], rows)):
                self._tokens[row.slot] += tokens
        return [self._transcript(row) for row in framed], [self._mark(row) for row in marks]

    def _mark(self, row: Row) -> Transcript | None:
        if row.flags & Flag.RESET:
            self._tokens[row.slot] = []
        return self._transcript(row) if row.flags & Flag.LAST else None

    def _transcript(self, row: Row) -> Transcript:
        """The tokens of a segment are only added to, so its text is stable. The last character may still miss bytes, which
        later tokens bring."""
        text = self._processor.decode(self._tokens[row.slot], skip_special_tokens=True)
        final = bool(row.flags & Flag.LAST)
        if final:
            self._tokens[row.slot] = []
        return {"text": text, "stable": text if final else text.rstrip("\ufffd"), "final": final}
