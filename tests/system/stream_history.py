# SPDX-License-Identifier: Apache-2.0
"""Checks the promises about one stream. history.py lists them."""
import dataclasses
import zlib

import message_history
from traces import SECOND, Batch, Worker, contract, salted
from worker_wire import ABORT, REASONS, RESET, Row, names

# The time until the service notices the loss of a client with unread messages: a ping, and its close.
HANG_UP = 16 * SECOND
ANSWER_DUE = 12 * SECOND  # until a worker that does not answer is evicted
MAX_READY_ROWS = 8  # of a stream, in no batch


@dataclasses.dataclass
class Handed:
    """A row in a batch of a worker."""
    worker: Worker
    batch: Batch
    row: Row
    crc: int

    def lost(self):
        return REASONS[self.row.reason] == "worker_lost"


@dataclasses.dataclass
class Expected:
    """A row as the contract has it, with the reason of its RESET and the mark of its flush."""
    row: list
    reason: str
    mark: int = -1

    @property
    def size(self):
        return self.row[3]


@dataclasses.dataclass
class Ending:
    """A possible course of a stream: its rows, whether all of them had to be handed over, the number of frames that were
    read, and the messages of the client: [number of the row, position, data, whether it changes options]."""
    rows: list
    whole: bool
    frames: int
    messages: list


def ending_of(spec, sent, last=None, whole=True):
    """`last`: "end", "abort", or None while the stream is open."""
    chunker, received, reason, rows = contract.Chunker(spec), 0, "start", []
    for kind, n in [*sent, *([(last, 0)] if last else [])]:
        if kind == "frames":  # n bytes; a frame may straddle messages
            before, received = received // 2, received + n
            chunker.event(kind, received // 2 - before)
        else:
            chunker.event(kind, n if kind == "gap" else 0)
        rows += [Expected(row, reason if row[5] & RESET else None) for row in chunker.rows[len(rows):]]
        if kind == "flush" and n is not None:
            rows[-1].mark = n
        reason = {"reset": "client", "gap": "gap"}.get(kind, reason)
    messages = [[row, position, data, kind == "set"] for (position, row), (kind, data) in
                zip(chunker.messages, [(kind, data) for kind, data in sent if kind in ("message", "set")])]
    return Ending(rows, whole, received // 2, messages)


def _endings(history, stream, handed):
    """All possible endings. If the service did not have to read the whole stream, its last messages may be unread."""
    spec, everything = history.rules[stream.pipeline].spec, len(stream.sent)
    agreed = stream.how == "end" or (stream.how == "left" and stream.code == 1000)
    noticed = stream.over + (0 if agreed else HANG_UP)
    drained = history.stopping is not None and noticed >= history.stopping
    read_all = agreed and not drained
    read = [everything] if read_all else range(everything, -1, -1)
    if drained or stream.messages("closed") or stream.how == "left":
        for count in read:
            yield ending_of(spec, stream.sent[:count], "end")
    if stream.messages("closed"):
        return
    abort = next((at.row for at in handed if at.row.flags & ABORT), None)
    if abort and not read_all:
        for count in read:
            yield ending_of(spec, stream.sent[:count], "abort")
        # The rest of a message may have waited for room, after an event that gave several rows.
        shortest = min(spec.step or spec.size, spec.first or spec.size)
        most = MAX_READY_ROWS + (contract.row_width(spec) - spec.left) // shortest + 1
        if MAX_READY_ROWS <= abort.seq <= most and not stream.messages("result"):
            yield ending_of(spec, _until(stream.sent, abort.begin), "abort")
    # The stream ended while no worker had a row of it, or all workers that had one were gone.
    unseen = all(at.worker.fate != "lived" and (at.worker.leaving or at.worker.over) <= stream.over + HANG_UP
                 for at in handed)
    if (unseen and not read_all) or stream.messages("error") or short_of_room(history, stream, handed) or \
            _may_have_ended_at_once(history, stream, handed) or \
            (not stream.messages("closed") and _may_have_failed_twice(history, stream, handed)):
        yield ending_of(spec, stream.sent, whole=False)
        if stream.how != "abort":
            yield ending_of(spec, stream.sent, "end", whole=False)


def _until(sent, position):
    """The messages up to a position, of which the last one may be cut."""
    kept, rest = [], 2 * position
    for kind, n in sent:
        size = {"frames": n, "gap": 2 * (n or 0)}.get(kind, 0)
        if kind == "frames" and size >= rest:
            return [*kept, (kind, rest)]
        kept.append((kind, n))
        rest -= size
    return kept


def of_stream(history, stream, handed):
    """The violations of a stream, for the ending that fits best."""
    complaints = None
    for ending in _endings(history, stream, handed):
        wrong = [*_rows(history, stream, ending, handed), *_results(stream, ending, handed),
                 *message_history.from_the_client(stream, ending, handed)]
        if complaints is None or len(wrong) < len(complaints):
            complaints = wrong
        if not wrong:
            break
    yield from ["ending: none is possible"] if complaints is None else complaints
    yield from message_history.from_workers(stream, handed)
    yield from _failures(history, stream, handed)
    yield from _again(stream, handed)
    yield from _resets(history, stream, handed)
    for result in stream.messages("result"):
        if "error" in result and not _may_have_failed(history, stream, handed, result["seq"]):
            yield f"failed row: {result['seq']}, though no two workers were lost over it"


# --- Rows at the workers


def _rows(history, stream, ending, handed):
    seqs = {at.row.seq for at in handed}
    for seq in range(len(ending.rows) if ending.whole else max(seqs, default=-1) + 1):
        if seq not in seqs and not _may_have_failed(history, stream, handed, seq):
            yield f"handed over: row {seq} was not"
    for at in handed:
        if at.row.seq < len(ending.rows):
            yield from _row(history.rules[stream.pipeline].spec, stream, ending.rows[at.row.seq], at)
        else:
            yield f"contract: row {at.row.seq} is one too many"


def _row(spec, stream, expected, at):
    row, (seq, begin, left, size, right, flags, gap) = at.row, expected.row
    if (row.begin, row.left, row.size, row.right, row.gap, row.mark) != \
            (begin, left, size, right, gap, expected.mark):
        yield f"contract: {row}, not {expected}"
    elif row.flags != (flags | RESET if at.lost() else flags):
        yield f"contract: row {seq} has flags {row.flags}, not {flags}"
    elif not at.lost() and REASONS[row.reason] != expected.reason:
        yield f"contract: row {seq} has reason {REASONS[row.reason]}, not {expected.reason}"
    elif size and at.crc != row_crc(spec, expected.row, stream.salt):
        yield f"values: those of row {seq} are not what was sent"


def row_crc(spec, row, salt):
    """The checksum of a row's values in the tensor, in which bodies are aligned and all other columns are 0."""
    _, begin, left, size, right, _, _ = row
    window = salted(salt, begin - left, left + size + right).tobytes()
    return zlib.crc32((bytes(2 * (spec.left - left)) + window).ljust(2 * contract.row_width(spec), b"\0"))


def _again(stream, handed):
    answered = {message["seq"]: at for at, message in stream.got if message["type"] == "result"}
    last = {}
    for at in handed:
        seq, to = at.row.seq, at.worker.name
        if seq in last and last[seq].fate != "lost":
            yield f"again: row {seq} to {to}, though {last[seq].name} was not lost"
        if at.batch.closed > answered.get(seq, at.batch.closed):
            yield f"again: row {seq} to {to} after it was answered"
        last[seq] = at.worker


def _resets(history, stream, handed):
    first, framed = {}, set()
    for at in handed:
        seq, worker = at.row.seq, at.worker.name
        first.setdefault(worker, bool(first))  # whether another had begun
        due = first[worker] and worker not in framed
        if due and not at.lost():
            yield f"reset: row {seq} has no RESET(worker_lost), though another worker had begun"
        if at.lost() and (worker in framed or not (due or _gone(history, stream, at.batch.closed))):
            yield f"reset: row {seq} has a RESET(worker_lost) too many"
        if at.row.size:
            framed.add(worker)


def _may_have_failed(history, stream, handed, seq):
    """Whether a row may have failed: two workers may have been lost while it was the next to be done, or its worker was lost
    before its pending answer came. Its result, if there is one, decides."""
    results = {result["seq"]: result for result in stream.messages("result")}
    if seq in results and "error" not in results[seq] or stream.messages("closed") and seq not in results:
        return False
    if any(at.worker.fate == "lost" and (at.row.stream, seq) in at.worker.pending for at in handed if at.row.seq == seq):
        return True
    since, until = _handed_after(stream, handed, seq), _done_before(history, stream, handed, seq)
    return sum(worker.fate == "lost" and worker.over >= since for worker in _gone(history, stream, until)) >= 2


def _handed_after(stream, handed, seq):
    """A time before any worker got the row. A worker may be lost before it logs a batch. In that batch, a marker row may
    follow a row with frames: only the rows before both were certainly logged."""
    framed = max((at.row.seq for at in handed if at.row.size and at.row.seq < seq), default=0)
    return min((at.batch.closed for at in handed if at.row.seq == framed - 1), default=stream.opened)


def _done_before(history, stream, handed, seq):
    """A time at which the row was finished: a worker without this row got a later one. A worker that has both may get the
    later one before this row is done."""
    had = {at.worker.name for at in handed if at.row.seq == seq}
    return min((at.batch.closed for at in handed if at.row.seq > seq and at.worker.name not in had),
               default=_released(history, stream, handed))


def _released(history, stream, handed):
    """A time at which the service has nothing left of the stream: the time at which its client got the end; without an end,
    after the time limits of the last worker and of the wait for another one."""
    if stream.messages("closed") or stream.messages("error"):
        return stream.over
    last = max((at.batch.closed for at in handed), default=stream.over)
    return max(last, stream.over) + ANSWER_DUE + int(history.rules[stream.pipeline].worker_wait * SECOND)


def _gone(history, stream, until):
    """The workers of the stream's pipeline that may have gone while it was open, until this time."""
    return [worker for worker in history.workers
            if worker.pipeline == stream.pipeline and worker.fate != "lived" and
            stream.opened <= worker.over and (worker.leaving or worker.over) <= until]


# --- Results at the client


def _results(stream, ending, handed):
    results, closed = stream.messages("result"), stream.messages("closed")
    seqs = [result["seq"] for result in results]
    if seqs != list(range(len(seqs))) or len(seqs) > len(ending.rows):
        yield f"results: {seqs}"
        return
    if closed and len(seqs) < len(ending.rows):
        yield f"results: {len(seqs)}, not {len(ending.rows)}"
    where = {(at.worker.name, at.batch.id, at.row.stream, at.row.seq): at for at in handed}
    for result, expected in zip(results, ending.rows):
        yield from _answer(result, expected, where)
    yield from _flushed(stream, ending.rows[:len(seqs)])
    totals = {"type": "closed", "frames": ending.frames,
              "chunks": sum(expected.size > 0 for expected in ending.rows)}
    if closed not in ([], [totals]):
        yield f"totals: {closed}, not {totals}"


def _answer(result, expected, where):
    seq, begin, _, size, _, _, _ = expected.row
    if (result["begin"], result["end"]) != (begin, begin + size):
        yield f"answer: result {seq} is for {result['begin']} to {result['end']}"
    if "error" in result:
        return
    worker, batch, stream, of_row = result["data"]
    at = where.get((worker, batch, stream, of_row))
    if at is None or of_row != seq:
        yield f"answer: result {seq} is the answer of {worker} to row {of_row} in batch {batch}"
    elif result["flags"] != names(at.row.flags):
        yield f"answer: result {seq} has flags {result['flags']}, its row {at.row.flags}"


def _flushed(stream, rows):
    due = [entry for expected in rows for entry in
           [("result", expected.row[0])] + [("flushed", expected.mark)] * (expected.mark >= 0)]
    got = [(message["type"], message.get("seq", message.get("mark")))
           for _, message in stream.got if message["type"] in ("result", "flushed")]
    closed = stream.messages("closed")
    if got != due and (closed or got != due[:-1]):
        yield f"flushed: {got}, not {due}"


def _failures(history, stream, handed):
    errors, results = stream.messages("error"), stream.messages("result")
    for error in errors:
        how = error["code"], stream.code
        two_rows = [result.get("error") for result in results].count("worker_failed") == 2 and "error" in results[-1]
        if not (how == ("no_worker", 1013) and short_of_room(history, stream, handed) or
                how == ("worker_failed", 1011) and two_rows and _may_have_failed_twice(history, stream, handed)):
            yield f"failed: {error}, close {stream.code}"
    for rejected in stream.messages("rejected"):
        yield f"failed: {rejected}"
    if stream.how == "end" and not errors and not stream.messages("closed"):
        yield f"failed: it was not closed, but by {stream.code}"


def short_of_room(history, stream, handed):
    """Whether there were fewer slots than streams for as long as a stream may wait, while this one was open."""
    wait = int(history.rules[stream.pipeline].worker_wait * SECOND)
    return any(end - begin >= wait - SECOND for begin, end in _shortages(history, stream, handed))


def _may_have_failed_twice(history, stream, handed):
    """Whether workers may have been lost over two rows of the stream, which ends it. Three losses are enough: the first one may
    have been over both rows, and after it each row is handed over alone."""
    last = max((at.row.seq for at in handed), default=-1)
    failed = [seq for seq in range(last + 3) if _may_have_failed(history, stream, handed, seq)]
    if len(failed) < 2:
        return False
    since = _handed_after(stream, handed, failed[0])
    gone = _gone(history, stream, _released(history, stream, handed))
    return sum(worker.fate == "lost" and worker.over >= since for worker in gone) >= 3


def _may_have_ended_at_once(history, stream, handed):
    """Whether the stream may have had no slot after its client had closed it with 1000, and before a worker had a row of it. It
    has none while no worker has room, and after its worker was lost."""
    return stream.how == "left" and stream.left > 0 and not handed and (
        any(begin <= stream.over and stream.left <= end for begin, end in _shortages(history, stream, handed)) or
        any(worker.fate == "lost" and worker.attached <= stream.over and worker.over >= stream.left
            for worker in _gone(history, stream, _released(history, stream, handed))))


def _shortages(history, stream, handed):
    """The times (begin, end) at which there may have been fewer slots than streams, while this one was open."""
    rule, edges = history.rules[stream.pipeline], []
    wait, over = int(rule.worker_wait * SECOND), _released(history, stream, handed)
    for worker in history.workers:
        if worker.pipeline == stream.pipeline:
            ends = [at for at in (worker.leaving, worker.over) if at is not None]
            edges += [(worker.attached, -rule.slots), (min(ends, default=over), rule.slots)]
    for other in history.streams:
        if other.pipeline == stream.pipeline:
            edges += [(other.opened, 1), (other.over + ANSWER_DUE + wait, -1)]
    lacking, since = 0, None
    for when, change in [*sorted(edges), (over, 0)]:
        when = min(max(when, stream.opened), over)
        if since is not None:
            yield since, when
        lacking += change
        since = (when if since is None else since) if lacking > 0 else None
