# SPDX-License-Identifier: Apache-2.0
"""Tests of the checker, history.py: a correct history has no violation, and each broken promise is reported by its
name."""
import json
import unittest

from history import timeline, violations
from stream_history import ending_of, row_crc
from traces import SECOND, Batch, History, Rule, Stream, Worker, contract
from worker_wire import REASONS, RESET, Row, names

SPEC = contract.Spec(size=100, left=20)
LOST = REASONS.index("worker_lost")


class Story:
    """One stream of six rows, the third without frames, each in its own batch. Worker a is lost
    after it got the first two and answered one. Worker b gets the rest."""


    SENT = ("frames", 300), ("flush", 7), ("reset", None), ("frames", 401), ("frames", 1)

    def __init__(self):
        self.stream = Stream("s", salt=5, options='{"salt":5}', opened=1 * SECOND, over=9 * SECOND,
                             sent=list(self.SENT))
        ending = ending_of(SPEC, self.stream.sent, "end")
        self.rows, self.posts = ending.rows, ending.messages
        self.a = Worker("a", attached=1 * SECOND, fate="lost", over=3 * SECOND)
        self.b = Worker("b", attached=2 * SECOND)
        self.history = History({"default": Rule(SPEC, slots=2, rows=2)}, [self.stream], [self.a, self.b])
        self.hand(self.a, 0, 1)
        self.hand(self.b, 1, 3, lost=True)
        for seq in range(2, len(self.rows)):
            self.hand(self.b, seq, 3 + seq)
        self.results = [self.result(self.a if seq == 0 else self.b, seq) for seq in range(len(self.rows))]
        self.results.insert(2, {"type": "flushed", "mark": 7})
        self.hand(self.a, 1, 2, answered=False)
        self.closed = {"type": "closed", "frames": 351, "chunks": 5}

    def row(self, seq, lost=False, **changed):
        expected = self.rows[seq]
        _, begin, left, size, right, flags, gap = expected.row
        reason = LOST if lost else REASONS.index(expected.reason)
        row = Row(11, seq, begin, gap, expected.mark, 1, left, size, right,
                  flags | RESET if lost else flags, reason)
        return row._replace(**changed), row_crc(SPEC, expected.row, 5) if size else None

    def hand(self, worker, seq, batch, lost=False, answered=True, **changed):
        """Hands a row over to a worker, in a batch that is closed in the second of its number."""
        opened = [] if worker.log else [[11, 1, "s", '{"salt":5}']]
        row = self.row(seq, lost, **changed)
        posts = [[11, seq, position, json.dumps(data), changes] for of, position, data, changes in self.posts if of == seq]
        worker.log.append(("batch", Batch(batch, batch * SECOND, opened, [row], posts)))
        if answered:
            worker.log.append(("done", batch))

    def batch(self, worker, seq):
        return next(entry for kind, entry in worker.log
                    if kind == "batch" and entry.rows[0][0].seq == seq)

    def change(self, worker, seq, **changed):
        batch = self.batch(worker, seq)
        row, crc = batch.rows[0]
        batch.rows[0] = row._replace(**changed), crc

    def remove(self, worker, seq):
        batch = self.batch(worker, seq)
        worker.log = [entry for entry in worker.log if entry not in (("batch", batch), ("done", batch.id))]

    def result(self, worker, seq):
        _, begin, _, size, _, _, _ = self.rows[seq].row
        batch = self.batch(worker, seq)
        row = batch.rows[0][0]
        return {"type": "result", "seq": seq, "begin": begin, "end": begin + size,
                "flags": names(row.flags),
                "data": [worker.name, batch.id, 11, seq]}

    def broken(self):
        """The names of the broken promises."""
        self.stream.got = [(100 * SECOND, message) for message in
                           [*self.results, *([self.closed] if self.closed else [])]]
        return sorted({what.split(":")[0] for what in violations(self.history)})

    def another(self, batch):
        """Adds a second stream, whose rows are in the slot of the first."""
        other = Stream("t", options="{}", opened=SECOND, over=9 * SECOND, sent=[("frames", 200)], how="left")
        self.history.streams.append(other)
        begin, end = (Row(12, seq, at, 0, -1, 1, 0, size, 0, flags, reason) for seq, at, size, flags, reason in
                      [(0, 0, 100, 7, 1), (1, 100, 0, 48, 0)])
        log = self.b.log
        log.append(("batch", Batch(batch, batch * SECOND, [[12, 1, "t", "{}"]],
                                   [(begin, row_crc(SPEC, [0, 0, 0, 100, 0, 7, 0], 0))])))
        log.append(("batch", Batch(batch + 1, batch * SECOND, [], [(end, None)])))


def swap(story):
    story.results[0], story.results[1] = story.results[1], story.results[0]


def extra_row(story):
    story.hand(story.b, 5, 20)
    story.b.log[-2][1].rows[0] = story.row(5)[0]._replace(seq=6), None


def other_values(story):
    batch = story.batch(story.b, 3)
    batch.rows[0] = batch.rows[0][0], 17


def state_without_reset(story):
    story.change(story.b, 1, flags=story.rows[1].row[5], reason=0)
    story.results[1]["flags"].remove("RESET")


def reset_not_due(story):
    story.change(story.b, 4, flags=RESET, reason=LOST)
    story.results[5]["flags"] = ["RESET"]


def slot_in_use(story):
    story.b.log.pop()
    story.b.credits = 3
    story.another(20)


def slot_shared(story):
    end = [story.b.log.pop() for _ in range(2)]
    story.b.credits = 3
    story.another(9)
    story.b.log += end


def more_than_credits(story):
    story.b.credits, story.b.log[1] = 1, ("done", 99)


def two_rows_of_a_stream(story):
    batch = story.batch(story.b, 3)
    story.remove(story.b, 4)
    batch.rows.append(story.row(4))
    story.results[5]["data"][1] = batch.id


def failed_too_early(story):
    del story.results[1]["data"]
    story.results[1]["error"] = "worker_failed"


def failed(story, seq):
    """A row fails: a second worker is lost over it, before it logs the batch."""
    story.history.workers.append(Worker("c", fate="lost", attached=SECOND, over=4 * SECOND))
    failed_result(story, seq)


def failed_result(story, seq):
    result = next(result for result in story.results if result.get("seq") == seq)
    result.pop("data")
    result["error"] = "worker_failed"


def failed_marker(story):
    failed(story, 2)
    story.remove(story.a, 1)
    story.a.over = 2 * SECOND


def left(story, over=None):
    """The client leaves after its first result. The result of the second row is unknown. With `over`, a further worker is
    lost then."""
    story.stream.how, story.closed = "left", None
    del story.results[1:], story.a.log[2:], story.b.log[:]
    for seq in range(2, 6):
        story.hand(story.b, seq, 3 + seq, lost=seq < 4)
    if over:
        story.history.workers.append(Worker("c", fate="lost", attached=SECOND, over=over * SECOND))


def left_unserved(story, attached, **of_worker):
    """The client leaves in second 8, before any result. Only worker b attaches, in second `attached`. It gets no row."""
    story.stream.how, story.stream.left, story.closed = "left", 8 * SECOND, None
    story.results, story.history.workers = [], [Worker("b", attached=attached * SECOND, **of_worker)]


def left_beside_a_loss(story):
    left_unserved(story, attached=2)
    story.history.workers.append(Worker("c", attached=SECOND, fate="lost", over=5 * SECOND))


def failed_with_room(story):
    story.closed = {"type": "error", "code": "no_worker"}
    story.stream.code = 1013
    story.remove(story.b, 5)
    story.results.pop()


def without_worker(story, seconds):
    stream, story.history.workers = story.stream, []
    stream.opened, stream.over, stream.code = 1 * SECOND, seconds * SECOND, 1013
    story.results, story.closed = [], {"type": "error", "code": "no_worker"}


def aborted(story):
    """The client aborts after its first message. Worker a got the ABORT row after the first row."""
    log = story.b.log
    story.stream.how, story.stream.code, story.closed = "abort", 1006, None
    story.rows = ending_of(SPEC, story.stream.sent[:1], "abort").rows
    story.history.workers.remove(story.b)
    del story.results[1:], log[:], story.a.log[2:]
    story.hand(story.a, 1, 2)


def aborted_by_losses(story, losses):
    """Worker b, which lives, has had the first row. Workers are lost over the next ones, which they do not log."""
    aborted(story)
    story.remove(story.a, 1)
    story.a.fate, story.a.over = "lived", None
    story.history.workers += [Worker(f"lost {over}", fate="lost", attached=SECOND, over=over * SECOND) for over in losses]


def aborted_without_abort(story, fate):
    aborted(story)
    story.remove(story.a, 1)
    if fate == "lived":
        story.a.fate, story.a.over = "lived", None


def ended_by_the_service(story):
    aborted(story)
    story.change(story.a, 1, flags=48, begin=100, size=50, left=20)
    batch = story.batch(story.a, 1)
    batch.rows[0] = batch.rows[0][0], row_crc(SPEC, [1, 100, 20, 50, 0, 48, 0], 5)
    story.history.stopping = 8 * SECOND


def aborted_within_a_message(story, rows):
    """The client aborts while its message waits for room. The ABORT row comes after the rows that are ready."""
    story.stream.sent = [("frames", 2 * 100 * rows + 77)]
    story.stream.how, story.stream.code, story.closed, story.results = "abort", 1006, None, []
    story.rows = ending_of(SPEC, [("frames", 2 * 100 * rows)], "abort").rows
    story.history.workers, story.a.log[:], story.b.log[:] = [story.b], [], []
    for seq in range(len(story.rows)):
        story.hand(story.b, seq, 3 + seq)


def failed_twice(story, losses=3):
    """Workers are lost over two rows, which are not logged again."""
    story.history.workers = [story.a, *(Worker(name, fate="lost", attached=SECOND, over=over * SECOND)
                                        for name, over in zip("cd"[:losses - 1], (4, 5)))]
    del story.a.log[2:], story.results[4:]
    for seq, index in (1, 1), (2, 3):
        del story.results[index]["data"]
        story.results[index]["error"] = "worker_failed"
    story.closed, story.stream.code = {"type": "error", "code": "worker_failed"}, 1011


def abort_after_a_row_that_no_worker_had(story):
    aborted(story)
    del story.a.log[:2]
    story.batch(story.a, 1).opened.append([11, 1, "s", '{"salt":5}'])


# How the story is changed, and the promises that it then breaks.
CASES = {
    "a correct history": (lambda s: None,),
    "a row that no worker had": (lambda s: s.remove(s.b, 4), "handed over", "order", "state", "answer"),
    "the last row that no worker had": (lambda s: s.remove(s.b, len(s.rows) - 1), "handed over", "answer"),
    "an extra row": (extra_row, "contract", "order"),
    "a row whose frames differ from the contract": (lambda s: s.change(s.b, 4, begin=101), "contract"),
    "a missing marker": (lambda s: s.change(s.a, 0, flags=RESET), "contract", "answer"),
    "a wrong reason": (lambda s: s.change(s.b, 2, reason=REASONS.index("gap")), "contract"),
    "wrong values": (other_values, "values"),
    "a state that continues after a loss": (state_without_reset, "state", "reset"),
    "a reset that was not due": (reset_not_due, "reset"),
    "a slot that changes": (lambda s: s.change(s.b, 4, slot=0), "slot", "state"),
    "a slot that is used again after its last row is done": (lambda s: s.another(20),),
    "a slot that is used again before its last row is done": (slot_in_use, "slot"),
    "a slot shared by two streams": (slot_shared, "slot", "state", "terms"),
    "more batches than credits": (more_than_credits, "terms"),
    "batches that do not ascend": (lambda s: setattr(s.batch(s.b, 4), "id", 4), "terms", "answer"),
    "two rows of a stream in a batch": (two_rows_of_a_stream, "terms"),
    "a row without a name": (lambda s: s.batch(s.a, 0).opened.clear(), "opened", "handed over", "answer"),
    "a row handed over again though no worker was lost": (lambda s: setattr(s.a, "fate", "left"), "again"),
    "a row answered twice": (lambda s: s.results.insert(1, s.results[0]), "results"),
    "results in another order": (swap, "results"),
    "a missing result": (lambda s: s.results.pop(), "results"),
    "an answer to another row": (lambda s: s.results[0].update(data=s.results[1]["data"]), "answer"),
    "an answer of an unknown worker": (lambda s: s.results[0].update(data=["c", 1, 11, 0]), "answer"),
    "a row that failed too early": (failed_too_early, "failed row"),
    "a row that failed after two losses": (lambda s: failed(s, 1),),
    "a row that failed because its worker was lost before its pending answer": (lambda s: (s.a.pending.add((11, 0)), failed_result(s, 0)),),
    "a row that failed though the worker of its pending answer lived": (lambda s: (s.b.pending.add((11, 4)), failed_result(s, 4)), "failed row"),
    "a failed row whose first worker had the next row too": (lambda s: (failed(s, 1), s.hand(s.a, 2, 3, answered=False)),),
    "a failed marker row whose first worker was lost before it logged the batch": (failed_marker,),
    "a row that no worker had again after one worker was lost over it": (left, "handed over"),
    "a row over which two workers were lost before they logged it": (lambda s: left(s, over=4),),
    "a row that no worker had again though the second loss was over another row": (lambda s: left(s, over=8), "handed over"),
    "a stream whose client left before there was a worker": (lambda s: left_unserved(s, attached=8),),
    "a stream whose client left after a worker had room for it": (lambda s: left_unserved(s, attached=7), "handed over"),
    "a stream whose client left after a worker was lost, with room at another": (left_beside_a_loss, "handed over"),
    "a stream whose client left before its worker was lost": (lambda s: left_unserved(s, attached=7, fate="lost", over=12 * SECOND),),
    "flushed at the wrong place": (lambda s: s.results.insert(4, s.results.pop(2)), "flushed"),
    "wrong totals": (lambda s: s.closed.update(frames=352), "totals"),
    "an end without closed": (lambda s: setattr(s, "closed", None), "ending", "failed"),
    "a stream that failed though there was room": (failed_with_room, "failed"),
    "a stream that failed because there was no worker": (lambda s: without_worker(s, 31),),
    "a stream that failed before its time was over": (lambda s: without_worker(s, 29), "failed"),
    "an aborted stream whose last messages were never read": (aborted,),
    "an aborted stream with an abort at an impossible position": (lambda s: (aborted(s), s.change(s.a, 1, begin=149)), "contract"),
    "an aborted stream whose last message waited for room": (lambda s: aborted_within_a_message(s, rows=8),),
    "an aborted stream with an abort within a message though there was room": (lambda s: aborted_within_a_message(s, rows=7), "contract"),
    "a stream that failed after two of its rows had failed": (failed_twice,),
    "a stream that failed after too few losses": (lambda s: failed_twice(s, losses=2), "failed"),
    "a stream that failed though one of its results was only too long": (
        lambda s: (failed_twice(s), s.results[3].update(error="too_long")), "failed"),
    "a stream that failed after one of its rows had failed": (lambda s: (failed_twice(s), s.results.pop()), "failed"),
    "an aborted stream with an abort within a message after a result": (
        lambda s: (aborted_within_a_message(s, rows=8), s.results.append(s.result(s.b, 0))), "contract"),
    "an aborted stream that ended after two of its rows had failed": (lambda s: aborted_by_losses(s, (3, 4, 5)),),
    "an aborted stream that ended after too few losses": (lambda s: aborted_by_losses(s, (3, 4)), "ending"),
    "an aborted stream without an abort at a worker that was lost": (lambda s: aborted_without_abort(s, "lost"),),
    "an aborted stream without an abort at its worker": (lambda s: aborted_without_abort(s, "lived"), "ending"),
    "a stream that the service ended after the frames that it had read": (ended_by_the_service,),
    "an abort after a row that no worker had": (abort_after_a_row_that_no_worker_had, "handed over", "answer"),
}


class Checker(unittest.TestCase):
    def test_each_broken_promise_is_reported_by_its_name(self):
        for name, (change, *promises) in CASES.items():
            with self.subTest(name):
                story = Story()
                change(story)
                self.assertEqual(story.broken(), sorted(promises))

    def test_a_row_handed_over_again_though_it_was_answered(self):
        story = Story()
        story.broken()
        story.stream.got[1] = SECOND, story.stream.got[1][1]
        self.assertIn("again: row 1 to b after it was answered (stream s)", violations(story.history))

    def test_the_timeline_of_a_stream_lists_the_workers_that_had_its_rows(self):
        lines = list(timeline(Story().history, "s"))
        lost = next(line for line in lines if line.startswith("a: lost"))
        self.assertEqual(lines[lines.index(lost) + 2], "  batch 2, closed 2000000000: row 1, size 50")


if __name__ == "__main__":
    unittest.main()
