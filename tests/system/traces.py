# SPDX-License-Identifier: Apache-2.0
"""The traces of clients and workers, which history.py checks. All times are nanoseconds of the steady clock."""
import array
import dataclasses
import json
import os
import sys

from worker_wire import Row

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "conformance"))
import chunk_reference as contract  # noqa: E402

SECOND = 1_000_000_000
PERIOD = 32749
VALUES = array.array("h", [position * 7 % PERIOD + 1 for position in range(2 * PERIOD)])


def salted(salt, first, count):
    """The s16 samples of a stream from a position on, at most PERIOD of them. They depend on the position and on the stream,
    and are never 0, which is padding."""
    begin = (salt + first) % PERIOD
    return VALUES[begin:begin + count]


@dataclasses.dataclass
class Rule:
    """The configuration of a pipeline."""
    spec: contract.Spec
    slots: int
    rows: int
    worker_wait: float = 30.0  # seconds


@dataclasses.dataclass
class Stream:
    """A stream, traced by its client. `sent`: ("frames", bytes), ("flush", mark or None), ("reset", None), ("gap", frames),
    ("message", data), ("set", options). `how` the client ended it: "end", "left" (closed with 1000) or "abort". `code` is the close code of the service, or 1006
    if it sent none. `left`: when the client closed it with 1000."""
    name: str
    pipeline: str = "default"
    salt: int = 0
    options: str = ""
    sent: list = dataclasses.field(default_factory=list)
    how: str = "end"
    got: list = dataclasses.field(default_factory=list)  # (instant, message)
    code: int = 1000
    opened: int = 0
    left: int = 0
    over: int = 0

    def messages(self, kind):
        return [message for _, message in self.got if message["type"] == kind]


@dataclasses.dataclass
class Batch:
    id: int
    closed: int
    opened: list  # [stream, slot, name, options]
    rows: list    # (Row, crc32 of its values or None)
    posts: list = dataclasses.field(default_factory=list)  # [stream, number of the row, position, JSON, whether it changes options]


@dataclasses.dataclass
class Worker:
    """A worker, traced by itself. `log`: ("batch", Batch) and ("done", id), in order. `fate`: "lived" to the end, "left" with
    Bye, or "lost"."""
    name: str
    pipeline: str = "default"
    credits: int = 2
    log: list = dataclasses.field(default_factory=list)
    fate: str = "lived"
    attached: int = 0
    pending: set = dataclasses.field(default_factory=set)  # (stream, number) of the rows that were to be answered later
    leaving: int = None  # from then on it may be gone, or takes no new streams
    over: int = None     # from then on it is gone


@dataclasses.dataclass
class History:
    rules: dict  # by pipeline
    streams: list
    workers: list
    stopping: int = None  # when the service got SIGTERM


def read_worker(worker, path):
    """Adds the log of logging_worker.py, whose last line may be cut. Returns how the worker ended, or None."""
    ended = None
    with open(path) as file:
        for text in file:
            if not text.endswith("\n"):
                break
            line = json.loads(text)
            if "batch" in line:
                rows = [(Row(*row[:-1]), row[-1]) for row in line["rows"]]
                worker.log.append(("batch", Batch(line["batch"], line["closed"], line["opened"], rows, line["posts"])))
            elif "done" in line:
                worker.log.append(("done", line["done"]))
                worker.pending.update(map(tuple, line["pending"]))
            elif "attached" in line:
                worker.attached = line["attached"]
            elif "bye" in line:
                worker.leaving = line["bye"]
            ended = line.get("ended")
    return ended
