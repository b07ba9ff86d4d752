#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A recogniser whose words are in the audio: 250 ms of samples with the value 3000 are the word w3. It answers each row with
the transcript of the segment so far, whose last word is not stable. 250 ms of silence are no word.

  scripted_worker.py --url unix:PATH [--pipeline NAME] [--endpoints] [--shout]

The levels of script.py are no words but commands."""
import argparse
import json

import numpy as np
from script import FAILS, LEVEL, OPTIONS, SILENT

import millrace
from millrace import Flag

BEGINS = Flag.START | Flag.SEGMENT | Flag.RESET


class Stream:
    """A stream in a slot: the frames of its segment, and its options."""

    def __init__(self, rate, shout):
        self._rate, self._shout = rate, shout
        self._block = rate // 4
        self.options = {}
        self._restart(0)

    def _restart(self, begin):
        self._begin, self._frames = begin, np.empty(0, np.int64)
        self._known = 0  # blocks that earlier rows had

    def take(self, row, frames):
        """Returns the answer to the row, and whether the row completes 250 ms of silence after a word."""
        if row.flags & BEGINS:
            self._restart(row.begin)
        self._frames = np.append(self._frames, np.abs(frames.astype(np.int64)))
        last = bool(row.flags & Flag.LAST)
        levels = self._levels(last)
        new, self._known = levels[self._known:], len(levels)
        if FAILS in new:
            return millrace.Failure("as the script says"), False
        if last and SILENT in levels:
            return None, False
        words = [self._word(number, level) for number, level in enumerate(levels) if level not in (0, FAILS, SILENT)]
        text = " ".join(word["word"] for word in words)
        stable = text if last else " ".join(word["word"] for word in words[:-1])
        return {"text": text, "stable": stable, "final": last, "words": words}, 0 in new and bool(words)

    def _levels(self, last):
        """The levels of the whole blocks, and at the end of the segment that of half a block or more."""
        blocks = (len(self._frames) + (self._block // 2 if last else 0)) // self._block
        return [round(self._frames[at * self._block:][:self._block].mean() / LEVEL) for at in range(blocks)]

    def _word(self, number, level):
        word = json.dumps(self.options, separators=(",", ":")) if level == OPTIONS else f"w{level}"
        begin = self._begin / self._rate + number / 4
        return {"word": word.upper() if self._shout else word, "start": begin, "end": begin + 0.25, "confidence": 0.5}


def serve(worker, endpoints, shout):
    streams = [Stream(int(worker.rate), shout) for _ in range(worker.slots)]

    def answer(batch):
        for opened in batch.opened:
            streams[opened.slot].options = dict(opened.options)
        for message in batch.messages:
            row = next(row for row in [*batch.framed, *batch.marks] if (row.stream, row.seq) == (message.stream, message.seq))
            if message.set:
                streams[row.slot].options.update(message.data)
        framed = [streams[row.slot].take(row, batch.data[at, row.left:row.left + row.size, 0])
                  for at, row in enumerate(batch.framed)]
        marks = [streams[row.slot].take(row, np.empty(0))[0] for row in batch.marks]
        batch.done([result for result, _ in framed], marks, endpoint=[ends for _, ends in framed] if endpoints else None)

    worker.run(answer)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--url", required=True)
    options.add_argument("--pipeline", default="default")
    options.add_argument("--endpoints", action="store_true", help="end a segment at 250 ms of silence after a word")
    options.add_argument("--shout", action="store_true", help="answer in capitals")
    chosen = options.parse_args()
    with millrace.Worker(chosen.url, pipeline=chosen.pipeline) as worker:
        print("attached", flush=True)
        serve(worker, chosen.endpoints, chosen.shout)


if __name__ == "__main__":
    main()
