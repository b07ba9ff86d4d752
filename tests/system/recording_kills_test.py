# SPDX-License-Identifier: Apache-2.0
"""A service that records is killed again and again: what was committed is there, and nothing that no client has sent."""
import asyncio
import json
import random
import signal
import subprocess
import tempfile
import unittest
import wave
from pathlib import Path

import websockets

from harness import ALL_INPUTS, MILLRACE, PATIENCE, SystemTest, run, samples

KILLS = 50 if ALL_INPUTS else 15
CLIENTS = 4
PIECE = 320  # frames of a message
UNREAD = 20  # messages of the service; a client that reads none is closed after 10 s, and its stream is whole
CONFIGURATION = """
[recording]
directory = "{directory}"
commit = "10ms"
file_size = "1MiB"
[[pipeline]]
chunk = {{ size = 320 }}
record = true
"""


class Kills(SystemTest):
    def setUp(self):
        super().setUp()
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.directory = self.folder / "recordings"

    def command(self, name, *arguments):
        return subprocess.run([MILLRACE, "recordings", name, self.directory, *arguments], capture_output=True, text=True,
                              timeout=PATIENCE)

    def listed(self):
        return {stream["name"]: stream for stream in map(json.loads, self.command("ls", "--json").stdout.splitlines())}

    def live(self, service, life, chance):
        """Kills the service after a random number of messages. Returns the streams that were recorded before."""
        to_look = chance.randrange(1, 400)
        left = {"look": to_look, "kill": to_look + chance.randrange(1, 100)}
        reached = {name: asyncio.Event() for name in left}

        async def client(number):
            try:
                async with service.connect(id=f"life-{life}-{number}") as connection:
                    for piece in range(100_000):
                        await connection.send(samples(first_of(life, number) + piece * PIECE, PIECE))
                        if piece >= UNREAD:
                            await connection.recv()
                        for name in left:
                            left[name] -= 1
                            if left[name] == 0:
                                reached[name].set()
            except (OSError, websockets.WebSocketException):
                pass  # killed

        async def lives():
            clients = [asyncio.create_task(client(number)) for number in range(CLIENTS)]
            await reached["look"].wait()
            before = await asyncio.to_thread(self.listed)
            await reached["kill"].wait()
            service.process.send_signal(signal.SIGKILL)
            await asyncio.gather(*clients)
            return before

        before = run(lives())
        service.wait()
        return before

    def test_after_each_kill_everything_that_was_committed_is_there(self):
        chance = random.Random(1)
        service = self.service(CONFIGURATION.format(directory=self.directory))
        numbers, committed = {}, 0
        for life in range(KILLS):
            tap = service.tap()
            before = self.live(service, life, chance)
            tap.kill()
            service.again()
            after = self.listed()
            committed += sum(stream["frames"] for stream in before.values() if stream["open"])
            for name, stream in before.items():
                self.assertGreaterEqual(after[name]["frames"], stream["frames"], name)
                self.assertEqual(after[name]["number"], stream["number"], name)
            for name, stream in after.items():
                self.assertFalse(stream["whole"], name)
                self.assertFalse(stream["open"], name)
                self.assertEqual(numbers.setdefault(stream["number"], name), name)  # no number is used twice
        self.assertGreater(len(numbers), KILLS)
        self.assertGreater(committed, 0)  # some kills came after a commit
        self.assertEqual(service.stop(), 0, service.errors)
        self.assertTrue(self.command("verify").stdout.splitlines()[-1].endswith("good"))
        self.check_frames()

    def check_frames(self):
        """The recorded frames of each stream are the first ones that its client has sent."""
        export = self.folder / "export"
        self.assertEqual(self.command("export", "--to", str(export)).returncode, 0)
        for line in map(json.loads, (export / "streams.jsonl").read_text().splitlines()):
            _, life, number = line["name"].split("-")
            for file in line["files"]:
                with wave.open(str(export / file["file"])) as audio:
                    count = audio.getnframes()
                    self.assertEqual(audio.readframes(count), samples(first_of(int(life), int(number)), count), line["name"])


def first_of(life, number):
    """The first sample of a stream, a different one for each."""
    return 1000 * (CLIENTS * life + number)


if __name__ == "__main__":
    unittest.main()
