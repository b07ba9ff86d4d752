# SPDX-License-Identifier: Apache-2.0
"""A call over a line that is cut again and again: each client gets the words of a line that holds, and no state is lost.
MILLRACE_CALL_SECONDS=1200 adds a call of this length in real time."""
import concurrent.futures
import contextlib
import json
import os
import subprocess
import sys
import time
import unittest

from cutting_proxy import CuttingProxy, at_random
from harness import MILLRACE, Process, wait_for
from raw_client import RawClient, upgrade
from served import PIPELINE, PYTHON, ROOT, Moonshine, Served, librivox, packets, speech, with_moonshine

sys.path.append(str(ROOT / "tests" / "support"))
import printed_programs as printed  # noqa: E402

MOST = 100_000  # bytes over a connection: the signal of 3 s
LIBRARY = """
import json, sys
from millrace import Client

with Client(sys.argv[1]).open(rate=16000) as stream:
    for result in stream.run(iter(lambda: sys.stdin.buffer.read(3200), b"")):
        print(json.dumps({"type": "result", "seq": result.seq, "data": result.data}))
"""

CLIENTS = {"C++": [MILLRACE, "stream", "--json", "--format", "s16le", "--rate", "16000", "-", "--url"],
           "Python": [PYTHON, "-c", LIBRARY],
           "no library": [sys.executable, "-c", printed.programs()["client_resume"].text]}
SECONDS = int(os.environ.get("MILLRACE_CALL_SECONDS", 0))
HELD = 30  # seconds for which the line of the long call holds


def in_real_time(audio, cut):
    """The packets of the audio, each when a microphone has it. Calls cut() after every HELD seconds."""
    begin = time.monotonic()
    for count, packet in enumerate(packets(audio), 1):
        time.sleep(max(0, begin + count / 10 - time.monotonic()))
        if count % (10 * HELD) == 0:
            cut()
        yield packet


class LostLines(Served):
    def recognise(self):
        """Serves Moonshine so that its texts do not depend on time: each row alone, no text before the end of a segment, and no
        loss of a worker that is slow."""
        self.serve(Moonshine.pipeline.replace("rows = 16", "rows = 1") + 'answer_wait = "1h"\n')
        self.worker("--every", "1000", script=ROOT / "examples" / "moonshine" / "worker.py")

    def texts(self, client, port, audio):
        """The final texts that a client prints for packets of audio. Each row has at most one result, in order."""
        process = Process(*client, f"ws://127.0.0.1:{port}", stdin=subprocess.PIPE)
        self.addCleanup(process.kill)
        with contextlib.suppress(BrokenPipeError), process.process.stdin as pipe:  # its end is checked below
            for packet in audio:
                pipe.buffer.write(packet)
                pipe.flush()
        self.assertEqual(process.wait(300), 0, process.errors)
        results = [message for message in map(json.loads, process.lines) if message["type"] == "result"]
        self.assertEqual([result["seq"] for result in results], sorted({result["seq"] for result in results}))
        return [result["data"]["text"] for result in results if result["data"].get("final") and result["data"]["text"]]

    def resumed(self, state):
        return self.served.metric("millrace_streams_resumed_total", state=state)

    @with_moonshine
    def test_the_words_are_those_of_a_line_that_holds(self):
        self.recognise()
        audio = packets((speech("0870") + speech("0880")) * 2)
        expected = self.texts(CLIENTS["C++"], self.served.port, audio)
        self.assertEqual(len(expected), 4)
        for name, client in CLIENTS.items():
            with self.subTest(name):
                before = self.resumed("kept")
                with contextlib.closing(CuttingProxy(self.served.port, at_random(1, 1, MOST))) as line:
                    self.assertEqual(self.texts(client, line.port, audio), expected)
                self.assertGreater(line.count, 4)
                wait_for(lambda: self.resumed("kept") > before + 3, "the streams that were resumed")
        self.assertEqual(self.resumed("lost"), 0)

    @with_moonshine
    @unittest.skipUnless(SECONDS, "MILLRACE_CALL_SECONDS is not set")
    def test_the_words_of_a_long_call_are_those_of_a_line_that_holds(self):
        self.recognise()
        spoken = b"".join(map(speech, librivox()))
        audio = (spoken * (SECONDS * 32000 // len(spoken) + 1))[:SECONDS * 32000]
        expected = self.texts(CLIENTS["C++"], self.served.port, packets(audio))

        def call(client):
            with contextlib.closing(CuttingProxy(self.served.port)) as line:
                return self.texts(client, line.port, in_real_time(audio, line.cut)), line.count

        with concurrent.futures.ThreadPoolExecutor() as calls:
            outcomes = list(calls.map(call, CLIENTS.values()))
        self.assertEqual(self.served.attached(), 1, "the worker was lost, and with it the state of segments")
        for name, (texts, connections) in zip(CLIENTS, outcomes):
            with self.subTest(name):
                self.assertEqual(texts, expected)
                self.assertGreaterEqual(connections, SECONDS // HELD)
        wait_for(lambda: self.resumed("kept") >= len(CLIENTS) * (SECONDS // HELD - 1), "the streams that were resumed")
        self.assertEqual(self.resumed("lost"), 0)

    def test_a_client_without_a_library_tries_again_while_there_is_no_room(self):
        self.serve(PIPELINE.replace("slots = 8", "slots = 1"))
        self.worker()
        with contextlib.closing(CuttingProxy(self.served.port)) as line:
            process = Process(*CLIENTS["no library"], f"ws://127.0.0.1:{line.port}", stdin=subprocess.PIPE)
            self.addCleanup(process.kill)
            with process.process.stdin as pipe:
                pipe.buffer.write(bytes(32000))
                pipe.flush()
                wait_for(lambda: process.lines, "a result")
                line.to = 1  # no program listens there
                line.cut()
                wait_for(lambda: not self.served.streams()[0]["connected"], "the stream to wait")
                with RawClient(self.served.port, upgrade()) as other:
                    other.opened()  # it has the slot
                    line.to = self.served.port
                    wait_for(lambda: self.served.metric("millrace_ingest_connections_rejected_total"), "a refusal")
            self.assertEqual((process.wait(), process.errors), (0, []))
        self.assertEqual(json.loads(process.lines[-1])["type"], "closed")
        self.await_metric(self.served, 1, "millrace_streams_resumed_total", state="lost")


if __name__ == "__main__":
    unittest.main()
