# SPDX-License-Identifier: Apache-2.0
"""Runs the program under test: starts it, connects an independent client (Debian's python3-websockets), reads its output,
and ends every process that it started."""
import array
import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

import websockets

MILLRACE = os.environ["MILLRACE"]
ALL_INPUTS = "ALL_INPUTS" in os.environ  # set by `scripts/test --all`: tests take all of their inputs, and not a part
PATIENCE = 60  # seconds until a wait counts as failed; no test depends on speed
LIST_AGE = 0.1  # seconds for which the service keeps a list and answers with it again
# Parameters of a WebSocket client, which by default gives up after 10 s, and after 20 s without a pong.
UNHURRIED = {"open_timeout": PATIENCE, "close_timeout": PATIENCE, "ping_interval": None}
COUNTED = 0.1  # seconds between reads of counters, which are collected once a second


def wait_for(condition, what, every=0.01, patience=PATIENCE):
    """Returns the first true value of condition()."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(every)
    raise AssertionError(f"waited in vain for {what}")


def await_decoder(process):
    """Waits until a decoder has attached. It reads its model before, which takes seconds of CPU time."""
    wait_for(lambda: process.lines or process.process.poll() is not None, "the decoder to attach", patience=4 * PATIENCE)
    assert process.lines, process.errors


def fetch(url):
    """(status, text) of a GET to an admin port."""
    def answer():
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as page:
                return page.status, page.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError as error:  # the port closes a connection if its request comes 200 ms late
            if not isinstance(getattr(error, "reason", error), (ConnectionResetError, BrokenPipeError)):
                raise

    return wait_for(answer, url)


class Process:
    """A process. Keeps the lines of its standard output and error as they come."""

    def __init__(self, *arguments, environment=None, stdin=None):
        self.lines, self.errors = [], []
        self.process = subprocess.Popen(
            arguments, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **(environment or {})})
        self.readers = [threading.Thread(target=self._read, args=pair, daemon=True) for pair in
                        ((self.process.stdout, self.lines), (self.process.stderr, self.errors))]
        for reader in self.readers:
            reader.start()

    def await_ready(self, find, what):
        """Waits until find() returns a true value, and returns it. Kills the process if that fails."""
        try:
            return wait_for(find, what)
        except BaseException:
            self.kill()
            raise

    @staticmethod
    def _read(pipe, lines):
        for line in pipe:
            lines.append(line.rstrip("\n"))

    def state(self):
        """Its state as in ps: "T" if it is stopped."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0]

    def wait(self, patience=PATIENCE):
        code = self.process.wait(patience)
        for reader in self.readers:
            reader.join(PATIENCE)
        return code

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.wait()

    def kill(self):
        self.stop(signal.SIGKILL)
        self.process.stdout.close()
        self.process.stderr.close()


class Server(Process):
    """A program that listens, and that _start() starts."""

    def again(self):
        """Starts it again after it has ended, with the same configuration and ports."""
        wait_for(self._started, "its ports to be free")  # another test may use one for a while

    def _started(self):
        super().kill()
        try:
            self._start()
        except AssertionError as error:
            if "Address already in use" not in str(error):
                raise
            return False
        return True

    def _listening(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the service ended with {self.wait()}: " + "\n".join(self.errors))
        return next((line for line in self.errors if "event=listening" in line), None)


class Service(Server):
    """`millrace serve` on free ports of loopback."""

    program = MILLRACE

    def __init__(self, pipelines, extra="", descriptors=None, within=()):
        """`within`: a command that runs the program, and its first arguments."""
        self.folder = tempfile.TemporaryDirectory(prefix="millrace-")
        self.workers = f"unix:{self.folder.name}/workers.sock"
        self.config = os.path.join(self.folder.name, "millrace.toml")
        with open(self.config, "w") as file:
            file.write('[listen]\nthreads = 3\nwebsocket = "127.0.0.1:0"\nadmin = "127.0.0.1:0"\n'
                       'zeromq = "tcp://127.0.0.1:0"\n'
                       f'workers = "{self.workers}"\n' + extra + pipelines)
        self.limits = ("prlimit", f"--nofile={descriptors}:{descriptors}") if descriptors else within
        self._start()

    def _start(self):
        super().__init__(*self.limits, self.program, "serve", "--config", self.config, environment=self.environment())
        line = self.await_ready(self._listening, "the service to listen")
        self.workers_remote = re.search(r"workers_remote=(\S*)", line)[1]  # "off" by default
        self.port, self.admin_port, self.zeromq_port = (
            int(re.search(rf"{name}=\S*:(\d+)", line).group(1)) for name in ("websocket", "admin", "zeromq"))

    def again(self):
        with open(self.config) as file:
            config = file.read()
        for name, port in (("websocket", self.port), ("admin", self.admin_port), ("zeromq", self.zeromq_port),
                           ("workers_remote", self.workers_remote.rpartition(":")[2])):
            config = re.sub(rf'({name} = "\S*):0"', rf'\g<1>:{port}"', config)
        with open(self.config, "w") as file:
            file.write(config)
        super().again()

    def environment(self):
        """Additional environment variables of the process."""
        return {}

    def url(self, **parameters):
        query = "&".join(f"{key}={value}" for key, value in parameters.items())
        return f"ws://127.0.0.1:{self.port}/v1/stream" + ("?" + query if query else "")

    def connect(self, **parameters):
        return websockets.connect(self.url(**parameters), subprotocols=["millrace.v1"],
                                  max_size=None, compression=None, **UNHURRIED)

    def get(self, path):
        """(status, text) of a GET."""
        return fetch(f"http://127.0.0.1:{self.admin_port}{path}")

    def metric(self, name, **labels):
        """The sum of the samples that have these labels."""
        total, found = 0.0, False
        for line in self.get("/metrics")[1].splitlines():
            match = re.match(r"(\w+)(?:\{(.*)\})? (\S+)", line)
            if not match or match[1] != name:
                continue
            have = dict(re.findall(r'(\w+)="([^"]*)"', match[2] or ""))
            if all(have.get(key) == value for key, value in labels.items()):
                total, found = total + float(match[3]), True
        if not found:
            raise AssertionError(f"no metric {name} {labels}")
        return total

    def streams(self):
        """A dictionary for each live stream. The slot and the name of a stream that is not listed are free."""
        return self.listed("streams")

    def listed(self, what):
        """All "streams", or all "workers", collected during this call. Waits while the threads are too busy to answer."""
        time.sleep(LIST_AGE)  # nothing tells whether an answer is an earlier list

        def page():
            text = self.get("/" + what)[1]
            return "an io thread does not answer" not in text and json.loads(text)

        return wait_for(page, f"the list of {what}", COUNTED)[what]

    def recount(self):
        """Waits until everything that has happened so far is counted: the exporter collects at most once a second."""
        def beats():
            return self.metric("millrace_event_loop_lag_seconds_count")

        before = beats()
        wait_for(lambda: beats() != before, "the exporter to collect", COUNTED)

    def io_cpu(self):
        """Seconds of CPU that the io threads spent so far."""
        total, tasks = 0, f"/proc/{self.process.pid}/task"
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/comm") as name, open(f"{tasks}/{task}/schedstat") as spent:
                if name.read().startswith("io-"):
                    total += int(spent.read().split()[0])
        return total / 1e9

    def memory(self):
        """Bytes of resident memory."""
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def peak_memory(self):
        """The most bytes of resident memory so far."""
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(r"VmHWM:\s*(\d+) kB", file.read())[1]) << 10

    def sanitized(self):
        """Whether a sanitizer has its own memory in the process."""
        with open(f"/proc/{self.process.pid}/maps") as file:
            return re.search("lib[at]san", file.read()) is not None

    def addresses(self):
        return {"websocket": f"ws://127.0.0.1:{self.port}", "zeromq": f"tcp://127.0.0.1:{self.zeromq_port}"}

    def attached(self):
        """How many workers have attached so far."""
        return sum('event="worker attached"' in line for line in list(self.errors))

    def tap(self, pipeline="default", *more):
        """Starts `millrace tap`: a worker that answers each row with a line about the row."""
        tap = Process(MILLRACE, "tap", "--url", self.workers, "--pipeline", pipeline, *more)
        wait_for(lambda: f"pipeline {pipeline} " not in self.get("/readyz")[1], "the tap to attach")
        return tap

    def close(self):
        """Stops the service. Fails if it ended with an error, or if it printed an error of a sanitizer or assertion."""
        judged = self.process.poll() is not None  # the test has checked its end
        try:
            code = self.stop()
        finally:
            self.kill()
            self.folder.cleanup()
        complaints = [line for line in self.errors if re.search("Sanitizer|runtime error|ssertion|terminate", line)]
        if complaints or (code != 0 and not judged):
            raise AssertionError(f"the service ended with {code}: " + "\n".join(complaints or self.errors[-5:]))


class SystemTest(unittest.TestCase):
    """The base class of tests of the running program. Ends everything that a test started, in reverse order."""

    def service(self, pipelines='[[pipeline]]\nchunk = { size = 1600 }\n', extra="", descriptors=None, within=()):
        service = Service(pipelines, extra, descriptors, within)
        self.addCleanup(service.close)
        return service

    def tap(self, service, pipeline="default", *more):
        tap = service.tap(pipeline, *more)
        self.addCleanup(tap.kill)
        return tap

    def rows(self, tap, stream, flag="END"):
        """All rows of a stream at a tap, when one of them has this flag."""
        def seen():
            rows = [row for row in map(json.loads, list(tap.lines)) if row["stream"] == stream]
            return rows if any(flag in row["flags"] for row in rows) else None

        return wait_for(seen, f"the {flag} row of {stream}")

    def await_metric(self, service, value, name, **labels):
        """Waits until a metric has this value. The exporter collects at most once a second."""
        wait_for(lambda: service.metric(name, **labels) >= value, f"{name} to be {value}", COUNTED)
        self.assertEqual(service.metric(name, **labels), value)


@contextlib.asynccontextmanager
async def kept_open(connection):
    """Sends an empty message each second: a connection without a message for 30 s would be closed."""
    async def send():
        while True:
            await connection.send(b"")
            await asyncio.sleep(1)

    sending = asyncio.create_task(send())
    try:
        yield
    finally:
        sending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sending


async def read_all(connection):
    """Every message until the connection closes with any code; and this close code."""
    messages = []
    with contextlib.suppress(websockets.ConnectionClosed):
        async for message in connection:
            messages.append(json.loads(message) if isinstance(message, str) else message)
    return messages, connection.close_code


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, PATIENCE * 4))


PERIOD = 32749


def sample(position):
    """The value at a position of the stream. Never 0, which is padding."""
    return (position * 7 + 1) % PERIOD + 1


SAMPLES = array.array("h", map(sample, range(PERIOD)))


def samples(first, count):
    """The bytes of s16 samples from a position on. Requires a little-endian machine, as the protocol is little-endian."""
    begin = first % PERIOD
    return (SAMPLES * ((begin + count - 1) // PERIOD + 1))[begin:begin + count].tobytes()
