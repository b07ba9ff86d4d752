# SPDX-License-Identifier: Apache-2.0
"""A call over a line that is cut again and again: each client gets the words of a line that holds, and no state is lost."""
import contextlib
import json
import subprocess
import sys
import unittest

from cutting_proxy import CuttingProxy, at_random
from harness import MILLRACE, wait_for
from served import PYTHON, ROOT, Served, speech, with_moonshine

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


class LostLines(Served):
    def texts(self, client, port, audio):
        """The final texts that a client prints. Each row has at most one result, in order."""
        done = subprocess.run([*client, f"ws://127.0.0.1:{port}"], input=audio, capture_output=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        results = [message for message in map(json.loads, done.stdout.splitlines()) if message["type"] == "result"]
        self.assertEqual([result["seq"] for result in results], sorted({result["seq"] for result in results}))
        return [result["data"]["text"] for result in results if result["data"].get("final") and result["data"]["text"]]

    def resumed(self, state):
        return self.served.metric("millrace_streams_resumed_total", state=state)

    @with_moonshine
    def test_the_words_are_those_of_a_line_that_holds(self):
        self.recognise()
        audio = (speech("0870") + speech("0880")) * 2
        clients = {"C++": [MILLRACE, "stream", "--json", "--format", "s16le", "--rate", "16000", "-", "--url"],
                   "Python": [PYTHON, "-c", LIBRARY],
                   "no library": [sys.executable, "-c", printed.programs()["client_resume"].text]}
        expected = self.texts(clients["C++"], self.served.port, audio)
        self.assertEqual(len(expected), 4)
        for name, client in clients.items():
            with self.subTest(name):
                before = self.resumed("kept")
                with contextlib.closing(CuttingProxy(self.served.port, at_random(1, 1, MOST))) as line:
                    self.assertEqual(self.texts(client, line.port, audio), expected)
                self.assertGreater(line.count, 4)
                wait_for(lambda: self.resumed("kept") > before + 3, "the streams that were resumed")
        self.assertEqual(self.resumed("lost"), 0)


if __name__ == "__main__":
    unittest.main()
