# SPDX-License-Identifier: Apache-2.0
"""The part of FlatBuffers that the messages of the protocols need, written by hand: so a test does not need the code under
test to decide what is valid."""
import collections
import struct

# --- Writing. A field is a Scalar, a Struct, a child (Table, Vector or bytes: a string), or None: absent.

Scalar = collections.namedtuple("Scalar", "format value")
Struct = collections.namedtuple("Struct", "format values")  # whose alignment is at most 8, without gaps
Table = collections.namedtuple("Table", "fields")
Vector = collections.namedtuple("Vector", "format items")


def u8(value):
    return Scalar("B", value)


def u32(value):
    return Scalar("I", value)


def u64(value):
    return Scalar("Q", value)


def _pad(out, alignment, ahead=0):
    """Pads, so that the data `ahead` bytes later is aligned."""
    out += bytes(-(len(out) + ahead) % alignment)


def _put(out, child):
    """Appends a child. Returns the position to which an offset must point."""
    if isinstance(child, Table):
        return _put_table(out, child.fields)
    if isinstance(child, bytes):
        child = Vector("B", child + b"\0")  # the NUL is not counted
        length = len(child.items) - 1
    else:
        length = len(child.items)
    _pad(out, max(4, struct.calcsize(child.format)), ahead=4)
    at = len(out)
    out += struct.pack("<I", length)
    if isinstance(child.items, bytes):
        out += child.items
    else:
        out += struct.pack(f"<{len(child.items)}{child.format}", *child.items)
    return at


def _put_table(out, fields):
    places, size = [], 4
    for field in fields:
        wide = struct.calcsize(field.format) if isinstance(field, (Scalar, Struct)) else 4
        size += -size % min(wide, 8) if field is not None else 0
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
        elif isinstance(field, Struct):
            struct.pack_into("<" + field.format, out, at, *field.values)
        elif field is not None:
            child = _put(out, field)
            struct.pack_into("<I", out, at, child - at)
    return table


def f64(value):
    return Scalar("d", value)


def message(identifier, kind, *fields):
    """A message whose root is a union: its kind, and the table of that kind."""
    out = bytearray(4) + identifier
    root = _put_table(out, [u8(kind), Table(fields)])
    struct.pack_into("<I", out, 0, root)
    return bytes(out)


# --- Reading


class Reader:
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

    def optional(self, number, format, otherwise=None):
        place = self._place(number)
        return self._get(format, place) if place else otherwise

    def structure(self, number, format):
        place = self._place(number)
        return struct.unpack_from("<" + format, self.text, place) if place else None

    def child(self, number):
        place = self._place(number)
        return place and place + self._get("I", place)

    def vector(self, number, format):
        """All structs of a vector, as tuples."""
        at, size = self.child(number), struct.calcsize(format)
        return list(struct.iter_unpack(format, self.text[at + 4:at + 4 + size * self._get("I", at)])) \
            if at else []

    def bytes(self, number):
        at = self.child(number)
        return bytes(self.text[at + 4:at + 4 + self._get("I", at)]) if at else b""

    def string(self, number):
        return self.bytes(number).decode()


def read(identifier, text):
    """(kind, table) of the root."""
    assert text[4:8] == identifier, text[:8]
    root = Reader(text, struct.unpack_from("<I", text)[0])
    return root.scalars("B")[0], Reader(text, root.child(1))
