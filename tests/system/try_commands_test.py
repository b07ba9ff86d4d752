# SPDX-License-Identifier: Apache-2.0
"""The commands of examples/browser/README.md serve the page, and the service accepts streams from it. Their addresses
are fixed, so they run in their own network namespace."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from pathlib import Path

import websockets

from harness import MILLRACE, PATIENCE, run, samples, wait_for

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import printed_programs  # noqa: E402

WITHIN = ("unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "sh", "-euc")
CLIENT = "import sys, try_commands_test; try_commands_test.client(*sys.argv[1:])"


def text_of(url):
    """The page, or None if there is no answer with 200."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as page:
            return page.read().decode()
    except OSError:
        return None


def client(page, parameters):
    """Prints the messages of a stream of that page."""
    wait_for(lambda: text_of("http://127.0.0.1:9464/readyz"), "the worker")
    if "<title>Try Millrace</title>" not in wait_for(lambda: text_of(page + "/"), "the page"):
        sys.exit("another page is served")

    async def stream():
        async with websockets.connect("ws://127.0.0.1:8080/v1/stream" + parameters, origin=page) as connection:
            await connection.send(samples(0, 1600))
            await connection.send('{"type":"end"}')
            async for message in connection:
                print(message)
    run(stream())


class Commands(unittest.TestCase):
    def streamed(self, name, page, parameters=""):
        """The first result of a stream, after these commands."""
        if subprocess.run([*WITHIN, "ip link set lo up"], capture_output=True).returncode != 0:
            self.skipTest("no network namespace can be made here")
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="millrace-"))
        Path(folder, "examples").symlink_to(ROOT / "examples")
        program = Path(folder, "build/release/service/millrace")
        program.parent.mkdir(parents=True)
        program.symlink_to(MILLRACE)
        commands = printed_programs.programs()[name].text
        done = subprocess.run([*WITHIN, f'ip link set lo up\n{commands}\nexec /usr/bin/python3 -B -c "$@"', "sh", CLIENT, page, parameters],
                              cwd=folder, env={**os.environ, "XDG_RUNTIME_DIR": folder, "PYTHONPATH": str(Path(__file__).parent)},
                              capture_output=True, text=True, timeout=2 * PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        # The server of the page prints a line too.
        ready, result, *_, closed = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        self.assertEqual([message["type"] for message in (ready, result, closed)], ["ready", "result", "closed"])
        return result

    def test_the_service_serves_the_page_and_explains_results(self):
        result = self.streamed("try_page", "http://127.0.0.1:8080", "?explain=1")
        self.assertIn("compute", result["explain"]["ms"])

    def test_another_server_serves_the_page(self):
        self.assertNotIn("explain", self.streamed("try_page_elsewhere", "http://127.0.0.1:8000"))


if __name__ == "__main__":
    unittest.main()
