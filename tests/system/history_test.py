# SPDX-License-Identifier: Apache-2.0
"""Tests of the checker, history.py: a correct history has no violation, and each broken promise is reported by its
name."""
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

    def __init__(self):
        self.stream = Stream("s", salt=5, options='{"salt":5}', opened=1 * SECOND, over=9 * SECOND,
                             sent=[("frames", 300), ("flush", 7), ("reset", None), ("frames", 401), ("frames", 1)])
        self.rows = ending_of(SPEC, self.stream.sent, "end").rows
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
        worker.log.append(("batch", Batch(batch, batch * SECOND, opened, [row])))
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


class Checker(unittest.TestCase):
    def setUp(self):
        self.story = Story()

    def check(self, *promises):
        self.assertEqual(self.story.broken(), sorted(promises))

    def test_a_correct_history_has_no_violation(self):
        self.check()

    def test_a_row_that_no_worker_had(self):
        self.story.remove(self.story.b, 4)
        self.check("handed over", "order", "state", "answer")

    def test_the_last_row_that_no_worker_had(self):
        last = len(self.story.rows) - 1
        self.story.remove(self.story.b, last)
        self.check("handed over", "answer")

    def test_an_extra_row(self):
        self.story.hand(self.story.b, 5, 20)
        self.story.b.log[-2][1].rows[0] = self.story.row(5)[0]._replace(seq=6), None
        self.check("contract", "order")

    def test_a_row_whose_frames_differ_from_the_contract(self):
        self.story.change(self.story.b, 4, begin=101)
        self.check("contract")

    def test_a_missing_marker(self):
        self.story.change(self.story.a, 0, flags=RESET)
        self.check("contract", "answer")

    def test_a_wrong_reason(self):
        self.story.change(self.story.b, 2, reason=REASONS.index("gap"))
        self.check("contract")

    def test_wrong_values(self):
        batch = self.story.batch(self.story.b, 3)
        batch.rows[0] = batch.rows[0][0], 17
        self.check("values")

    def test_a_state_that_continues_after_a_loss(self):
        self.story.change(self.story.b, 1, flags=self.story.rows[1].row[5], reason=0)
        self.story.results[1]["flags"].remove("RESET")
        self.check("state", "reset")

    def test_a_reset_that_was_not_due(self):
        self.story.change(self.story.b, 4, flags=RESET, reason=LOST)
        self.story.results[5]["flags"] = ["RESET"]
        self.check("reset")

    def test_a_slot_that_changes(self):
        self.story.change(self.story.b, 4, slot=0)
        self.check("slot", "state")

    def another(self, batch):
        """Adds a second stream, whose rows are in the slot of the first."""
        other = Stream("t", options="{}", opened=SECOND, over=9 * SECOND, sent=[("frames", 200)], how="left")
        self.story.history.streams.append(other)
        begin, end = (Row(12, seq, at, 0, -1, 1, 0, size, 0, flags, reason) for seq, at, size, flags, reason in
                      [(0, 0, 100, 7, 1), (1, 100, 0, 48, 0)])
        log = self.story.b.log
        log.append(("batch", Batch(batch, batch * SECOND, [[12, 1, "t", "{}"]],
                                   [(begin, row_crc(SPEC, [0, 0, 0, 100, 0, 7, 0], 0))])))
        log.append(("batch", Batch(batch + 1, batch * SECOND, [], [(end, None)])))

    def test_a_slot_that_is_used_again_after_its_last_row_is_done(self):
        self.another(20)
        self.check()

    def test_a_slot_that_is_used_again_before_its_last_row_is_done(self):
        self.story.b.log.pop()
        self.story.b.credits = 3
        self.another(20)
        self.check("slot")

    def test_a_slot_shared_by_two_streams(self):
        end = [self.story.b.log.pop() for _ in range(2)]
        self.story.b.credits = 3
        self.another(9)
        self.story.b.log += end
        self.check("slot", "state", "terms")

    def test_more_batches_than_credits(self):
        self.story.b.credits, self.story.b.log[1] = 1, ("done", 99)
        self.check("terms")

    def test_batches_that_do_not_ascend(self):
        self.story.batch(self.story.b, 4).id = 4
        self.check("terms", "answer")

    def test_two_rows_of_a_stream_in_a_batch(self):
        batch = self.story.batch(self.story.b, 3)
        self.story.remove(self.story.b, 4)
        batch.rows.append(self.story.row(4))
        self.story.results[5]["data"][1] = batch.id
        self.check("terms")

    def test_wrong_options(self):
        self.story.batch(self.story.b, 1).opened[0][3] = ""
        self.check("opened")

    def test_a_row_without_a_name(self):
        self.story.batch(self.story.a, 0).opened.clear()
        self.check("opened", "handed over", "answer")

    def test_a_row_handed_over_again_though_no_worker_was_lost(self):
        self.story.a.fate = "left"
        self.check("again")

    def test_a_row_handed_over_again_though_it_was_answered(self):
        self.story.broken()
        self.story.stream.got[1] = SECOND, self.story.stream.got[1][1]
        self.assertIn("again: row 1 to b after it was answered (stream s)", violations(self.story.history))

    def test_a_row_answered_twice(self):
        self.story.results.insert(1, self.story.results[0])
        self.check("results")

    def test_results_in_another_order(self):
        self.story.results[0], self.story.results[1] = self.story.results[1], self.story.results[0]
        self.check("results")

    def test_a_missing_result(self):
        self.story.results.pop()
        self.check("results")

    def test_an_answer_to_another_row(self):
        self.story.results[0]["data"] = self.story.results[1]["data"]
        self.check("answer")

    def test_an_answer_of_an_unknown_worker(self):
        self.story.results[0]["data"] = ["c", 1, 11, 0]
        self.check("answer")

    def test_a_row_that_failed_too_early(self):
        del self.story.results[1]["data"]
        self.story.results[1]["error"] = "worker_failed"
        self.check("failed row")

    def fail_row(self, seq):
        """Makes a row fail: a second worker is lost over it, before it logs the batch."""
        self.story.history.workers.append(Worker("c", fate="lost", attached=SECOND, over=4 * SECOND))
        result = next(result for result in self.story.results if result.get("seq") == seq)
        result.pop("data")
        result["error"] = "worker_failed"

    def test_a_row_that_failed_after_two_losses(self):
        self.fail_row(1)
        self.check()

    def test_a_failed_row_whose_first_worker_had_the_next_row_too(self):
        self.fail_row(1)
        self.story.hand(self.story.a, 2, 3, answered=False)
        self.check()

    def test_a_failed_marker_row_whose_first_worker_was_lost_before_it_logged_the_batch(self):
        self.fail_row(2)
        self.story.remove(self.story.a, 1)
        self.story.a.over = 2 * SECOND
        self.check()

    def left(self):
        """Makes the client leave after its first result. The result of the second row is unknown."""
        story = self.story
        story.stream.how, story.closed = "left", None
        del story.results[1:], story.a.log[2:], story.b.log[:]
        for seq in range(2, 6):
            story.hand(story.b, seq, 3 + seq, lost=seq < 4)

    def test_a_row_that_no_worker_had_again_after_one_worker_was_lost_over_it(self):
        self.left()
        self.check("handed over")

    def test_a_row_over_which_two_workers_were_lost_before_they_logged_it(self):
        self.left()
        self.story.history.workers.append(Worker("c", fate="lost", attached=SECOND, over=4 * SECOND))
        self.check()

    def test_a_row_that_no_worker_had_again_though_the_second_loss_was_over_another_row(self):
        self.left()
        self.story.history.workers.append(Worker("c", fate="lost", attached=SECOND, over=8 * SECOND))
        self.check("handed over")

    def test_flushed_at_the_wrong_place(self):
        self.story.results.insert(4, self.story.results.pop(2))
        self.check("flushed")

    def test_wrong_totals(self):
        self.story.closed["frames"] += 1
        self.check("totals")

    def test_an_end_without_closed(self):
        self.story.closed = None
        self.check("ending", "failed")

    def test_a_stream_that_failed_though_there_was_room(self):
        self.story.closed = {"type": "error", "code": "no_worker"}
        self.story.stream.code = 1013
        self.story.remove(self.story.b, 5)
        self.story.results.pop()
        self.check("failed")

    def test_a_stream_that_failed_because_there_was_no_worker(self):
        stream, self.story.history.workers = self.story.stream, []
        stream.opened, stream.over, stream.code = 1 * SECOND, 31 * SECOND, 1013
        self.story.results, self.story.closed = [], {"type": "error", "code": "no_worker"}
        self.check()
        stream.over -= 2 * SECOND
        self.check("failed")

    def aborted(self, row):
        """Makes the client abort after its first message. Worker a got `row` after the first row."""
        story, log = self.story, self.story.b.log
        story.stream.how, story.stream.code, story.closed = "abort", 1006, None
        story.rows = ending_of(SPEC, story.stream.sent[:1], "abort").rows
        story.history.workers.remove(story.b)
        del story.results[1:], log[:], story.a.log[2:]
        story.hand(story.a, row, 2)

    def test_an_aborted_stream_whose_last_messages_were_never_read(self):
        self.aborted(1)
        self.check()

    def test_an_aborted_stream_with_an_abort_at_an_impossible_position(self):
        self.aborted(1)
        self.story.change(self.story.a, 1, begin=149)
        self.check("contract")

    def test_an_aborted_stream_without_an_abort_at_its_worker(self):
        self.aborted(1)
        self.story.remove(self.story.a, 1)
        self.check()
        self.story.a.fate, self.story.a.over = "lived", None
        self.check("ending")

    def test_a_stream_that_the_service_ended_after_the_frames_that_it_had_read(self):
        self.aborted(1)
        self.story.change(self.story.a, 1, flags=48, begin=100, size=50, left=20)
        batch = self.story.batch(self.story.a, 1)
        batch.rows[0] = batch.rows[0][0], row_crc(SPEC, [1, 100, 20, 50, 0, 48, 0], 5)
        self.story.history.stopping = 8 * SECOND
        self.check()

    def test_an_abort_after_a_row_that_no_worker_had(self):
        self.aborted(1)
        del self.story.a.log[:2]
        self.story.batch(self.story.a, 1).opened.append([11, 1, "s", '{"salt":5}'])
        self.check("handed over", "answer")

    def test_the_timeline_of_a_stream_lists_the_workers_that_had_its_rows(self):
        lines = list(timeline(self.story.history, "s"))
        lost = next(line for line in lines if line.startswith("a: lost"))
        self.assertEqual(lines[lines.index(lost) + 2], "  batch 2, closed 2000000000: row 1, size 50")


if __name__ == "__main__":
    unittest.main()
