# SPDX-License-Identifier: Apache-2.0
"""A worker with a state per stream, which is right, or has the fault that its argument names.

The answer to a row is the state after it: a number that depends on every sample of the body, and on all rows since the last RESET."""
import itertools
import json
import sys

import numpy as np

import millrace
from millrace import Flag

MOST = 1_000_003  # of a state


class Model:
    """The right worker. Each fault is a subclass."""

    def __init__(self, worker):
        self.worker = worker
        self.slots, self.context = worker.slots, worker.chunk["left"]
        self.state = np.zeros(worker.slots + 1, np.int64)  # a line per slot, and one for padding rows

    def bodies(self, batch):
        return batch.data[:, self.context:, 0]

    def sums(self, batch):
        """A number for each row. Padding rows have any values."""
        return (self.bodies(batch).astype(np.int64) ** 2).sum(axis=1) % MOST

    def places(self, batch):
        return batch.slot.astype(int)

    def reset(self, batch, places):
        self.state[places[batch.reset]] = 0

    def step(self, batch):
        places = self.places(batch)
        self.reset(batch, places)
        self.state[places] = (self.state[places] * 3 + self.sums(batch)) % MOST
        return self.state[places]

    def answers(self, batch):
        return self.step(batch)[:len(batch.framed)].tolist()

    def run(self, batch):
        return self.answers(batch) if batch.rows else None


class StateByRow(Model):
    def places(self, batch):
        return np.arange(batch.rows)


class ResetIgnored(Model):
    def reset(self, batch, places):
        pass


class ResetLate(Model):
    def step(self, batch):
        places = self.places(batch)
        answers = (self.state[places] * 3 + self.sums(batch)) % MOST
        self.state[places] = np.where(batch.reset, self.sums(batch), answers)
        return answers


class PaddingUpdates(Model):
    """Has no line for padding rows, which are written to the last slot."""

    def places(self, batch):
        return np.minimum(batch.slot, self.slots - 1)

    def step(self, batch):
        answers = super().step(batch)
        for row in range(len(batch.framed), batch.rows):
            self.state[self.places(batch)[row]] += 1
        return answers


class NotClearedAfterEnd(Model):
    """Takes the state of a slot for fresh when a stream begins."""

    def reset(self, batch, places):
        self.state[places[batch.reset & ((batch.flags & int(Flag.START)) == 0)]] = 0


class BatchNorm(Model):
    def sums(self, batch):
        sums = super().sums(batch)
        return sums - int(sums[:len(batch.framed)].mean())


class LastRowLost(Model):
    """Takes the rows in pairs, and a row that is alone as it is."""

    def answers(self, batch):
        answers = super().answers(batch)
        if len(answers) > 1 and len(answers) % 2:
            answers[-1] = None
        return answers


class SharedState(Model):
    """Each stream begins with a fresh state, which the others then change."""

    def step(self, batch):
        answers = []
        for total, reset in zip(self.sums(batch)[:len(batch.framed)], batch.reset):
            self.state[0] = ((0 if reset else self.state[0]) * 3 + total) % MOST
            answers.append(int(self.state[0]))
        return np.array(answers)


class NeverReset(SharedState):
    def step(self, batch):
        self.state[0] = (self.state[0] * 3 + int(self.sums(batch).sum())) % MOST
        return np.full(batch.rows, self.state[0])


class WrongOrder(Model):
    """The answers are in the order of the slots."""

    def answers(self, batch):
        answers = super().answers(batch)
        return [answers[row] for row in np.argsort(batch.slot[:len(answers)])]


class LeftContextAsBody(Model):
    """Takes the left context of the first row for that of all rows, and reads it with the body."""

    def bodies(self, batch):
        return batch.data[:, self.context - int(batch.left[0]):, 0]


class Float(Model):
    """A right model whose numbers depend a little on the batch."""

    def answers(self, batch):
        return [answer + 0.0001 * batch.rows for answer in super().answers(batch)]


class Fails(Model):
    def answers(self, batch):
        raise ValueError("no model")


class FailsOnce(Model):
    """Has an error for one row, also when its stream is alone."""

    def answers(self, batch):
        return [RuntimeError("too short") if row.flags & int(Flag.LAST) else answer
                for row, answer in zip(batch.framed, super().answers(batch))]


class Constant(Model):
    def answers(self, batch):
        return ["hello"] * len(batch.framed)


class FullBatchLosesLast(Model):
    """Loses the last row of a full batch alone."""

    def answers(self, batch):
        answers = super().answers(batch)
        if len(answers) == 8:
            answers[-1] = None
        return answers


class Silent(Model):
    def answers(self, batch):
        return None


class Dies(Model):
    def answers(self, batch):
        print("the last words", file=sys.stderr, flush=True)
        sys.exit(7)


class Talks(Model):
    def answers(self, batch):
        print("words " * 20_000)
        return super().answers(batch)


class Listens(Model):
    """A right worker whose answers contain the options of the stream, and the messages of its client."""

    def __init__(self, worker):
        super().__init__(worker)
        self.options, self.heard = {}, {}  # by stream

    def open(self, opened):
        self.options[opened.stream], self.heard[opened.stream] = opened.options, ""

    def change(self, message):
        self.options[message.stream] = {**self.options[message.stream], **message.data}

    def hear(self, message):
        self.heard[message.stream] += json.dumps(message.data)

    def listen(self, batch, rows):
        """Reads the messages that belong before these rows."""
        rows = {(row.stream, row.seq) for row in rows}
        for message in batch.messages:
            if (message.stream, message.seq) in rows:
                (self.change if message.set else self.hear)(message)

    def options_of(self, batch):
        return [self.options[row.stream] for row in batch.framed]

    def answers(self, batch):
        heard = [self.heard[row.stream] for row in batch.framed]
        options = [sorted(each.items()) for each in self.options_of(batch)]
        return [list(all) for all in zip(super().answers(batch), options, heard)]

    def run(self, batch):
        for opened in batch.opened:
            self.open(opened)
        self.listen(batch, batch.framed)
        answers = super().run(batch)
        self.listen(batch, batch.marks)
        return answers


class GlobalMessages(Listens):
    """Takes a message for one of all streams."""

    def hear(self, message):
        self.heard = dict.fromkeys(self.heard, json.dumps(message.data))


class GlobalOptions(Listens):
    def change(self, message):
        self.options = {stream: {**options, **message.data} for stream, options in self.options.items()}


class OptionsByRow(Listens):
    """Keeps the options of a stream in the line of its row, and not of its slot."""

    def __init__(self, worker):
        super().__init__(worker)
        self.lines, self.written = [{}] * worker.rows, {}

    def options_of(self, batch):
        for line, row in enumerate(batch.framed):
            options = self.options[row.stream]
            if options is not self.written.get(row.stream):
                self.lines[line] = self.written[row.stream] = options
        return self.lines[:len(batch.framed)]


class OptionsOfStart(Listens):
    """Takes a stream that another worker had for one without options."""

    def run(self, batch):
        self.started = {row.stream for row in [*batch.framed, *batch.marks] if row.flags & int(Flag.START)}
        return super().run(batch)

    def open(self, opened):
        super().open(opened)
        if opened.stream not in self.started:
            self.options[opened.stream] = {}


class SetReplaces(Listens):
    def change(self, message):
        self.options[message.stream] = message.data


class HearsTooEarly(Listens):
    """Reads all messages of a batch before its rows, also those of marker rows."""

    def run(self, batch):
        for opened in batch.opened:
            self.open(opened)
        self.listen(batch, [*batch.framed, *batch.marks])
        return Model.run(self, batch)


class Speaks(Model):
    """A right worker that sends its client messages."""

    def answers(self, batch):
        answers = super().answers(batch)
        for row, answer in zip(batch.framed, answers):
            for word in "a", "b":
                self.worker.send(self.to(batch, row), {word: self.said(answer)})
        return answers

    def to(self, batch, row):
        return row.stream

    def said(self, answer):
        return answer


class SpeaksToFirstRow(Speaks):
    def to(self, batch, row):
        return batch.framed[0].stream


class SpeaksOfTime(Speaks):
    """Says something else each time."""

    said_before = itertools.count()

    def said(self, answer):
        return next(self.said_before)


class AnswersWithNext(Model):
    """A right worker that answers a row when it has the next one of its stream."""

    def __init__(self, worker):
        super().__init__(worker)
        self.waits = {}  # by stream

    def run(self, batch):
        answers = [*(super().run(batch) or []), *(["marker"] * len(batch.marks))]
        now, late = [], []
        for row, answer in zip([*batch.framed, *batch.marks], answers):
            if row.stream in self.waits:
                late.append(self.waits.pop(row.stream))
            if not row.flags & int(Flag.END):
                self.waits[row.stream] = (row, answer)
                answer = millrace.pending
            now.append(answer)
        batch.done(now[:len(batch.framed)], now[len(batch.framed):])
        for row, answer in late:
            self.worker.answer(row, answer)


def main():
    with millrace.Worker(pipeline=sys.argv[2] if len(sys.argv) > 2 else "default", reattach=False) as worker:
        model = globals()[sys.argv[1]](worker)
        worker.run(model.run)


if __name__ == "__main__":
    main()
