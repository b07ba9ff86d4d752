# SPDX-License-Identifier: Apache-2.0
"""Formats, rates, channels and chunk sizes that a pipeline cannot take, and invalid audio in every format, over both doors.
Ids like B10 are those of docs/internals/guarantees.md."""
import json
import math
import struct
import unittest
import urllib.parse

import client_wire as wire
from faults import PACKET, FaultTest, text
from raw_client import BINARY, RawClient, frame, upgrade
from zeromq_faults import PeerFaultTest

# The good stream uses `default`, whose rows have PACKET frames.
PIPELINES = (f"[[pipeline]]\nchunk = {{ size = {PACKET} }}\n"
             '[[pipeline]]\nname = "stereo"\nchannels = 2\nchunk = { size = 160 }\n'
             '[[pipeline]]\nname = "sizes"\nchunk = { size = "320ms", sizes = ["80ms", "160ms", "320ms"] }\n')
SIZES = "80ms, 160ms, 320ms"

# Parameters, the status of the answer, the parameter that the answer names, and a part of its message.
REFUSED = {
    # B10
    **{f"rate {rate}": ({"rate": rate}, 415, "rate", "from 8000 to 192000")
       for rate in (0.0, -1.0, 7999.0, 192001.0, 16000.5)},
    "no rate": ({"rate": math.nan}, 400, "rate", "number"),
    # B11
    "channels 0": ({"channels": 0}, 415, "channels", "256"),
    "channels 257": ({"channels": 257}, 415, "channels", "256"),
    "channels 2": ({"channels": 2}, 415, "channel", "mean"),
    "channels 255": ({"channels": 255}, 415, "channel", "mean"),
    "channels 1 of 2": ({"pipeline": "stereo", "channels": 1}, 415, "channel", "2 channels"),
    "channel 2 of 2": ({"channels": 2, "channel": "2"}, 400, "channel", "from 0 to 1"),
    "channel left": ({"channels": 2, "channel": "left"}, 400, "channel", "from 0 to 1"),
    "a channel of a pipeline with two": ({"pipeline": "stereo", "channel": "0"}, 415, "channel", "2 channels"),
    # formats
    "format mp3": ({"format": "mp3"}, 415, "format", "mulaw"),
    "opus at 16 kHz": ({"format": "opus", "rate": 16000.0}, 415, "rate", "48000"),
    "opus of 3 channels": ({"format": "opus", "channels": 3, "channel": "mean"}, 415, "channels", "1 or 2"),
    # chunk sizes
    "a chunk of another size": ({"pipeline": "sizes", "chunk": "100ms"}, 400, "chunk", SIZES),
    "a chunk of 0": ({"pipeline": "sizes", "chunk": "0"}, 400, "chunk", SIZES),
    "a chunk of words": ({"pipeline": "sizes", "chunk": "small"}, 400, "chunk", SIZES),
    "a chunk without sizes": ({"chunk": "100ms"}, 400, "chunk", "none"),
}
CODES = {400: "schema", 415: "format"}

SILENCE = b"\xf8"  # an Opus packet of 20 ms without content
NOISE = b"\xf8" + bytes(range(7, 100))
BAD_PACKET = b"\xfb"  # of any number of frames, without that number
TOO_LONG_PACKET = b"\x1b\x03" + bytes(30)  # three frames of 60 ms


def mulaw(count):
    return bytes(i * 37 % 256 for i in range(count))


class OverWebSocket(FaultTest):
    def refusal(self, service, parameters):
        with RawClient(service.port, upgrade("/v1/stream?" + urllib.parse.urlencode(parameters))) as client:
            status, fields = client.head()
            return status, json.loads(client.body(fields))["error"] if status != 101 else {}

    def test_a_stream_that_a_pipeline_cannot_take_is_refused_by_name(self):  # B10 B11
        service = self.service(PIPELINES)
        self.tap(service)
        with self.moved(service, {("connections_rejected", "parameter"): len(REFUSED)}), self.unharmed(service):
            for name, (parameters, status, parameter, part) in REFUSED.items():
                with self.subTest(name):
                    answer, error = self.refusal(service, parameters)
                    self.assertEqual((answer, error["parameter"], error["code"]), (status, parameter, CODES[status]))
                    self.assertIn(part, error["message"])

    def messages(self, service, query, *payloads):
        with RawClient(service.port, upgrade("/v1/stream?" + query)) as client:
            client.opened()
            for payload in payloads:
                client.send(frame(BINARY, payload))
            client.send(text(type="end"))
            return [message for message in client.rest() if message["type"] not in ("ready", "result")]

    def test_part_of_a_frame_at_the_end_is_rejected(self):  # B7
        service = self.served()
        for query, size in (("format=s24le", 3), ("channels=2&channel=1", 4), ("format=s24le&rate=8000&channels=3&channel=mean", 9)):
            with self.subTest(query), self.moved(service, {("messages_rejected", "format"): 1}):
                rejected, closed = self.messages(service, query, bytes(80 * size + 1))
                self.assertEqual((rejected["code"], rejected["frames"]), ("values", 0))
                self.assertEqual(closed["frames"], 160 if "8000" in query else 80)

    def test_nan_at_the_end_of_a_resampled_message_rejects_all_of_it(self):  # B13
        service = self.service("[[pipeline]]\nchunk = { size = 1600 }\n")
        tap = self.tap(service)
        floats = struct.pack("<400f", *([0.5] * 400))
        with self.moved(service, {("messages_rejected", "nonfinite"): 1}):
            rejected, closed = self.messages(service, "id=a&format=f32le&rate=8000", floats,
                                             floats[:-4] + struct.pack("<f", math.nan), floats)
        self.assertEqual((rejected["code"], rejected["frames"], closed["frames"]), ("values", 800, 1600))
        self.assertEqual([(row["begin"], row["size"], row["gap"]) for row in self.rows(tap, "a")],
                         [(0, 800, 0), (1600, 800, 800)])

    def test_each_message_of_an_opus_client_is_a_packet(self):
        service = self.served()
        with self.moved(service, {}), self.unharmed(service):
            closed = self.messages(service, "format=opus", SILENCE, b"", NOISE, SILENCE)[-1]
            self.assertEqual((closed["type"], closed["frames"]), ("closed", 3 * 320))

    def test_fragments_of_a_message_are_one_packet(self):
        service = self.served()
        with RawClient(service.port, upgrade("/v1/stream?format=opus")) as client:
            client.opened().send(frame(BINARY, NOISE[:1], fin=False) + frame(0, NOISE[1:40], fin=False) + frame(0, NOISE[40:]))
            client.send(text(type="end"))
            self.assertEqual(client.rest()[-1]["frames"], 320)

    def test_a_packet_that_cannot_be_decoded_is_rejected(self):
        service = self.served()
        for packet, lost in ((BAD_PACKET, 160), (TOO_LONG_PACKET, 160)):
            with self.subTest(packet[:2]), self.moved(service, {("messages_rejected", "nonfinite"): 1}), self.unharmed(service):
                rejected, closed = self.messages(service, "format=opus", b"\xf0", packet, SILENCE)
                self.assertEqual((rejected["code"], rejected["frames"], closed["frames"]), ("values", lost, 160 + 320))


class OverZeroMq(PeerFaultTest):
    def test_a_stream_that_a_pipeline_cannot_take_is_refused_by_name(self):  # B10 B11
        service = self.service(PIPELINES)
        self.tap(service)
        with self.moved(service, {("connections_rejected", "parameter"): len(REFUSED)}), self.unharmed(service):
            peer = self.peer(service)
            for name, (parameters, status, parameter, part) in REFUSED.items():
                with self.subTest(name):
                    error = peer.open(**parameters).refusal
                    self.assertEqual((error["parameter"], error["code"]), (parameter, CODES[status]))
                    self.assertIn(part, error["message"])

    def test_part_of_a_frame_is_rejected_in_any_message(self):  # B7
        service = self.served()
        for parameters, size in (({"format": "s24le"}, 3), ({"channels": 2, "channel": "0"}, 4)):
            with self.subTest(parameters), self.moved(service, {("messages_rejected", "format"): 1}), self.unharmed(service):
                stream = self.peer(service).open(**parameters)
                self.assertEqual(stream.frame, size)
                stream.send_at(0, bytes(10 * size + 1))
                rejected = stream.next()
                self.assertEqual((rejected["code"], rejected["frames"]), ("values", 10))
                stream.command(wire.end)
                self.assertEqual(stream.rest()[-1]["frames"], 0)

    def test_positions_and_gaps_count_frames_of_the_client(self):
        service = self.service("[[pipeline]]\nchunk = { size = 1600 }\n")
        tap = self.tap(service)
        stream = self.peer(service).open(id="telephone", format="mulaw", rate=8000.0)
        stream.send(mulaw(400)).gap(400).send(mulaw(400))
        stream.send_at(1600, mulaw(100)).command(wire.end)  # 400 frames are missing
        self.assertEqual(stream.rest()[-1]["frames"], 1800)
        self.assertEqual([(row["begin"], row["size"], row["gap"]) for row in self.rows(tap, "telephone")],
                         [(0, 800, 0), (1600, 800, 800), (3200, 200, 800)])

    def test_each_message_of_an_opus_client_is_a_frame(self):
        service = self.service("[[pipeline]]\nchunk = { size = 1600 }\n")
        tap = self.tap(service)
        stream = self.peer(service).open(id="opus", format="opus")
        self.assertEqual(stream.frame, 0)
        stream.send_packet(SILENCE).send_at(1, b"").send_packet(NOISE)
        stream.send_at(3, SILENCE)  # a packet is missing
        stream.send_at(3, SILENCE)  # twice
        stream.command(wire.end)
        self.assertEqual(stream.rest()[-1]["frames"], 3 * 320)
        self.assertEqual([(row["begin"], row["size"], row["gap"]) for row in self.rows(tap, "opus")],
                         [(0, 640, 0), (960, 320, 320)])


if __name__ == "__main__":
    unittest.main()
