# SPDX-License-Identifier: Apache-2.0
"""Messages of the worker protocol (docs/worker_protocol.md), without generated code."""
import collections

import flatbuffer
from flatbuffer import Table, Vector, u8, u32, u64

HELLO, DONE, HEARTBEAT, BYE, WELCOME, BATCH, COMPANY, REFUSED, UNMAPPED, SEND, ROOM, \
    LATE_ANSWER, DESCRIBE = range(1, 14)
IDENTIFIER = b"MRW1"
NONE, JSON, TEXT, BYTES, ERROR, PENDING = range(6)
START, RESET, SEGMENT, GAP, LAST, END, ABORT = 1, 2, 4, 8, 16, 32, 64
FLAGS = ("START", "RESET", "SEGMENT", "GAP", "LAST", "END", "ABORT")
REASONS = (None, "start", "client", "endpoint", "gap", "overflow", "worker_lost", "failover")

ROW, OPENED, POST = "<QQQQqIIIIBB6x", "<QIII4x", "<QQQIB3x"  # structs
Row = collections.namedtuple("Row", "stream seq begin gap mark slot left size right flags reason")
Opened = collections.namedtuple("Opened", "stream slot name options")
Batch = collections.namedtuple("Batch", "id slab rows width trigger closed copied framed marks opened tensor posts")
Post = collections.namedtuple("Post", "stream seq position data set")
Welcome = collections.namedtuple(
    "Welcome", "version slots rows width element values rate features chunk slabs slab_bytes handles width_buckets "
    "row_buckets",
    defaults=[b"", [], []])  # handles of slabs on a device, one after the other


def names(flags):
    """The names of flags, as clients and taps read them."""
    return [name for bit, name in enumerate(FLAGS) if flags >> bit & 1]


def message(kind, *fields):
    return flatbuffer.message(IDENTIFIER, kind, *fields)


def hello(pipeline="default", name="test", credits=2, version=1, device="host", watch=False):
    return message(HELLO, u32(version), pipeline.encode(), name.encode(), u32(credits),
                   device.encode(), u8(watch))


def describe(pipeline="default", name="test", version=1):
    return message(DESCRIBE, u32(version), pipeline.encode(), name.encode())


def _answers(given, endpoints=None):
    if given is None:
        return None
    return Table([Vector("B", [kind for kind, _ in given]),
                  Vector("I", [len(text) for _, text in given]),
                  Vector("B", b"".join(text for _, text in given)),
                  None if endpoints is None else Vector("B", endpoints)])


def done(batch, framed=None, marks=None, taken=0, finished=0, endpoints=None):
    """`framed` and `marks`: (kind, bytes) for each row, or None without answers. Times in ns of the steady clock. `endpoints`: of
    the rows of `framed`, 0 or 1."""
    return message(DONE, u64(batch), u64(taken), u64(finished), _answers(framed, endpoints), _answers(marks))


def send(stream, data, kind=JSON, seq=0):
    """A message to the client of a stream."""
    return message(SEND, u64(stream), u64(seq), u8(kind), Vector("B", data))


def late_answer(stream, seq, data, kind=JSON):
    """The answer to a row that was PENDING in done()."""
    return message(LATE_ANSWER, u64(stream), u64(seq), u8(kind), Vector("B", data))


heartbeat = message(HEARTBEAT)
bye = message(BYE)

def _read_opened(table):
    text, opened = table.string(10), []
    for stream, slot, name, options in table.vector(9, OPENED):
        opened.append(Opened(stream, slot, text[:name], text[name:name + options]))
        text = text[name + options:]  # the names and options in these tests are ASCII
    return opened


def _read_posts(table):
    text, posts = table.bytes(19), []
    for stream, seq, position, length, changes in table.vector(18, POST):
        posts.append(Post(stream, seq, position, text[:length].decode(), bool(changes)))
        text = text[length:]
    return posts


def _read_handles(table):
    at = table.child(14)
    return b"".join(map(flatbuffer.Reader(table.text, at).bytes, range(3))) if at else b""


def read(text):
    """(kind, content) of a message."""
    kind, table = flatbuffer.read(IDENTIFIER, text)
    if kind == WELCOME:
        return kind, Welcome(*table.scalars("IIIIBIdB"), table.string(8), *table.scalars("IQ", 9), _read_handles(table),
                             *([number for number, in table.vector(field, "<I")] for field in (15, 17)))
    if kind == BATCH:
        return kind, Batch(*table.scalars("QIIIBqq"), [Row(*row) for row in table.vector(7, ROW)],
                           [Row(*row) for row in table.vector(8, ROW)], _read_opened(table),
                           table.bytes(11), _read_posts(table))
    if kind == COMPANY:
        return kind, table.scalars("I")[0]
    if kind == ROOM:
        return kind, table.scalars("QI")
    if kind == REFUSED:
        return kind, (table.string(0), table.string(1))
    return kind, None
