# SPDX-License-Identifier: Apache-2.0
"""Servers of batches, `millrace train-serve`, and the streams that they serve."""
import array
import random
import re
import signal
import wave

from harness import MILLRACE, Server, fetch, wait_for

PLAN = """
[plan]
streams = "{speech}"
chunk = {{ size = "10ms" }}
{slots}
dtype = "f32"
seed = 7
{more}
"""


def write_speech(folder, streams=12, seed=1):
    """Files of noise of 0.1 to 0.5 s. Returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    values, paths = random.Random(seed), []
    for number in range(streams):
        paths.append(folder / f"s{number:02}.wav")
        with wave.open(str(paths[-1]), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(16000)
            frames = (values.randrange(-30000, 30000) for _ in range(values.randrange(1600, 8000)))
            file.writeframes(array.array("h", frames).tobytes())
    return paths


class TrainServer(Server):
    """Serves the plan above. It listens on a Unix socket and on TCP; `again` starts it at the same addresses."""

    def __init__(self, folder, name="server", more="", port=0, slots="slots = 4", limit="4GiB"):
        self.folder, self.name, self.more, self.port, self.slots, self.limit = folder, name, more, port, slots, limit
        self._start()

    def _start(self):
        socket = self.folder / f"{self.name}.sock"
        config = self.folder / f"{self.name}.toml"
        config.write_text(f'[listen]\nworkers = "unix:{socket}"\nworkers_remote = "tcp://127.0.0.1:{self.port}"\n'
                          f'admin = "127.0.0.1:0"\n[limits]\nslab_bytes = "{self.limit}"\n' + PLAN.format(speech=self.folder / "speech", more=self.more, slots=self.slots))
        super().__init__(MILLRACE, "train-serve", str(config))
        line = self.await_ready(self._listening, "the server to listen")
        self.unix = f"unix:{socket}"
        self.tcp = re.search(r"workers_remote=(\S+)", line)[1]
        self.port = self.tcp.rsplit(":", 1)[1]
        self.admin = re.search(r"admin=(\S+)", line)[1]

    def metric(self, name, labels=""):
        text = fetch(f"http://{self.admin}/metrics")[1]
        return float(re.search(rf"^{name}{re.escape(labels)} (\S+)$", text, re.MULTILINE)[1])

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)
        wait_for(lambda: self.state() == "T", "the stop")

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)
