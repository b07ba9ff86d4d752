# SPDX-License-Identifier: Apache-2.0
"""Reads recording files without Millrace: the records by PyPI's mcap, the slices by struct."""
import collections
import struct

import flatbuffer
from mcap.reader import NonSeekingReader, SeekingReader

KINDS = "open frames size flush reset gap end abort message set".split()
CAUSES = "client endpoint load drawn rejected connection drain recorder".split()
ANSWERS = "none json text bytes error".split()
REASONS = "queue_full disk_full io_error memory".split()
CLOSINGS = "end idle client_gone error no_worker drain".split()
LARGE = 2**48 - 1  # the number of the event is in `large`

# rows: of an open the rows of the stream before it; its count is the position at which the stream begins.
Event = collections.namedtuple("Event", "kind cause count mark at text rows", defaults=[b"", 0])
Answer = collections.namedtuple("Answer", "seq batch kind content")
Lost = collections.namedtuple("Lost", "first_event begin reason")
Closing = collections.namedtuple("Closing", "rows frames lost digest closing complete")
# meta: the metadata of the channel. number: of the slice in its stream. wall: MCAP's log_time.
Slice = collections.namedtuple(
    "Slice", "meta number wall first_event begin size events frames answers lost closing")
Part = collections.namedtuple("Part", "stream first_slice slices first_event begin end frames channel closed complete lost")


def _events(table, begin):
    large, texts = iter([number for number, in table.vector(9, "<Q")]), table.bytes(12)
    events = []
    for at, low, high, kind, cause in table.vector(2, "<qIHBB"):
        number = high << 32 | low
        number = next(large) if number == LARGE else number
        flush = KINDS[kind] == "flush"
        opens = KINDS[kind] == "open"
        text = texts[:number] if KINDS[kind] in ("message", "set") else b""
        texts = texts[len(text):]
        events.append(Event(KINDS[kind], CAUSES[cause], begin if opens else 0 if flush else number,
                            number - 1 if flush and number else None, at, text, number if opens else 0))
    assert not list(large) and not texts
    assert all(len(event.text) == event.count for event in events if event.kind in ("message", "set"))
    return events


def _answers(table):
    content, answers = table.bytes(6), []
    for seq, batch, length, kind in table.vector(5, "<QQIB3x"):
        answers.append(Answer(seq, batch, ANSWERS[kind], content[:length]))
        content = content[length:]
    assert not content
    return answers


def _struct(table, number, format):
    """A struct that is a field of the table, or None if it is absent."""
    place = table._place(number)
    return struct.unpack_from(format, table.text, place) if place else None


def decode(message, meta, number=0, wall=0):
    """The slice of a message."""
    table = flatbuffer.Reader(message, struct.unpack_from("<I", message)[0])
    first_event, begin = table.scalars("QQ")
    lost, closing = _struct(table, 7, "<QQB"), _struct(table, 8, "<QQQIBB")
    events, frames = _events(table, begin), table.bytes(3)
    element, values = meta["frames"].split()[:2]
    frame = (4 if element == "f32" else 2) * int(values)
    assert len(frames) == frame * sum(event.count for event in events if event.kind == "frames")
    return Slice(meta, number, wall, first_event, begin, table.optional(4, "I", 0), events, frames, _answers(table),
                 lost and Lost(*lost[:2], REASONS[lost[2]]),
                 closing and Closing(*closing[:4], CLOSINGS[closing[4]], bool(closing[5])))


def _slices(reader):
    for _, channel, message in reader.iter_messages(log_time_order=False):
        yield decode(message.data, channel.metadata, message.sequence, message.log_time)


def read(path, seeking=True):
    """All slices of a sealed recording file, in the order of the file. All its checksums are verified. Seeking: by the
    index in the summary; otherwise from front to back."""
    with open(path, "rb") as file:
        kind = SeekingReader if seeking else NonSeekingReader
        return list(_slices(kind(file, validate_crcs=True)))


def parts(path):
    """The attachment `parts` of a sealed recording file: the streams that have slices in it."""
    with open(path, "rb") as file:
        attachment, = [a for a in SeekingReader(file, validate_crcs=True).iter_attachments() if a.name == "parts"]
    table = flatbuffer.Reader(attachment.data, struct.unpack_from("<I", attachment.data)[0])
    return [Part(*part[:8], *map(bool, part[8:])) for part in table.vector(0, "<QIIQQQQHBBB3x")]


def metadata(path):
    """The metadata record `millrace` of a recording file."""
    with open(path, "rb") as file:
        record, = [r for r in SeekingReader(file, validate_crcs=True).iter_metadata() if r.name == "millrace"]
    return record.metadata
