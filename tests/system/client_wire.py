# SPDX-License-Identifier: Apache-2.0
"""Messages of the ZeroMQ protocol (docs/protocol.md), without generated code: written for a service, read for a
client."""
import flatbuffer
from flatbuffer import Struct, f64, u8, u32, u64
from worker_wire import ERROR, JSON, TEXT, names

(RESULT, READY, FLUSHED, REJECTED, ERRED, CLOSED, CREDIT, GOAWAY,
 OPEN, FRAMES, FLUSH, RESET, GAP, END, _MESSAGE, POST, SET_OPTIONS, ACK, RECEIVED) = range(1, 20)
IDENTIFIER = b"MRC1"


def message(kind, *fields, identifier=IDENTIFIER):
    return flatbuffer.message(identifier, kind, *fields)


def open_(stream, version=1, pipeline=None, id=None, format=None, rate=None, channels=None, dim=None,
          channel=None, chunk=None, options=None, record=None, token=None,
          resume=False, resume_token=None, n=None, place=None, have=None, flushed=None, set=None):
    """`place` has five numbers: seq, frames, commands, begin and skip."""
    def text(value):
        return None if value is None else value.encode()

    def number(make, value):
        return None if value is None else make(value)

    return message(OPEN, u32(version), u64(stream), text(pipeline), text(id), text(format),
                   number(f64, rate), number(u32, channels), number(u32, dim), text(channel),
                   text(chunk), text(options), text(record), text(token), u8(resume), text(resume_token),
                   number(u64, n), place and Struct("5Q", place), number(u64, have), number(u64, flushed),
                   text(set))


def frames(stream, at, data):
    return message(FRAMES, u64(stream), u64(at), data)  # as a string, which is also a vector of bytes


def flush(stream, mark=None):
    return message(FLUSH, u64(stream), None if mark is None else u64(mark))


def reset(stream):
    return message(RESET, u64(stream))


def gap(stream, count):
    return message(GAP, u64(stream), u64(count))


def post(stream, data):
    return message(POST, u64(stream), data.encode())


def set_options(stream, options):
    return message(SET_OPTIONS, u64(stream), options.encode())


def end(stream):
    return message(END, u64(stream))


def received(stream, n):
    return message(RECEIVED, u64(stream), u64(n))


def read(text):
    """A message of the service, with the names of its fields over WebSocket. "number" is that of the stream."""
    kind, table = flatbuffer.read(IDENTIFIER, text)
    numbered = {RESULT: 9, FLUSHED: 2, REJECTED: 4, ERRED: 5, CLOSED: 3}.get(kind)
    n = table.optional(numbered, "Q") if numbered else None
    return fields(kind, table) | ({} if n is None else {"n": n})


def fields(kind, table):
    if kind == ERRED:
        return {"type": "error", "number": table.optional(0, "Q"), "code": table.string(1),
                "message": table.string(2), "parameter": table.string(3),
                "retry_after_ms": table.optional(4, "Q")}
    if kind == READY:
        version, number = table.scalars("IQ")
        frames, frame_bytes = table.scalars("QI", 4)
        return {"type": "ready", "number": number, "version": version, "stream": table.string(2),
                "pipeline": table.string(3), "frames": frames, "frame_bytes": frame_bytes} | resumption(table)
    [number] = table.scalars("Q")
    if kind == RESULT:
        place = table.structure(10, "5Q")
        seq, begin, end_, begin_s, end_s, flags = table.scalars("QQQddB", 1)
        kind = table.optional(7, "B", 3)
        data = table.bytes(8)
        return {"type": "result", "number": number, "seq": seq, "begin": begin, "end": end_,
                "begin_s": begin_s, "end_s": end_s, "flags": names(flags), "kind": kind,
                "data": data.decode() if kind in (JSON, TEXT, ERROR) else data} | ({"place": place} if place else {})
    if kind == REJECTED:
        return {"type": "rejected", "number": number, "code": table.string(1),
                "message": table.string(2), "frames": table.scalars("Q", 3)[0]}
    if kind == CLOSED:
        count, chunks = table.scalars("QQ", 1)
        return {"type": "closed", "number": number, "frames": count, "chunks": chunks}
    if kind == ACK:
        return {"type": "ack", "number": number, "place": table.structure(1, "5Q")}
    name, value = {FLUSHED: ("flushed", "mark"), CREDIT: ("credit", "frames"),
                   GOAWAY: ("goaway", "retry_after_ms")}[kind]
    return {"type": name, "number": number, value: table.scalars("Q", 1)[0]}


def resumption(table):
    """The fields of Ready for a client that resumes."""
    if not table.string(8):
        return {}
    commands, keep = table.scalars("QQ", 6)
    return {"commands": commands, "keep": keep, "resume": table.string(8), "resumed": table.optional(9, "?")}
