# SPDX-License-Identifier: Apache-2.0
"""Checks the promises of the service against the traces of clients and workers (traces.py).
The functions are pure. Each violation begins with the name of its promise:

  terms        the ids of a worker's batches ascend, within its credits and the shape of the pipeline
  opened       a worker gets the name and options of a stream once, with the first row of the stream
  options      these options have the changes that came with rows before
  post         a row carries the messages of its client that the contract gives it, each time it is handed over
  order        a worker gets the rows of a stream in order
  slot         a stream keeps its slot, and no other stream has this slot until the END row is done
  state        a row with frames follows the last row that the state of its slot has seen, or has RESET
  handed over  every row is handed over at least once, unless the client left before a worker had a row
  contract     the rows are those of tests/conformance, except for RESET(worker_lost)
  values       a row has the values that were sent at its position
  again        a row is handed over again only if its worker was lost, and never after it was answered
  reset        after a lost worker, each row up to the first with frames has RESET(worker_lost)
  failed row   a row fails only if two workers were lost over it, or one before its pending answer came
  ending       a stream ends as its client ended it, as an abort if the client is gone, or by an error
  results      the results come in order, each once, and none is missing
  answer       a result is the answer of a worker to this row
  message      the messages of workers come in order, each once, and are of a worker that had the row
  flushed      `flushed` comes directly after the result of its row
  totals       the totals of `closed` are right
  failed       a stream fails only if there was no room for as long as it may wait, or if two of its rows failed
"""
from stream_history import Handed, of_stream
from worker_wire import END, RESET


def violations(history):
    broken, handed = [], {stream.name: [] for stream in history.streams}
    for worker in history.workers:
        wrong = _of_worker(worker, history.rules[worker.pipeline], handed)
        broken += [f"{what} (worker {worker.name})" for what in wrong]
    for stream in history.streams:
        rows = sorted(handed[stream.name], key=lambda at: at.batch.id)
        broken += [f"{what} (stream {stream.name})" for what in of_stream(history, stream, rows)]
    return broken


def timeline(history, name):
    """Lines for a person: when the workers of a stream's pipeline left, and which rows of the stream they logged."""
    stream = next(stream for stream in history.streams if stream.name == name)
    yield f"{name}: opened {stream.opened}, over {stream.over}, close {stream.code}"
    for worker in history.workers:
        if worker.pipeline != stream.pipeline:
            continue
        yield f"{worker.name}: {worker.fate}, attached {worker.attached}, leaving {worker.leaving}, over {worker.over}"
        ids = set()
        for batch in [entry for kind, entry in worker.log if kind == "batch"]:
            ids |= {opened[0] for opened in batch.opened if opened[2] == name}
            for row in [row for row, _ in batch.rows if row.stream in ids]:
                yield f"  batch {batch.id}, closed {batch.closed}: row {row.seq}, size {row.size}"


def _of_worker(worker, rule, handed):
    """The violations in the trace of one worker. Adds its rows to `handed`."""
    names, seen, states, owners, held, last = {}, {}, {}, {}, [], 0
    for kind, entry in worker.log:
        if kind == "done":
            held = [batch for batch in held if batch.id != entry]
            continue
        held.append(entry)
        if entry.id <= last or len(held) > worker.credits:
            yield f"terms: batch {entry.id} after {last}, {len(held)} held"
        last = entry.id
        yield from _shape(entry, rule)
        for stream, _, name, _ in entry.opened:
            if stream in names or name not in handed:
                yield f"opened: {name} again, or unknown"
            names[stream] = name
        for row, crc in entry.rows:
            if row.stream not in names:
                yield f"opened: a row of stream {row.stream} before its name"
                continue
            handed.get(names[row.stream], []).append(Handed(worker, entry, row, crc))
            yield from _order(row, seen)
            yield from _slot(row, owners, held)
            yield from _state(row, states)


def _shape(batch, rule):
    framed = [row.stream for row, _ in batch.rows if row.size]
    marks = len(batch.rows) - len(framed)
    if len(framed) > rule.rows or marks > rule.slots or len(set(framed)) < len(framed):
        yield f"terms: batch {batch.id} has {len(framed)} rows with frames and {marks} without"
    if any(row.slot >= rule.slots for row, _ in batch.rows):
        yield f"terms: batch {batch.id} has a slot beyond the last one"


def _order(row, seen):
    before = seen.get(row.stream)
    if before is not None and (row.seq != before.seq + 1 or before.flags & END):
        yield f"order: row {row.seq} of stream {row.stream} after {before.seq}"
    if before is not None and row.slot != before.slot:
        yield f"slot: stream {row.stream} went from {before.slot} to {row.slot}"
    seen[row.stream] = row


def _slot(row, owners, held):
    stream, end = owners.get(row.slot, (row.stream, None))
    if stream != row.stream and (end is None or any(end is batch for batch in held)):
        yield f"slot: {row.slot} is shared by streams {stream} and {row.stream}"
    owners[row.slot] = row.stream, held[-1] if row.flags & END else None


def _state(row, states):
    """`states` has the stream and the number of the last row that the state of a slot has seen, or None if the slot has had
    only marker rows."""
    follows = states.get(row.slot) == (row.stream, row.seq - 1)
    if row.size and not row.flags & RESET and not follows:
        yield f"state: row {row.seq} of stream {row.stream} continues in slot {row.slot} without RESET"
    states[row.slot] = (row.stream, row.seq) if row.size or follows else None
