#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints every byte of a small sealed recording file with its meaning, for docs/recording_format.md. Knows the format
only from that page, and checks all checksums.

  tests/recording/annotate.py FILE
"""
import struct
import sys
import zlib

MAGIC = b"\x89MCAP0\r\n"
NAMES = {0x01: "Header", 0x02: "Footer", 0x03: "Schema", 0x04: "Channel", 0x05: "Message", 0x06: "Chunk",
         0x07: "MessageIndex", 0x08: "ChunkIndex", 0x09: "Attachment", 0x0a: "AttachmentIndex", 0x0b: "Statistics",
         0x0c: "Metadata", 0x0d: "MetadataIndex", 0x0e: "SummaryOffset", 0x0f: "DataEnd", 0x81: "marker (private)"}
KINDS = "open frames size flush reset gap end abort message set".split()
CAUSES = "client endpoint load drawn rejected connection drain recorder".split()
ANSWERS = "none json text bytes error".split()


class Dump:
    """The lines of a file, from front to back."""

    def __init__(self, text):
        self.text, self.at, self.indent, self.lines = text, 0, "", []

    def take(self, size, meaning):
        taken = self.text[self.at:self.at + size]
        assert len(taken) == size, (self.at, size)
        shown = taken.hex(" ") if size <= 16 else taken[:12].hex(" ") + f" … {size}"
        self.lines.append(f"{self.at:06x}  {shown:<47}  {self.indent}{meaning}".rstrip())
        self.at += size
        return taken

    def number(self, format, meaning, show=str):
        size = struct.calcsize("<" + format)
        value, = struct.unpack_from("<" + format, self.text, self.at)
        self.take(size, f"{meaning} {show(value)}")
        return value

    def string(self, meaning):
        size, = struct.unpack_from("<I", self.text, self.at)
        value = self.text[self.at + 4:self.at + 4 + size].decode()
        self.take(4 + size, f'{meaning} "{value}"')
        return value

    def strings(self, meaning):
        end = self.number("I", f"{meaning}, bytes:") + self.at
        while self.at < end:
            key, = struct.unpack_from("<I", self.text, self.at)
            value, = struct.unpack_from("<I", self.text, self.at + 4 + key)
            name = self.text[self.at + 4:self.at + 4 + key].decode()
            text = self.text[self.at + 8 + key:self.at + 8 + key + value].decode()
            self.take(8 + key + value, f'  "{name}": "{text}"')
        assert self.at == end

    def checksum(self, begin, meaning="CRC-32"):
        crc = zlib.crc32(self.text[begin:self.at])
        assert self.number("I", meaning, lambda value: f"{value:08x}") == crc, meaning


class Flat:
    """Collects the places of a FlatBuffer: what lies where. The rest is padding."""

    def __init__(self, text, base):
        self.text, self.base, self.places = text, base, []

    def get(self, format, at):
        return struct.unpack_from("<" + format, self.text, self.base + at)[0]

    def place(self, at, size, meaning):
        self.places.append((at, size, meaning))

    def table(self, name, fields):
        root = self.get("I", 0)
        self.place(0, 4, f"root table at +{root}")
        vtable = root - self.get("i", root)
        self.place(vtable, self.get("H", vtable), "vtable")
        self.place(root, 4, f"{name}: vtable {root - vtable} bytes before")
        for i, (field, read) in enumerate(fields):
            inside = 4 + 2 * i < self.get("H", vtable)
            place = self.get("H", vtable + 4 + 2 * i) if inside else 0
            if place:
                read(self, root + place, field)

    def emit(self, dump, size):
        for at, length, meaning in sorted(self.places):
            if dump.at < self.base + at:
                dump.take(self.base + at - dump.at, "zero bytes")
            assert dump.at == self.base + at
            dump.take(length, meaning)
        if dump.at < self.base + size:
            dump.take(self.base + size - dump.at, "zero bytes")


def scalar(format):
    def read(flat, at, field):
        flat.place(at, struct.calcsize("<" + format), f"{field} {flat.get(format, at)}")
    return read


def a_struct(format, *names):
    def read(flat, at, field):
        values = struct.unpack_from("<" + format, flat.text, flat.base + at)
        text = ", ".join(f"{name} {value}" for name, value in zip(names, values))
        flat.place(at, struct.calcsize("<" + format), f"{field}: {text}")
    return read


def vector(format, show):
    def read(flat, at, field):
        begin = at + flat.get("I", at)
        count, size = flat.get("I", begin), struct.calcsize("<" + format)
        flat.place(at, 4, f"{field} at +{begin}")
        flat.place(begin, 4, f"{field}: {count}")
        for i in range(count):
            values = struct.unpack_from("<" + format, flat.text, flat.base + begin + 4 + i * size)
            flat.place(begin + 4 + i * size, size, "  " + show(*values))
    return read


def content(show):
    def read(flat, at, field):
        begin = at + flat.get("I", at)
        size = flat.get("I", begin)
        flat.place(at, 4, f"{field} at +{begin}")
        flat.place(begin, 4, f"{field}: {size} bytes")
        flat.place(begin + 4, size, "  " + show(flat.text[flat.base + begin + 4:flat.base + begin + 4 + size]))
    return read


def event(at, low, high, kind, cause):
    number = f" {high << 32 | low}" if low or high else ""
    return f"{KINDS[kind]}{number}, {CAUSES[cause]}, at {at}"


def samples(text):
    return "s16: " + " ".join(map(str, struct.unpack(f"<{len(text) // 2}h", text)))


SLICE = [("first_event", scalar("Q")), ("begin", scalar("Q")), ("events", vector("qIHBB", event)),
         ("frames", content(samples)), ("size", scalar("I")),
         ("answers", vector("QQIB3x", lambda seq, batch, length, kind:
                            f"row {seq}, batch {batch}, {length} bytes, {ANSWERS[kind]}")),
         ("answer_bytes", content(bytes.decode)),
         ("lost", a_struct("QQB7x", "first_event", "begin", "reason")),
         ("closing", a_struct("QQQIBBxx", "rows", "frames", "lost", "digest", "closing", "complete")),
         ("large", vector("Q", str)),
         ("messages", vector("QQIB3x", lambda seq, number, length, kind:
                             f"message {number} after row {seq}, {length} bytes, {ANSWERS[kind]}")),
         ("message_bytes", content(bytes.decode)), ("texts", content(bytes.decode))]
PARTS = [("parts", vector("QIIQQQQHBBB3x", lambda *part: "stream {}: slices from {}, {} of them, events from {}, "
                          "positions {} to {}, {} frames, channel {}, closed {}, complete {}, lost {}".format(*part)))]


def flat_buffer(dump, size, name, fields):
    flat = Flat(dump.text, dump.at)
    flat.table(name, fields)
    flat.emit(dump, size)


def header(dump, end):
    dump.string("profile")
    dump.string("library")


def metadata(dump, end):
    dump.string("name")
    dump.strings("metadata")


def schema(dump, end):
    dump.number("H", "schema")
    dump.string("name")
    dump.string("encoding")
    dump.take(dump.number("I", "bytes of the schema:"), "schemas/slices/recording.fbs in binary form")


def channel(dump, end):
    dump.number("H", "channel")
    dump.number("H", "schema")
    dump.string("topic")
    dump.string("encoding of messages")
    dump.strings("metadata")


def message(dump, end):
    dump.number("H", "channel")
    dump.number("I", "sequence: slice")
    dump.number("Q", "log_time")
    dump.number("Q", "publish_time")
    assert dump.at % 8 == 0
    flat_buffer(dump, end - dump.at - 1, "Slice", SLICE)
    dump.take(1, "a zero byte")


def chunk(dump, end):
    dump.number("Q", "first log_time")
    dump.number("Q", "last log_time")
    size = dump.number("Q", "bytes of the records:")
    crc = zlib.crc32(dump.text[end - size:end])
    assert dump.number("I", "CRC-32 of the records", lambda value: f"{value:08x}") == crc
    dump.string("compression")
    dump.number("Q", "bytes of the records:")
    dump.indent = "  "
    while dump.at < end:
        record(dump)
    dump.indent = ""


def message_index(dump, end):
    dump.number("H", "channel")
    dump.number("I", "entries, bytes:")
    while dump.at < end:
        dump.number("Q", "  log_time")
        dump.number("Q", "  place in the records:")


def marker(dump, end):
    begin = dump.at
    dump.take(16, "id of the file")
    dump.number("Q", "number of the chunk:")
    dump.number("Q", "bytes of the Chunk record:")
    dump.checksum(begin)
    if dump.at < end:
        dump.take(end - dump.at, "zero bytes")


def attachment(dump, end):
    begin = dump.at
    dump.number("Q", "log_time")
    dump.number("Q", "create_time")
    dump.string("name")
    dump.string("media type")
    flat_buffer(dump, dump.number("Q", "bytes of the attachment:"), "Parts", PARTS)
    dump.checksum(begin)


def attachment_index(dump, end):
    for meaning in ("Attachment record at", "its length", "log_time", "create_time", "bytes of the attachment:"):
        dump.number("Q", meaning, hex if meaning.endswith("at") else str)
    dump.string("name")
    dump.string("media type")


def metadata_index(dump, end):
    dump.number("Q", "Metadata record at", hex)
    dump.number("Q", "its length")
    dump.string("name")


def statistics(dump, end):
    dump.number("Q", "messages:")
    dump.number("H", "schemas:")
    for meaning in ("channels:", "attachments:", "metadata records:", "chunks:"):
        dump.number("I", meaning)
    dump.number("Q", "first log_time")
    dump.number("Q", "last log_time")
    dump.number("I", "messages of channels, bytes:")
    while dump.at < end:
        dump.number("H", "  channel")
        dump.number("Q", "  messages:")


def chunk_index(dump, end):
    dump.number("Q", "first log_time")
    dump.number("Q", "last log_time")
    dump.number("Q", "Chunk record at", hex)
    dump.number("Q", "its length")
    indexes = dump.number("I", "MessageIndex records, bytes:") + dump.at
    while dump.at < indexes:
        dump.number("H", "  channel")
        dump.number("Q", "  at", hex)
    dump.number("Q", "bytes of all MessageIndex records:")
    dump.string("compression")
    dump.number("Q", "bytes of the records:")
    dump.number("Q", "bytes of the records:")


def summary_offset(dump, end):
    dump.number("B", "records of the kind", NAMES.get)
    dump.number("Q", "  at", hex)
    dump.number("Q", "  bytes:")


def data_end(dump, end):
    crc = zlib.crc32(dump.text[:dump.at - 9])
    assert dump.number("I", "CRC-32 of all bytes before this record", lambda value: f"{value:08x}") == crc


def footer(dump, end):
    begin = dump.number("Q", "summary at", hex)
    dump.number("Q", "summary offsets at", hex)
    dump.checksum(begin, "CRC-32 of the summary and the footer")


FIELDS = {0x01: header, 0x02: footer, 0x03: schema, 0x04: channel, 0x05: message, 0x06: chunk, 0x07: message_index,
          0x08: chunk_index, 0x09: attachment, 0x0a: attachment_index, 0x0b: statistics, 0x0c: metadata,
          0x0d: metadata_index, 0x0e: summary_offset, 0x0f: data_end, 0x81: marker}


def record(dump):
    opcode, length = struct.unpack_from("<BQ", dump.text, dump.at)
    dump.take(9, f"{NAMES[opcode]}, {length} bytes")
    outer, end = dump.indent, dump.at + length
    dump.indent += "  "
    FIELDS[opcode](dump, end)
    assert dump.at == end, (NAMES[opcode], dump.at, end)
    dump.indent = outer


def annotate(text):
    """The lines of a recording file."""
    dump = Dump(text)
    assert dump.take(8, "magic") == MAGIC
    while dump.at < len(text) - 8:
        record(dump)
    assert dump.take(8, "magic") == MAGIC
    return dump.lines


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as opened:
        print("\n".join(annotate(opened.read())))
