# SPDX-License-Identifier: Apache-2.0
"""Invalid parameters and frames. Ids like B7 are those of docs/internals/guarantees.md."""
import array
import json
import math
import struct
import unittest
import urllib.parse

from conformance_test import crc32c
from faults import FaultTest, text
from harness import samples
from raw_client import BINARY, RawClient, frame, upgrade


def options(json_text):
    return "options=" + urllib.parse.quote(json_text)


# Queries, and the status of their answer. The body of the answer names the first parameter.
PARAMETERS = {
    # B10 and B11: format_faults_test.py has those that depend on the pipeline
    "a rate in words": ("rate=fast", 400), "an infinite rate": ("rate=inf", 400),
    "channels 2^32": ("channels=4294967296", 400), "a dim for audio": ("dim=80", 415), "dim 0": ("dim=0", 415),
    "dim 65536": ("dim=65536", 415),
    # B19
    "an empty id": ("id=", 400), "an id of 129": ("id=" + "a" * 129, 400), "a NUL in an id": ("id=a%00b", 400),
    "an id that is not UTF-8": ("id=%ff", 400), "a newline in an id": ("id=a%0ab", 400),
    "a label in an id": ("id=%7B%7D%22", 400), "a path as an id": ("id=../x", 400), "half a percent-encoding": ("id=%4", 400),
    # B20
    "options that are not an object": (options("[]"), 400), "options that are not JSON": (options("{"), 400),
    "options over 4 KiB": (options('{"a":"' + "b" * 4090 + '"}'), 400),
    "options that nest deep": (options('{"a":' + "[" * 100 + "]" * 100 + "}"), 400),
    "repeated options": (options("{}") + "&" + options("{}"), 400),
    # and the others
    "an unknown format": ("format=mp3", 415), "an unknown pipeline": ("pipeline=none", 404),
    "an unknown parameter": ("colour=red", 400), "a repeated parameter": ("rate=16000&rate=16000", 400),
}


class Parameters(FaultTest):
    def refusal(self, service, query):
        with RawClient(service.port, upgrade("/v1/stream?" + query)) as client:
            status, fields = client.head()
            if status != 101:
                error = json.loads(client.body(fields))["error"]
                self.assertEqual(error["parameter"], query.split("=")[0])
            return status

    def test_an_invalid_parameter_is_refused_by_name(self):
        self.each(self.served(), PARAMETERS, self.refusal, ("connections_rejected", "parameter"))


class Values(FaultTest):
    FLOATS = '[[pipeline]]\nname = "floats"\nframes = "f32"\nchunk = { size = 4 }\n'

    def test_a_message_with_nan_or_infinity_becomes_a_gap(self):  # B13
        service = self.service("[[pipeline]]\nchunk = { size = 1600 }\n" + self.FLOATS)
        self.tap(service)
        tap = self.tap(service, "floats")
        with self.moved(service, {("messages_rejected", "nonfinite"): 3}), self.unharmed(service):
            with RawClient(service.port, upgrade("/v1/stream?pipeline=floats&format=f32le&id=a")) as client:
                client.opened()
                for bad in (math.nan, math.inf, -math.inf):
                    client.send(frame(BINARY, struct.pack("<4f", 0.5, 0.5, 0.5, 0.5)))
                    client.send(frame(BINARY, struct.pack("<4f", 0.5, bad, 0.5, 0.5)))
                client.send(text(type="end"))
                messages = client.rest()
        self.assertEqual(messages[-1], {"type": "closed", "frames": 12, "chunks": 3})
        rejected = [message for message in messages if message["type"] == "rejected"]
        self.assertEqual([(m["code"], m["frames"]) for m in rejected], [("values", 4)] * 3)
        self.assertEqual([(row["begin"], row["gap"], row["size"]) for row in self.rows(tap, "a")],
                         [(0, 0, 4), (4, 0, 0), (8, 4, 4), (12, 0, 0), (16, 4, 4), (20, 0, 0), (24, 4, 0)])

    def values(self, pipeline, sent, clamped=0):
        """The checksum of the values of the only row. Checks that `clamped` values were clamped."""
        service = self.service(pipeline)
        tap = self.tap(service, "floats", "--data", "crc32c")
        with self.moved(service, {}):
            with RawClient(service.port, upgrade("/v1/stream?pipeline=floats&format=f32le&id=a")) as client:
                client.opened().send(frame(BINARY, struct.pack("<4f", *sent))).send(text(type="end"))
                self.assertEqual(client.rest()[-1]["frames"], 4)
        self.assertEqual(service.metric("millrace_ingest_values_clamped_total"), clamped)
        return self.rows(tap, "a")[0]["crc32c"]

    def test_audio_beyond_plus_or_minus_1_is_clamped_and_counted(self):  # B14
        got = self.values(self.FLOATS.replace("f32", "s16"), [1e30, -1e30, 0.5, -0.0], clamped=2)
        self.assertEqual(got, crc32c(array.array("h", [32767, -32768, 16384, 0]).tobytes()))

    def test_denormal_numbers_become_0(self):  # B13
        got = self.values(self.FLOATS, [2.0, -2.0, 1e-40, -0.0])
        self.assertEqual(got, crc32c(struct.pack("<4f", 2, -2, 0, -0.0)))

    def test_half_a_frame_is_carried_over_and_at_the_end_rejected(self):  # B7
        service = self.served()
        with self.moved(service, {("messages_rejected", "format"): 1}):
            with RawClient(service.port, upgrade()) as client:
                audio = samples(0, 1600) + b"\1"
                client.opened().send(frame(BINARY, audio[:1]) + frame(BINARY, audio[1:]) + text(type="end"))
                messages = client.rest()
        self.assertEqual(sorted(m["type"] for m in messages), ["closed", "ready", "rejected", "result", "result"])
        rejected = next(m for m in messages if m["type"] == "rejected")
        self.assertEqual((rejected["code"], rejected["frames"]), ("values", 0))

    def test_empty_messages_are_a_sign_of_life_and_tiny_messages_are_frames(self):  # B15
        service = self.served()
        with self.moved(service, {}), self.unharmed(service), RawClient(service.port, upgrade()) as client:
            client.opened().send(frame(BINARY) * 10_000 + text(type="keepalive"))
            client.send(b"".join(frame(BINARY, samples(i, 1)) for i in range(20_000)) + text(type="end"))
            self.assertEqual(client.rest()[-1], {"type": "closed", "frames": 20_000, "chunks": 13})


if __name__ == "__main__":
    unittest.main()
