# SPDX-License-Identifier: Apache-2.0
"""The processes of a run: the service and its workers. They end with the process that started them, even if it is killed."""
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
PATIENCE = 60  # seconds until a wait counts as failed; `timeout` ends a run earlier
SKIPPED = 77  # exit code
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


class Failed(Exception):
    """The run cannot continue."""


class Skipped(Exception):
    """The run needs what this machine does not have."""


def wait_for(condition, what, patience=PATIENCE):
    """Returns the first true value of condition()."""
    deadline = time.monotonic() + patience
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise Failed(f"waited in vain for {what}")
        time.sleep(0.01)
    return value


class Process:
    """A process. Keeps the lines of its standard output and error."""

    def __init__(self, *command, **environment):
        """To be called by the main thread: the process is killed when the thread that started it ends."""
        self.lines, self.errors = [], []
        self.ending = False
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment},
            preexec_fn=lambda: _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL))
        self.readers = [threading.Thread(target=self._read, args=pair, daemon=True) for pair in
                        ((self.process.stdout, self.lines), (self.process.stderr, self.errors))]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def _read(pipe, lines):
        for line in pipe:
            lines.append(line.rstrip("\n"))

    def await_line(self, find, what):
        """The first true value of find()."""
        def found():
            value = find()
            if not value and self.process.poll() is not None and not any(reader.is_alive() for reader in self.readers):
                raise Failed(f"waited for {what}, but the process ended with {self.process.returncode}: {self.last_words()}")
            return value

        return wait_for(found, what)

    def end(self, how=signal.SIGTERM):
        """Sends the signal and returns the exit code."""
        self.ending = True
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failed(f"a process does not end: {self.last_words()}") from None
        for reader in self.readers:
            reader.join(PATIENCE)
        return code

    def dead(self):
        """Whether it has ended by itself."""
        return not self.ending and self.process.poll() is not None

    def said(self, key):
        """The JSON objects with this key that it has printed so far."""
        return [entry for entry in (json.loads(line) for line in list(self.lines) if line.startswith("{")) if key in entry]

    def last_words(self):
        return " | ".join([*self.lines[-2:], *self.errors[-12:]])


class ClientProcess(Process):
    """clients.py. It ends by itself."""

    def __init__(self, *arguments):
        super().__init__(sys.executable, str(HERE / "clients.py"), *map(str, arguments))

    def dead(self):
        return bool(self.process.poll())

    def outcome(self):
        """Requires: it has ended."""
        self.end()
        return self.said("rows")[0]


class Service(Process):
    """`millrace serve` on a socket of its own, and on ports of loopback that stay the same."""

    def __init__(self, folder, configuration):
        self.folder = Path(folder)
        self.url = f"unix:{folder}/workers.sock"
        self.configuration = configuration
        self.websocket = self.admin = 0
        self.start()

    def start(self):
        """Also starts it again after its end."""
        file = self.folder / "millrace.toml"
        file.write_text(f'[listen]\nwebsocket = "127.0.0.1:{self.websocket}"\nadmin = "127.0.0.1:{self.admin}"\n'
                        f'zeromq = "off"\nworkers = "{self.url}"\n' + self.configuration)
        super().__init__(os.environ["MILLRACE"], "serve", "--config", str(file))
        line = self.await_line(lambda: next((line for line in list(self.errors) if "event=listening" in line), None),
                               "the service to listen")
        self.websocket, self.admin = (int(re.search(rf"{name}=\S*:(\d+)", line)[1]) for name in ("websocket", "admin"))
        self.clients = f"ws://127.0.0.1:{self.websocket}"

    def metrics(self):
        """The sums of all samples by name."""
        sums = {}
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=PATIENCE) as page:
            for line in page.read().decode().splitlines():
                if match := re.match(r"(\w+)(?:\{.*\})? (\S+)$", line):
                    sums[match[1]] = sums.get(match[1], 0) + float(match[2])
        return sums

    def mean_us(self, name):
        """The mean of a histogram of seconds, in microseconds; None if it is empty."""
        metrics = self.metrics()
        count = metrics.get(f"{name}_count", 0)
        return round(1e6 * metrics[f"{name}_sum"] / count, 1) if count else None


class Worker(Process):
    """worker.py."""

    def __init__(self, service, *arguments):
        super().__init__(sys.executable, str(HERE / "worker.py"), *arguments, MILLRACE_WORKERS=service.url)
        self.reported = 0  # figures that have been returned

    def await_attached(self):
        def attached():
            for entry in self.said("skipped"):
                raise Skipped(entry["skipped"])
            return self.said("attached")

        self.await_line(attached, "a worker to attach")

    def figures(self):
        """The figures since the last time."""
        self.process.send_signal(signal.SIGUSR1)
        self.await_line(lambda: len(self.said("batches")) > self.reported, "the figures of a worker")
        return self._new_figures()[0]

    def finish(self):
        """Ends it when its streams have ended. Returns its figures since the last time: one object per attachment."""
        code = self.end()
        if code:
            raise Failed(f"a worker ended with {code}: {self.last_words()}")
        return self._new_figures()

    def _new_figures(self):
        new = self.said("batches")[self.reported:]
        self.reported += len(new)
        return new
