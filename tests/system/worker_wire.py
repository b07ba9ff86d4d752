# SPDX-License-Identifier: Apache-2.0
"""Messages of the worker protocol (docs/worker_protocol.md) by hand: as much of FlatBuffers as they
need, so that a test can say what is right and what is not without the code under test."""
import collections
import struct

HELLO, DONE, HEARTBEAT, BYE, WELCOME, BATCH, COMPANY, REFUSED = range(1, 9)
IDENTIFIER = b"MRW1"
NONE, JSON, TEXT, BYTES, ERROR = range(5)
START, RESET, SEGMENT, GAP, LAST, END, ABORT = 1, 2, 4, 8, 16, 32, 64
FLAGS = ("START", "RESET", "SEGMENT", "GAP", "LAST", "END", "ABORT")
REASONS = (None, "start", "client", "endpoint", "gap", "overflow", "worker_lost", "failover")

ROW, OPENED = "<QQQQqIIIIBB6x", "<QIII4x"  # structs
Row = collections.namedtuple("Row", "stream seq begin gap mark slot left size right flags reason")
Opened = collections.namedtuple("Opened", "stream slot name options")
Batch = collections.namedtuple("Batch", "id slab rows width trigger closed copied framed marks opened")
Welcome = collections.namedtuple(
    "Welcome", "version slots rows width element values rate features chunk slabs slab_bytes")


def names(flags):
    """As clients and taps read them."""
    return [name for bit, name in enumerate(FLAGS) if flags >> bit & 1]


# --- Writing. A field is a Scalar, a child (Table, Vector or bytes: a string), or None: absent.

Scalar = collections.namedtuple("Scalar", "format value")
Table = collections.namedtuple("Table", "fields")
Vector = collections.namedtuple("Vector", "format items")


def u8(value):
    return Scalar("B", value)


def u32(value):
    return Scalar("I", value)


def u64(value):
    return Scalar("Q", value)


def _pad(out, alignment, ahead=0):
    """So that what comes `ahead` bytes later is aligned."""
    out += bytes(-(len(out) + ahead) % alignment)


def _put(out, child):
    """Appends it; where an offset to it has to point."""
    if isinstance(child, Table):
        return _put_table(out, child.fields)
    if isinstance(child, bytes):
        child = Vector("B", child + b"\0")  # the NUL is not counted
        length = len(child.items) - 1
    else:
        length = len(child.items)
    _pad(out, max(4, struct.calcsize(child.format)), ahead=4)
    at = len(out)
    out += struct.pack(f"<I{len(child.items)}{child.format}", length, *child.items)
    return at


def _put_table(out, fields):
    places, size = [], 4
    for field in fields:
        wide = struct.calcsize(field.format) if isinstance(field, Scalar) else 4
        size += -size % wide if field is not None else 0
        places.append(size if field is not None else 0)
        size += wide if field is not None else 0
    vtable = struct.pack(f"<HH{len(fields)}H", 4 + 2 * len(fields), size, *places)
    _pad(out, 8, ahead=len(vtable))
    out += vtable
    table = len(out)
    out += struct.pack("<i", len(vtable)) + bytes(size - 4)
    for field, place in zip(fields, places):
        at = table + place
        if isinstance(field, Scalar):
            struct.pack_into("<" + field.format, out, at, field.value)
        elif field is not None:
            child = _put(out, field)
            struct.pack_into("<I", out, at, child - at)
    return table


def message(kind, *fields):
    out = bytearray(4) + IDENTIFIER
    root = _put_table(out, [u8(kind), Table(fields)])
    struct.pack_into("<I", out, 0, root)
    return bytes(out)


def hello(pipeline="default", name="test", credits=2, version=1, device="host", watch=False):
    return message(HELLO, u32(version), pipeline.encode(), name.encode(), u32(credits),
                   device.encode(), u8(watch))


def _answers(given):
    if given is None:
        return None
    return Table([Vector("B", [kind for kind, _ in given]),
                  Vector("I", [len(text) for _, text in given]),
                  Vector("B", b"".join(text for _, text in given))])


def done(batch, framed=None, marks=None):
    """`framed` and `marks`: (kind, bytes) for each row; None: no answer for any."""
    return message(DONE, u64(batch), u64(0), u64(0), _answers(framed), _answers(marks))


heartbeat = message(HEARTBEAT)
bye = message(BYE)

# --- Reading


class _Reader:
    """A table, whose fields are read by their number in the schema."""

    def __init__(self, text, at):
        self.text, self.at = text, at
        self.vtable = at - self._get("i", at)

    def _get(self, format, at):
        return struct.unpack_from("<" + format, self.text, at)[0]

    def _place(self, number):
        entry = 4 + 2 * number
        inside = entry < self._get("H", self.vtable)
        place = self._get("H", self.vtable + entry) if inside else 0
        return self.at + place if place else None

    def scalars(self, formats, first=0):
        places = [self._place(first + i) for i in range(len(formats))]
        return [self._get(format, place) if place else 0 for format, place in zip(formats, places)]

    def child(self, number):
        place = self._place(number)
        return place and place + self._get("I", place)

    def vector(self, number, format):
        """All structs of it, as tuples."""
        at, size = self.child(number), struct.calcsize(format)
        return list(struct.iter_unpack(format, self.text[at + 4:at + 4 + size * self._get("I", at)])) \
            if at else []

    def string(self, number):
        at = self.child(number)
        return bytes(self.text[at + 4:at + 4 + self._get("I", at)]).decode() if at else ""


def _read_opened(table):
    text, opened = table.string(10), []
    for stream, slot, name, options in table.vector(9, OPENED):
        opened.append(Opened(stream, slot, text[:name], text[name:name + options]))
        text = text[name + options:]  # names and these options are ASCII
    return opened


def read(text):
    """(kind, what it says)."""
    assert text[4:8] == IDENTIFIER, text[:8]
    root = _Reader(text, struct.unpack_from("<I", text)[0])
    kind, table = root.scalars("B")[0], _Reader(text, root.child(1))
    if kind == WELCOME:
        return kind, Welcome(*table.scalars("IIIIBIdB"), table.string(8), *table.scalars("IQ", 9))
    if kind == BATCH:
        return kind, Batch(*table.scalars("QIIIBqq"), [Row(*row) for row in table.vector(7, ROW)],
                           [Row(*row) for row in table.vector(8, ROW)], _read_opened(table))
    if kind == COMPANY:
        return kind, table.scalars("I")[0]
    if kind == REFUSED:
        return kind, (table.string(0), table.string(1))
    return kind, None
