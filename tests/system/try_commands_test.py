# SPDX-License-Identifier: Apache-2.0
"""The commands of examples/browser/README.md serve the page, and the service accepts streams from it. The commands of the
quickstart recognise speech. Their addresses are fixed, so they run in their own network namespace."""
import json
import os
import platform
import shutil
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
SPEECH = "/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-0880.wav"
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
    def run_within(self, commands, *arguments):
        """Runs commands in a folder like that of the repository, and returns their output."""
        if subprocess.run([*WITHIN, "ip link set lo up"], capture_output=True).returncode != 0:
            self.skipTest("no network namespace can be made here")
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="millrace-"))
        Path(folder, "examples").symlink_to(ROOT / "examples")
        program = Path(folder, "build/release/service/millrace")
        program.parent.mkdir(parents=True)
        program.symlink_to(MILLRACE)
        Path(folder, "build/release/demo").symlink_to(Path(os.environ["PYTHON"]).parents[1])
        shutil.copy(SPEECH, Path(folder, "speech.wav"))
        done = subprocess.run([*WITHIN, f"ip link set lo up\n{commands}", "sh", *arguments],
                              cwd=folder, env={**os.environ, "XDG_RUNTIME_DIR": folder, "PYTHONPATH": str(Path(__file__).parent)},
                              capture_output=True, text=True, timeout=2 * PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def streamed(self, name, page, parameters=""):
        """The first result of a stream, after these commands."""
        commands = printed_programs.programs()[name].text
        output = self.run_within(f'{commands}\nexec /usr/bin/python3 -B -c "$@"', CLIENT, page, parameters)
        # The server of the page prints a line too.
        ready, result, *_, closed = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        self.assertEqual([message["type"] for message in (ready, result, closed)], ["ready", "result", "closed"])
        return result

    def test_the_service_serves_the_page_and_explains_results(self):
        result = self.streamed("try_page", "http://127.0.0.1:8080", "?explain=1")
        self.assertIn("compute", result["explain"]["ms"])

    def test_another_server_serves_the_page(self):
        self.assertNotIn("explain", self.streamed("try_page_elsewhere", "http://127.0.0.1:8000"))

    @unittest.skipUnless(platform.machine() == "x86_64", "the weights are in a package for x86-64")
    def test_the_commands_of_the_quickstart_recognise_an_audio_file(self):
        service, worker, client = (line.partition("#")[0] for line in printed_programs.programs()["quickstart_recogniser"].text.splitlines())
        wait = "import try_commands_test as test; test.wait_for(lambda: test.text_of('http://127.0.0.1:9464/readyz'), 'the worker')"
        output = self.run_within(f"{service} & {worker} &\n/usr/bin/python3 -B -c \"{wait}\"\n{client}")
        self.assertRegex(output, r"(?m)^He was not an ill")


if __name__ == "__main__":
    unittest.main()
