# SPDX-License-Identifier: Apache-2.0
"""The Silero VAD worker at a running service: a stream gets the probabilities of a model that processes only this stream,
whatever other streams do and however its bytes are split."""
import asyncio
import collections
import contextlib
import json
import os
import random
import re
import sys
import tempfile
import unittest

import numpy as np
import torch
import websockets
from harness import Process, SystemTest, run
from silero_alone import MODEL, UTTERANCES, Alone, contract, stream_rows, utterance
from silero_vad.utils_vad import OnnxWrapper

EXAMPLE = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "silero_vad")
WORKER = ("-m", "millrace.onnx_worker", MODEL, "--config", os.path.join(EXAMPLE, "model.toml"), "--pipeline", "vad")
STREAMS = 25
SLOTS, AT_ONCE = 8, 6  # more slots than streams: the slot of an aborted stream may become free a little later
ABORTED = (8, 11)
LONGEST = (3, 701, 1281, 6400, 65536)  # bytes of a message
FEW = 3000  # samples of a stream with tiny messages


def events(number, samples, shuffle):
    """The first five streams are one utterance each. The others are in pieces, some of whole chunks, so that a segment may end
    without remaining frames."""
    if number < len(UTTERANCES):
        yield "frames", samples
    at = samples if number < len(UTTERANCES) else 0
    while at < samples:
        n = min(shuffle.choice((1, 40, 512, 5120, shuffle.randrange(1, 30000))), samples - at)
        kind = shuffle.choice(("flush", "reset", "gap"))
        lost = min(shuffle.choice((1, 511, 2000)), samples - at - n) if kind == "gap" else 0
        yield "frames", n
        if kind != "gap" or lost:
            yield kind, lost
        if shuffle.random() < 0.2:
            yield "flush", 0
        at += n + lost
    yield ("abort" if number in ABORTED else "end"), 0


class Stream:
    """The events of one client, and the messages that it receives. A flush at an odd place in the events has this place as its
    mark."""

    def __init__(self, number):
        self.shuffle = random.Random(number)
        self.longest = LONGEST[(number + number // len(UTTERANCES)) % len(LONGEST)]
        self.samples = utterance(UTTERANCES[number % len(UTTERANCES)])[:FEW if self.longest == 3 else None]
        self.events = list(events(number, len(self.samples), self.shuffle))
        self.aborts = number in ABORTED
        self.rows = stream_rows(self.events)
        self.messages, self.has_results, self.may_continue = [], asyncio.Event(), asyncio.Event()
        self.may_continue.set()

    async def live(self, service):
        async with service.connect(pipeline="vad") as connection:
            sending = asyncio.create_task(self._send(connection))
            with contextlib.suppress(websockets.ConnectionClosed):
                async for message in connection:
                    self.messages.append(json.loads(message))
                    if len(self.messages) > 10:
                        self.has_results.set()
            await sending

    async def _send(self, connection):
        at = 0
        for place, (kind, n) in enumerate(self.events):
            if kind == "frames":
                rest = self.samples[at:at + n].tobytes()
                while rest:
                    cut = self.shuffle.randint(1, self.longest)
                    if cut >= len(rest):
                        await self.may_continue.wait()
                    await connection.send(rest[:cut])
                    rest = rest[cut:]
            elif kind == "abort":
                await self.has_results.wait()
                connection.transport.abort()
            else:
                more = {"frames": n} if kind == "gap" else {"mark": place} if kind == "flush" and place % 2 else {}
                await connection.send(json.dumps({"type": kind, **more}))
            at += n

    def received(self, type):
        return [message for message in self.messages if message["type"] == type]

    def marks(self):
        return [place for place, (kind, _) in enumerate(self.events) if kind == "flush" and place % 2]

    def lost(self):
        """Rows before which the state was lost, though the client did nothing that resets it."""
        flags = {row[0]: row[5] for row in self.rows}
        return {result["seq"] for result in self.received("result")
                if "RESET" in result["flags"] and not flags[result["seq"]] & contract.RESET}


async def all_live(streams, service):
    """Runs all streams, AT_ONCE at a time."""
    waiting = iter(streams)

    async def place():
        for stream in waiting:
            await stream.live(service)

    await asyncio.gather(*(place() for _ in range(AT_ONCE)))


class SileroVad(SystemTest):
    def served(self, **batch):
        """A service with the example's configuration, except for its slots and these keys of its batches."""
        with open(os.path.join(EXAMPLE, "millrace.toml")) as file:
            text = re.sub(r"slots = \d+", f"slots = {SLOTS}", file.read())
        batch = {"rows": SLOTS, "max_wait": "5ms", **batch}
        keys = ", ".join(f"{key} = {json.dumps(value)}" for key, value in batch.items())
        return self.service(re.sub(r"batch = .*", f"batch = {{ {keys} }}", text))

    def worker(self, service):
        worker = Process(sys.executable, *WORKER, "--url", service.workers)
        self.addCleanup(worker.kill)
        return worker

    def check(self, streams):
        """Checks every message that the streams received."""
        model = Alone()
        for number, stream in enumerate(streams):
            with self.subTest(stream=number):
                answers = model.answers(stream.samples, stream.rows, stream.lost())
                expected = [(seq, begin, begin + size) for seq, begin, _, size, *_ in stream.rows if size]
                results = stream.received("result")
                if stream.aborts:
                    self.assertGreater(len(results), 5)
                    del expected[len(results):]
                else:
                    self.assertEqual([message["mark"] for message in stream.received("flushed")], stream.marks())
                    self.assertEqual(stream.messages[-1], {
                        "type": "closed", "frames": sum(n for kind, n in stream.events if kind == "frames"),
                        "chunks": len(expected)})
                self.assertEqual([(result["seq"], result["begin"], result["end"]) for result in results], expected)
                np.testing.assert_allclose([result["data"] for result in results],
                                           [answers[seq] for seq, _, _ in expected], rtol=0, atol=1e-5)

    def check_batches(self, service):
        service.recount()
        rows, batches = (service.metric(f"millrace_{name}_total") for name in ("batch_rows", "batches"))
        self.assertGreater(rows / batches, 1)

    def test_every_probability_is_that_of_the_model_alone_with_the_stream(self):
        service = self.served()
        worker = self.worker(service)
        streams = [Stream(number) for number in range(STREAMS)]
        run(all_live(streams, service))
        self.check(streams)
        self.assertFalse(any(stream.lost() for stream in streams))
        self.check_batches(service)
        self.assertEqual(worker.stop(), 0, worker.errors)

    def test_padding_rows_touch_no_stream(self):
        service = self.served(row_buckets=[1, 5, 8])
        self.worker(service)
        streams = [Stream(number) for number in range(5, 15)]
        run(all_live(streams, service))
        self.check(streams)
        self.check_batches(service)
        self.assertGreater(service.metric("millrace_batch_frames_padded_total"), 0)

    def test_after_the_loss_of_a_worker_the_state_is_fresh_and_the_context_is_real(self):
        service = self.served()
        first = self.worker(service)
        streams = [Stream(number) for number in range(AT_ONCE)]

        async def lose_a_worker():
            for stream in streams:
                stream.may_continue.clear()
            living = asyncio.create_task(all_live(streams, service))
            for stream in streams[1:len(UTTERANCES)]:
                await stream.has_results.wait()
            first.process.kill()
            self.worker(service)
            for stream in streams:
                stream.may_continue.set()
            await living

        run(lose_a_worker())
        for stream in streams[1:len(UTTERANCES)]:
            self.assertEqual(len(stream.lost()), 1)
        self.check(streams)

    def test_the_worker_refuses_a_pipeline_for_another_model(self):
        service = self.service('[[pipeline]]\nname = "vad"\nchunk = { preset = "silero-16k" }\n')
        worker = self.worker(service)
        self.assertEqual(worker.wait(), 1)
        self.assertEqual(worker.errors, [
            'millrace-onnx-worker: pipeline vad: it does not fit the model, which needs: dtype = "f32"'])

    def test_a_model_that_fails_with_a_batch_attaches_no_worker(self):
        service = self.service('[[pipeline]]\nname = "vad"\nrate = 16000\ndtype = "f32"\nchunk = { size = 100 }\nbatch = { rows = 8 }\n')
        with open(os.path.join(EXAMPLE, "model.toml")) as file, tempfile.NamedTemporaryFile("w", suffix=".toml") as other:
            other.write(file.read().partition("pipeline = ")[0])
            other.flush()
            worker = Process(sys.executable, *WORKER[:-3], other.name, *WORKER[-2:], "--url", service.workers)
            self.addCleanup(worker.kill)
            self.assertEqual(worker.wait(), 1)
        self.assertIn("millrace-onnx-worker: pipeline vad: the model fails with 8 rows of 100 columns: ", worker.errors[-1])
        self.assertEqual(service.stop(), 0)
        self.assertFalse([line for line in service.errors if "worker attached" in line], service.errors)


class Reference(unittest.TestCase):
    def test_the_reference_gives_the_probabilities_of_the_wheel(self):
        original, model = OnnxWrapper(MODEL, force_onnx_cpu=True), Alone()
        for number in UTTERANCES:
            samples = utterance(number)
            spoken = original.audio_forward(torch.from_numpy(samples.astype(np.float32) / 32768), 16000)[0].tolist()
            answers = model.answers(samples, stream_rows([("frames", len(samples)), ("end", 0)]))
            np.testing.assert_allclose(list(answers.values()), spoken, rtol=0, atol=1e-6)
            self.assertGreater(max(spoken) - min(spoken), 0.5)

    def test_the_streams_have_every_kind_of_event_and_row(self):
        done = collections.Counter()
        for stream in map(Stream, range(STREAMS)):
            done.update(kind for kind, _ in stream.events)
            for row, following in zip(stream.rows, stream.rows[1:] + [None]):
                _, _, left, size, _, flags, _ = row
                done["marker row"] += size == 0
                done["marker row with RESET"] += size == 0 and bool(flags & contract.RESET)
                done["less than all context"] += size > 0 and 0 < left < 64
                done["short row in mid-run"] += bool(0 < size < 512 and following and following[2])
        self.assertGreater(min(done[kind] for kind in (
            "flush", "reset", "gap", "marker row", "marker row with RESET", "less than all context",
            "short row in mid-run")), 4, done)


if __name__ == "__main__":
    unittest.main()
