# SPDX-License-Identifier: Apache-2.0
"""A worker that tests can kill: it logs every batch before it answers it, and its answer to a row names the worker, the
batch and the row. Some of its answers come later than their batch. Before some of its answers it sends a message to the client,
which names the worker and counts its messages. The log survives kill -9.

  logging_worker.py URL PIPELINE NAME LOG CREDITS PACE      PACE: the most milliseconds that a batch takes

At SIGTERM, it sends Bye and works until the service closes the connection. At SIGUSR1, it keeps its next batch until the
service has evicted it, and sends heartbeats meanwhile. A line of LOG is a JSON object:
  {"attached": ns}                      all times are of the steady clock
  {"batch": id, "closed": ns, "opened": [[stream, slot, name, options], …], "rows": [[…, crc32], …],
   "posts": [[stream, number of the row, position, JSON, whether it changes options], …]}
  {"done": id, "pending": [[stream, number of the row], …]}   the batch is given back next, and these rows are answered later
  {"bye": ns}   {"ended": "left" | "timeout" | … | "lost"}
"""
import contextlib
import json
import os
import random
import signal
import sys
import threading
import time
import zlib

import worker_wire as wire
from raw_worker import RawWorker


class LoggingWorker:
    def __init__(self, url, pipeline, name, log, credits, pace):
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.name, self.pace, self.random = name, float(pace) / 1000, random.Random(name)
        self.link = RawWorker(url, pipeline=pipeline, name=name, credits=int(credits)).attached()
        self.write(attached=time.monotonic_ns())
        self.sent = 0
        self.leaving, self.dozing = threading.Event(), threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: self.leaving.set())
        signal.signal(signal.SIGUSR1, lambda *_: self.dozing.set())
        self.link.beat()
        threading.Thread(target=self.leave, daemon=True).start()
        print("attached", flush=True)

    def write(self, **line):
        os.write(self.log, json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def leave(self):
        """Runs in a second thread: the main thread may be in the middle of a message when the signal comes."""
        self.leaving.wait()
        self.write(bye=time.monotonic_ns())
        self.link.send(wire.bye)

    def work(self):
        self.link.wait_forever()
        while (batch := self.link.batch()) is not None:
            rows = [[*row, zlib.crc32(self.link.row(batch, i))] for i, row in enumerate(batch.framed)]
            rows += [[*row, None] for row in batch.marks]
            self.write(batch=batch.id, closed=batch.closed, opened=batch.opened, rows=rows, posts=batch.posts)
            if self.dozing.is_set():
                self.link.wait_for_hang_up()
            else:
                time.sleep(self.random.random() * self.pace)
            self.send_messages(batch)
            answers = {(row.stream, row.seq): json.dumps([self.name, batch.id, row.stream, row.seq]).encode()
                       for row in [*batch.framed, *batch.marks]}
            pending = {row for row in answers if self.random.random() < 0.05}
            self.write(done=batch.id, pending=list(pending))
            self.link.send(wire.done(batch.id, *([(wire.PENDING, b"") if row[:2] in pending else (wire.JSON, answers[row[:2]])
                                                  for row in rows] for rows in (batch.framed, batch.marks))))
            for row in pending:
                threading.Timer(self.random.random() / 5, self.answer_late, (*row, answers[row])).start()
        self.write(ended="left" if self.link.received_bye else self.link.refused or "lost")

    def send_messages(self, batch):
        """A stream has far fewer rows than messages for which it has room."""
        for row in [*batch.framed, *batch.marks]:
            if self.random.random() < 0.3:
                self.link.send(wire.send(row.stream, json.dumps([self.name, self.sent, row.stream]).encode(), seq=row.seq))
                self.sent += 1

    def answer_late(self, stream, seq, answer):
        with contextlib.suppress(OSError):  # the connection may be gone
            self.link.send(wire.late_answer(stream, seq, answer))


if __name__ == "__main__":
    LoggingWorker(*sys.argv[1:]).work()
