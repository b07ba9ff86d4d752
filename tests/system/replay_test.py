# SPDX-License-Identifier: Apache-2.0
"""The streams that a service has recorded are replayed: a worker gets the rows of the live streams, and a service gets clients."""
import array
import asyncio
import collections
import contextlib
import json
import math
import random
import signal
import tempfile
import unittest

import websockets

import resume_test
from harness import COUNTED, MILLRACE, Process, SystemTest, run, wait_for

RULES = {
    "fixed": 'chunk = { size = "20ms", left = 100, right = 50 }',
    "step": 'chunk = { size = 320, step = 200, tail = "cover" }',
    "first": 'chunk = { size = 320, first = 500, min = 40 }',
    "random": 'chunk = { size = 320, sizes = [160, 320, 480], rule = "random", seed = 5, left = 64 }',
    "adaptive": 'chunk = { size = 320, sizes = [160, 320, 480], rule = "adaptive" }',
    "length": 'chunk = { size = "20ms" }\nendpoint = { by = "length", max = "100ms" }',
    "reset": 'chunk = { size = "20ms" }\nendpoint = { by = "length", max = "90ms", on_endpoint = "reset" }',
    "float": 'dtype = "f32"\nchunk = { size = "20ms", left = 100 }',
    "voice": 'chunk = { size = "20ms" }\nendpoint = { by = "vad", silence = "50ms", before_speech = "100ms" }',
}
SHED = {"shed": 'chunk = { size = "20ms" }\nshed_after = "20ms"'}


def pipeline(rule, name="default", more=""):
    return f'[[pipeline]]\nname = "{name}"\nslots = 8\n{rule}\nbatch = {{ rows = 4 }}\n{more}\n'


def recorded(rules, directory):
    """Pipelines with these rules, recorded with their answers."""
    return f'[recording]\ndirectory = "{directory}"\n' + "".join(
        pipeline(rule, name, "record = { answers = true }") for name, rule in rules.items())


NOISE = [array.array("h", (random.Random(at).randint(-loud, loud) for at in range(4000))) for loud in (0, 300, 20000)]


def noise(shuffle, frames):
    """Frames between silence and loud noise."""
    begin = shuffle.randrange(3000)
    return shuffle.choice(NOISE)[begin:begin + frames].tobytes()


def is_cut_off(name):
    return int(name.rpartition("-")[2]) % 3 == 2


async def read(connection, answered):
    """Reads until the connection closes. Sets `answered` at the first result."""
    with contextlib.suppress(websockets.ConnectionClosed):
        async for message in connection:
            if isinstance(message, bytes) or json.loads(message)["type"] == "result":
                answered.set()


async def talk(service, name, pipeline_name, seed, attached):
    """A client that sends everything that a client can send, half of it before the worker of `shed` is attached. Every third
    one is cut off instead of ending: after an answer, because a stream that is cut off before a worker had a row of it has
    no rows."""
    shuffle = random.Random(seed)
    floats = seed % 4 == 1
    async with service.connect(id=name, pipeline=pipeline_name, **({"format": "f32le"} if floats else {})) as connection:
        answered = asyncio.Event()
        reading = asyncio.ensure_future(read(connection, answered))
        for number in range(40):
            if pipeline_name == "shed":
                await asyncio.sleep(0.02)
                if number == 20:
                    await attached.wait()
            kind = shuffle.randint(0, 12)
            if kind == 0:
                await connection.send(json.dumps({"type": "flush", "mark": shuffle.randint(0, 99)}))
            elif kind == 1:
                await connection.send(json.dumps({"type": "reset"}))
            elif kind == 2:
                await connection.send(json.dumps({"type": "gap", "frames": shuffle.randint(1, 500)}))
            elif kind == 3 and floats:
                await connection.send(array.array("f", [0.5, math.nan, 0.5]).tobytes())
            elif floats:
                values = array.array("h", noise(shuffle, shuffle.randint(1, 900)))
                await connection.send(array.array("f", (value / 32768 for value in values)).tobytes())
            else:
                data = noise(shuffle, shuffle.randint(1, 900))
                cut = shuffle.randint(0, len(data))
                await connection.send(data[:cut])
                await connection.send(data[cut:])
        if is_cut_off(name):
            await answered.wait()
            connection.transport.abort()
        else:
            await connection.send(json.dumps({"type": "end"}))
        await reading


def by_stream(lines):
    """The rows of each stream, without the places that a replay chooses anew."""
    rows = collections.defaultdict(list)
    for line in lines:
        row = json.loads(line)
        del row["slot"], row["batch"]
        rows[row.pop("stream")].append(row)
    return rows


class Replay(SystemTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="millrace-replay-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.directory = f"{self.folder}/recording"

    def recorded_rows(self, rules, streams=6):
        """Records streams of each pipeline. Returns the rows that a tap at the service got, by pipeline and stream."""
        service = self.service("", recorded(rules, self.directory))
        taps = {}

        def attach(names):
            for name in names:
                taps[name] = self.tap(service, name, "--data", "crc32c")

        attach(name for name in rules if name != "shed")

        def attach_late():
            wait_for(lambda: service.metric("millrace_stream_lost_audio_seconds_total", reason="overflow") > 0, "frames to be shed", COUNTED)
            attach(["shed"])

        async def clients():
            attached = asyncio.Event()
            streaming = [asyncio.create_task(talk(service, f"{name}-{seed}", name, seed, attached)) for name in rules for seed in range(streams)]
            if "shed" in rules:
                await asyncio.to_thread(attach_late)
            attached.set()
            await asyncio.gather(*streaming)

        run(clients())
        for name, tap in taps.items():
            for seed in range(streams):
                self.rows(tap, f"{name}-{seed}")
        self.assertEqual(service.stop(), 0)
        for tap in taps.values():
            tap.wait()
        return {name: by_stream(tap.lines) for name, tap in taps.items()}

    def replay(self, *arguments):
        process = Process(MILLRACE, "replay", self.directory, *arguments)
        self.addCleanup(process.kill)
        return process

    def replayed_rows(self, name, *arguments):
        """The rows that a tap gets from a replay of the streams of a pipeline."""
        url = f"unix:{self.folder}/replay.sock"
        replay = self.replay("--workers", url, "--pipeline", name, *arguments)
        tap = Process(MILLRACE, "tap", "--url", url, "--pipeline", name, "--data", "crc32c")
        self.addCleanup(tap.kill)
        self.assertEqual((replay.wait(), tap.wait()), (0, 0), replay.errors)
        return by_stream(tap.lines)

    def test_a_worker_gets_the_rows_of_the_live_streams(self):
        live = self.recorded_rows(RULES)
        for name in RULES:
            with self.subTest(name):
                self.assertEqual(self.replayed_rows(name), live[name])

    def test_shed_frames_are_missing_in_the_replay_too(self):
        live = self.recorded_rows(SHED, streams=3)["shed"]
        self.assertIn("overflow", {row["reason"] for rows in live.values() for row in rows})
        self.assertEqual(self.replayed_rows("shed"), live)

    def test_the_speed_does_not_change_rows(self):
        live = self.recorded_rows({"fixed": RULES["fixed"]}, streams=3)["fixed"]
        for speed in ("1", "100", "max"):
            self.assertEqual(self.replayed_rows("fixed", "--speed", speed), live)
        self.assertEqual(self.replayed_rows("fixed", "--at-once", "1"), live)
        self.assertEqual(self.replayed_rows("fixed", "fixed-1"), {"fixed-1": live["fixed-1"]})

    def compared(self, *worker):
        url = f"unix:{self.folder}/replay.sock"
        replay = self.replay("--workers", url, "--compare")
        attached = Process(*worker, environment={"MILLRACE_WORKERS": url})
        self.addCleanup(attached.kill)
        code = replay.wait()
        attached.stop()
        return code, replay

    def test_answers_are_compared_with_the_recorded_ones(self):
        self.recorded_rows({"default": RULES["fixed"]}, streams=2)
        # The slots and batches in the answers of tap differ; only streams that were alone have the same.
        code, replay = self.compared(MILLRACE, "tap")
        self.assertEqual(code, 1)
        differences = [json.loads(line) for line in replay.lines]
        self.assertEqual([each["type"] for each in differences], ["difference"] * len(differences))
        for each in differences:
            self.assertEqual(each["recorded"]["data"]["stream"], each["stream"])
            self.assertEqual(each["replayed"]["data"]["seq"], each["seq"])

    def test_a_service_gets_the_streams_again_through_each_door(self):
        live = self.recorded_rows({"fixed": RULES["fixed"]})["fixed"]
        for door in ("websocket", "zeromq"):
            with self.subTest(door):
                service = self.service(pipeline(RULES["fixed"], "fixed"))
                tap = self.tap(service, "fixed", "--data", "crc32c")
                url = f"ws://127.0.0.1:{service.port}" if door == "websocket" else f"tcp://127.0.0.1:{service.zeromq_port}"
                replay = self.replay("--url", url)
                self.assertEqual(replay.wait(), 0, replay.errors)
                for name in live:
                    if not is_cut_off(name):
                        self.rows(tap, name)
                service.stop()
                tap.wait()
                rows = self.without_reasons(by_stream(tap.lines))
                for name, of in self.without_reasons(live).items():
                    if is_cut_off(name):  # a service that is slow may lose its last frames
                        before_end = rows.get(name, [])[:-1]
                        self.assertEqual(before_end, of[:len(before_end)])
                    else:
                        self.assertEqual(rows[name], of)

    @staticmethod
    def without_reasons(rows):
        return {name: [{key: value for key, value in row.items() if key != "reason"} for row in of]
                for name, of in rows.items()}

    def test_a_signal_ends_a_replay(self):
        self.recorded_rows({"fixed": RULES["fixed"]}, streams=1)
        for how in (signal.SIGINT, signal.SIGTERM):
            replay = self.replay("--workers", f"unix:{self.folder}/replay.sock")
            wait_for(lambda: any("waiting for a worker" in line for line in replay.errors), "the replay to wait")
            self.assertEqual(replay.stop(how), 1)
            self.assertIn("0 of 1 stream", replay.errors[-1])

    def test_the_command_names_the_difference_of_pipelines(self):
        self.recorded_rows({"fixed": RULES["fixed"], "step": RULES["step"]}, streams=1)
        replay = self.replay("--workers", f"unix:{self.folder}/replay.sock")
        self.assertEqual(replay.wait(), 1)
        self.assertIn("are of the pipelines", replay.errors[0])
        self.assertIn("--pipeline NAME", replay.errors[0])



class Moved(resume_test.ResumeTest):
    """A stream that was lost, and opened anew twice."""

    PIPELINE = "[[pipeline]]\nslots = 8\nchunk = { size = 100, left = 30, right = 70 }\n"
    PARTS = [resume_test.samples(0, 450), {"type": "message", "data": "a"}, {"type": "flush", "mark": 1}, resume_test.samples(450, 333),
             {"type": "gap", "frames": 10}, resume_test.samples(783, 500), {"type": "end"}]

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="millrace-replay-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.directory = f"{self.folder}/recording"

    def recorded_rows(self):
        """The rows that the client got, as a tap received them."""
        service = self.served(self.PIPELINE + "record = true\n", f'[recording]\ndirectory = "{self.directory}"\n[limits]\nresume = "1s"\n')

        async def moved():
            client = self.client(service, id="call")
            for sent in 4, 6:
                place = client.place[0]
                await client.connect()
                await client.send_again()
                await client.send(*self.PARTS[len(client.parts):sent])
                while client.place[0] == place:  # until it can continue with the next segment
                    await client.receive()
                client.cut()
                await asyncio.to_thread(wait_for, lambda: service.streams() == [], "the window to be over")
            self.assertEqual((await client.connect())["resumed"], False)
            await client.send_again()
            await client.send(*self.PARTS[len(client.parts):])
            await client.receive_until("closed")

        run(moved())
        self.assertEqual(service.stop(), 0)
        self.worker.wait()
        return self.worker.lines

    def replay(self, *arguments):
        process = Process(MILLRACE, "replay", self.directory, *arguments)
        self.addCleanup(process.kill)
        return process

    def test_a_worker_gets_the_rows_that_the_client_got(self):
        expected = []
        for row in by_stream(self.recorded_rows())["call"]:
            if row["reason"] == "failover":  # it replaces the rows from its number on
                expected = expected[:row["seq"]]
            if "ABORT" not in row["flags"]:
                expected.append(row)
        self.assertEqual([row["seq"] for row in expected], list(range(len(expected))))
        self.assertEqual([row["reason"] for row in expected].count("failover"), 2)
        url = f"unix:{self.folder}/replay.sock"
        replay = self.replay("--workers", url)
        tap = Process(MILLRACE, "tap", "--url", url, "--data", "crc32c")
        self.addCleanup(tap.kill)
        self.assertEqual((replay.wait(), tap.wait()), (0, 0), replay.errors)
        self.assertEqual(by_stream(tap.lines), {"call": expected})
        self.assertIn("1 of 1 stream", replay.errors[-1])

    def test_a_service_gets_what_the_client_sent_once(self):
        self.recorded_rows()
        service = self.service(self.PIPELINE)
        tap = self.tap(service, "default", "--data", "crc32c")

        async def without_a_loss():
            client = self.client(service, id="whole")
            await client.finish(self.PARTS)

        run(without_a_loss())
        replay = self.replay("--url", f"ws://127.0.0.1:{service.port}")
        self.assertEqual(replay.wait(), 0, replay.errors)
        self.rows(tap, "call")
        service.stop()
        tap.wait()
        rows = by_stream(tap.lines)
        self.assertEqual(rows["call"], rows["whole"])


if __name__ == "__main__":
    unittest.main()
