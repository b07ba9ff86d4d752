# SPDX-License-Identifier: Apache-2.0
"""Tests of message_history.py: each broken promise about messages is reported by its name."""
import unittest

from history_test import LOST, Story
from traces import SECOND, Worker
from worker_wire import RESET


class Posted(Story):
    """The second and the third row carry messages of the client."""
    SENT = ("frames", 300), ("set", {"lang": "de"}), ("flush", 7), ("message", "a"), ("message", [1]), ("reset", None), ("frames", 402)


def messages(story, *of):
    """Messages of workers before the last result: (worker, count, row, number) of each."""
    for worker, count, seq, number in of:
        story.results.insert(-1, {"type": "message", "number": number, "seq": seq, "data": [worker, count, 11]})


def post(story, seq, field, value):
    """Changes a field of the first message that the row carries at worker b."""
    story.batch(story.b, seq).posts[0][field] = value


def taken_over(story, options):
    """Worker b leaves before the fourth row. Worker c gets the stream with these options."""
    c = Worker("c", attached=SECOND)
    at = story.b.log.index(("batch", story.batch(story.b, 3)))
    c.log, story.b.log = story.b.log[at:], story.b.log[:at]
    story.b.fate, story.b.leaving, story.b.over = "left", 4 * SECOND, 9 * SECOND
    story.history.workers.append(c)
    story.batch(c, 3).opened.append([11, 1, "s", options])
    story.change(c, 3, reason=LOST, flags=story.batch(c, 3).rows[0][0].flags | RESET)
    story.results = [story.result(c, result["seq"]) if result.get("seq", 0) >= 3 else result for result in story.results]


CASES = {  # how the story changes, and the promises that it breaks
    "messages of two workers": (lambda s: messages(s, ("a", 0, 0, 0), ("a", 3, 1, 1), ("b", 0, 1, 2)),),
    "a message that is missing": (lambda s: messages(s, ("a", 0, 0, 0), ("a", 1, 0, 2)), "message"),
    "a message that came twice": (lambda s: messages(s, ("a", 0, 0, 0), ("a", 0, 0, 1)), "message"),
    "messages in another order": (lambda s: messages(s, ("a", 1, 0, 0), ("a", 0, 0, 1)), "message"),
    "a message about a row that its worker did not have": (lambda s: messages(s, ("a", 0, 5, 0)), "message"),
    "a message of the client that is missing": (lambda s: s.batch(s.b, 2).posts.pop(), "post"),
    "a message of the client that is missing when its row is handed over again": (lambda s: s.batch(s.b, 1).posts.clear(), "post"),
    "messages of the client in another order": (lambda s: s.batch(s.b, 2).posts.reverse(), "post"),
    "a message of the client with another row": (lambda s: s.batch(s.b, 3).posts.append([11, 3, 150, "1", False]), "post"),
    "a message of the client with another position": (lambda s: post(s, 2, 2, 149), "post"),
    "a message of the client with other data": (lambda s: post(s, 2, 3, "2"), "post"),
    "a change of options that came as a message": (lambda s: post(s, 1, 4, False), "post"),
    "wrong options": (lambda s: s.batch(s.b, 1).opened[0].__setitem__(3, ""), "options"),
    "a change of options that came before its row": (lambda s: s.batch(s.b, 1).opened[0].__setitem__(3, '{"salt":5,"lang":"de"}'), "options"),
    "a worker that takes over with the current options": (lambda s: taken_over(s, '{"salt":5,"lang":"de"}'),),
    "a worker that takes over with the options of the open": (lambda s: taken_over(s, '{"salt":5}'), "options"),
}


class Checker(unittest.TestCase):
    def test_each_broken_promise_about_messages_is_reported_by_its_name(self):
        for name, (change, *promises) in CASES.items():
            with self.subTest(name):
                story = Posted()
                change(story)
                self.assertEqual(story.broken(), sorted(promises))


if __name__ == "__main__":
    unittest.main()
