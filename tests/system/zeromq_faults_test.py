# SPDX-License-Identifier: Apache-2.0
"""Invalid messages over ZeroMQ, and valid ones with impossible values. Ids like B1 are those of docs/internals/guarantees.md."""
import struct
import unittest

import client_wire as wire
from conformance_test import crc32c
from faults import PACKET
from flatbuffer import u64
from harness import samples
from zeromq_faults import PeerFaultTest

LAST = 1 << 53


def patched(message, at, value):
    out = bytearray(message)
    struct.pack_into("<I", out, at, value)
    return bytes(out)


GOOD = wire.frames(7, 0, samples(0, 8))
ROOT = struct.unpack_from("<I", GOOD)[0]
INVALID_MESSAGES = {  # B1, B2, B5, B6
    "one byte": b"x", "eleven bytes": bytes(11), "random": bytes(range(7, 207)),
    "another identifier": GOOD[:4] + b"MRW1" + GOOD[8:], "cut short": GOOD[:-9],
    "the root outside": patched(GOOD, 0, 1 << 20), "the root beyond 2^31": patched(GOOD, 0, 0xFFFFFFF0),
    "the root in itself": patched(GOOD, 0, 0), "a vtable outside": patched(GOOD, ROOT, 1 << 20),
    "a vtable that is its table": patched(GOOD, ROOT, 0),
    "a length before it": struct.pack("<I", len(GOOD)) + GOOD,
    "no bytes in frames": wire.message(wire.FRAMES, u64(7), u64(0)),
}
NOT_FOR_A_SERVICE = {  # B5
    "an unknown message": wire.message(200, u64(7)),
    "a message of the service": wire.message(wire.CREDIT, u64(7), u64(1)),
    "a gap of 0": wire.gap(7, 0), "a gap over the limit": wire.gap(7, LAST),
    "a mark over the limit": wire.flush(7, LAST),
}


class Messages(PeerFaultTest):
    def answered(self, service, message):
        peer = self.peer(service).send(message)
        answer = peer.next(None)
        peer.close()
        return answer["type"], answer["code"]

    def test_an_invalid_message_is_answered_and_disturbs_no_stream(self):  # B1 B2 B5 B6
        service = self.served()
        cases = {name: (sent, ("error", "schema")) for name, sent in INVALID_MESSAGES.items()}
        self.each(service, cases, self.answered, ("messages_rejected", "verify"))

    def test_a_message_that_means_nothing_to_a_service_is_answered(self):  # B5
        service = self.served()
        cases = {name: (sent, ("error", "schema")) for name, sent in NOT_FOR_A_SERVICE.items()}
        cases.pop("an unknown message")  # the verifier checks only its kind
        self.each(service, cases, self.answered, ("messages_rejected", "schema"))
        self.assertEqual(self.answered(service, NOT_FOR_A_SERVICE["an unknown message"]), ("error", "schema"))

    def test_members_of_later_versions_are_ignored(self):  # B5
        service = self.served()
        with self.moved(service, {}), self.unharmed(service) as good:
            stream = self.peer(service).open()
            stream.peer.send(wire.message(wire.FRAMES, u64(stream.number), u64(0), samples(0, PACKET), u64(1), b"later"))
            self.assertEqual(stream.next()["end"], PACKET)
            stream.command(wire.end).rest()
            good.row()

    def test_the_third_invalid_message_in_ten_seconds_ends_the_peer(self):  # B1
        service = self.served()
        with self.moved(service, {("messages_rejected", "verify"): 3, ("connections_closed", "protocol"): 1,
                                  ("streams_closed", "error"): 2}), self.unharmed(service) as good:
            peer = self.peer(service, reconnect_ivl=-1)
            streams = [peer.open(), peer.open()]
            for _ in range(3):
                peer.send(b"x")
            for stream in streams:
                self.assertEqual(stream.next()["code"], "schema")
            self.assertEqual([peer.next(None)["code"] for _ in range(3)], ["schema"] * 3)
            peer.send(wire.open_(99))  # is not read
            good.row()
            self.await_metric(service, 1, "millrace_ingest_connections_closed_total", transport="zmq", reason="protocol")

    def test_a_message_is_read_at_any_address_in_memory(self):  # B3
        service = self.service(f"[[pipeline]]\nchunk = {{ size = {PACKET} }}\n")
        tap = self.tap(service, "default", "--data", "crc32c")
        stream = self.peer(service).open(id="anywhere")
        at = 0
        for count in range(1, 400):  # many of them are received in one piece
            stream.send(samples(at, count))
            at += count
        self.assertEqual(stream.command(wire.end).rest()[-1]["frames"], at)
        rows = [row for row in self.rows(tap, "anywhere") if row["size"]]
        self.assertEqual([row["crc32c"] for row in rows],
                         [crc32c(samples(begin, min(PACKET, at - begin)).ljust(2 * PACKET, b"\0"))
                          for begin in range(0, at, PACKET)])

    def test_bytes_that_are_not_whole_frames_are_rejected(self):  # B7
        service = self.served()
        with self.moved(service, {("messages_rejected", "format"): 1}), self.unharmed(service):
            stream = self.peer(service).open()
            stream.send_at(0, samples(0, 10) + b"x")
            rejected = stream.next()
            self.assertEqual((rejected["code"], rejected["frames"]), ("values", 10))
            stream.position = 10
            stream.send(samples(10, PACKET)).command(wire.end)
            row = next(m for m in stream.rest() if m["type"] == "result")
            self.assertEqual((row["begin"], row["end"]), (10, 10 + PACKET))
            self.assertEqual(stream.received[-1]["frames"], PACKET)

    def test_a_message_with_nan_becomes_a_gap(self):  # B13
        service = self.served()
        with self.moved(service, {("messages_rejected", "nonfinite"): 1}), self.unharmed(service):
            stream = self.peer(service).open(format="f32le")
            stream.send(struct.pack("<3f", 0, float("nan"), 0)).command(wire.end)
            rejected = stream.rest()[1]
            self.assertEqual((rejected["code"], rejected["frames"]), ("values", 3))

    def test_frames_beyond_the_last_position_are_rejected(self):  # B8 C5
        service = self.served()
        with self.moved(service, {("messages_rejected", "position"): 3}), self.unharmed(service):
            stream = self.peer(service).open()
            for at in (LAST - 9, LAST + 1, (1 << 64) - 1):
                stream.send_at(at, samples(0, 10))
                rejected = stream.next()
                self.assertEqual((rejected["type"], rejected["code"], rejected["frames"]), ("rejected", "values", 0))
            stream.send(samples(0, PACKET))
            self.assertEqual(stream.next()["end"], PACKET)
            stream.send_at(1 << 40, samples(0, PACKET)).command(wire.end)
            last = [m for m in stream.rest() if m["type"] == "result" and m["end"] > m["begin"]][-1]
            self.assertEqual((last["begin"], last["flags"]), (1 << 40, ["RESET", "SEGMENT", "GAP"]))

    def test_an_open_with_a_wrong_format_or_shape_is_refused_with_the_parameters_name(self):  # B9 B12
        service = self.service(f'[[pipeline]]\nchunk = {{ size = {PACKET} }}\n'
                               '[[pipeline]]\nname = "features"\ndim = 13\n')
        self.worker = self.tap(service)
        wrong = [{"format": "s16be"}, {"rate": 0.0}, {"rate": -1.0}, {"rate": 192001.0}, {"channels": 0},
                 {"dim": 1}] + [{"pipeline": "features", **more} for more in (
                     {"dim": 0}, {"dim": 12}, {"dim": 65536}, {"format": "s16le"}, {"channels": 1})]
        with self.moved(service, {("connections_rejected", "parameter"): len(wrong)}), self.unharmed(service) as good:
            peer = self.peer(service)
            for parameters in wrong:
                with self.subTest(parameters):
                    refusal = peer.open(**parameters).refusal
                    self.assertEqual((refusal["code"], refusal["parameter"]), ("format", list(parameters)[-1]))
                good.row()


class Positions(PeerFaultTest):
    def test_repeated_frames_are_dropped_and_counted(self):  # C2 C4 C6
        service = self.served()
        with self.moved(service, {("messages_rejected", "position"): 4}), self.unharmed(service):
            stream = self.peer(service).open()
            stream.send_at(0, samples(0, 1000))
            stream.send_at(0, samples(0, 1000))       # again
            stream.send_at(500, samples(500, 1000))   # half of it again
            stream.send_at(0, samples(0, 1600))       # it begins anew: 100 of it are new
            stream.send_at(3000, samples(3000, 200))  # ahead
            stream.send_at(1600, samples(1600, 1400))  # the frames of the gap, which come too late
            stream.command(wire.end)
            results = [m for m in stream.rest() if m["type"] == "result"]
            self.assertEqual([(r["begin"], r["end"], "GAP" in r["flags"]) for r in results if r["end"] > r["begin"]],
                             [(0, 1600, False), (3000, 3200, True)])
            self.assertEqual(stream.received[-1]["frames"], 1800)

    def test_frames_beyond_the_credit_are_rejected(self):  # B17
        credit = 1920  # frames in 120 ms
        service = self.served(extra='[limits]\nstream_buffer = "120ms"\n')
        with self.moved(service, {("messages_rejected", "rate_limit"): 1}), self.unharmed(service):
            stream = self.peer(service).open()
            stream.send_at(0, samples(0, credit + 1))
            rejected = stream.next()
            self.assertEqual((rejected["code"], rejected["frames"]), ("too_fast", credit + 1))
            stream.position = credit + 1
            stream.send(samples(credit + 1, PACKET)).command(wire.end)
            self.assertEqual(stream.rest()[-1]["frames"], PACKET)

    def test_the_number_or_name_of_an_open_stream_is_not_opened_again(self):  # C1 C7
        service = self.served()
        with self.moved(service, {("messages_rejected", "schema"): 1, ("connections_rejected", "parameter"): 1,
                                  ("messages_rejected", "unknown_stream"): 3}), self.unharmed(service) as good:
            peer = self.peer(service)
            stream = peer.open(id="mic")
            peer.send(wire.open_(stream.number))
            self.assertEqual(stream.next()["code"], "conflict")
            self.assertEqual(self.peer(service).open(id="mic").refusal["code"], "conflict")
            stream.send(samples(0, PACKET))
            self.assertEqual(stream.next()["end"], PACKET)
            stream.command(wire.end).rest()
            for message in (wire.end(stream.number), wire.flush(stream.number), wire.reset(1000)):
                peer.send(message)
            self.assertEqual(peer.next(1000)["code"], "unknown_stream")  # the client knows that the other stream has ended
            good.row()


if __name__ == "__main__":
    unittest.main()
