# SPDX-License-Identifier: Apache-2.0
"""The programs that are compared, as processes on loopback. They end with their `with` block."""
import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import tempfile
import time
from pathlib import Path

TIMEOUT = 60  # seconds; normally one is enough


class Failed(Exception):
    """A program did not end properly, or lost data."""


def _at(core, foremost):
    """Sets the core of a child process, and a high priority if that is permitted."""
    def begin():
        if core is not None:
            os.sched_setaffinity(0, {core})
        if not foremost:
            return
        with contextlib.suppress(OSError):
            os.setsid()  # a separate group for the scheduler
            os.setpriority(os.PRIO_PROCESS, 0, -15)
            Path("/proc/self/autogroup").write_text("-15")
    return begin


class Programs:
    """The programs of one build tree. With `pinned`, servers run on the second core and all else on the first.
    With `foremost`, they have a higher priority than the rest of the machine."""

    def __init__(self, build, pinned, foremost=True):
        self.build, self.foremost = Path(build), foremost
        cores = sorted(os.sched_getaffinity(0))
        pinned = pinned and len(cores) > 1
        self.server_core, self.client_core = (cores[1], cores[0]) if pinned else (None, None)
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def path(self, name):
        return str(self.build / ("service" if name == "millrace" else "bench") / name)

    def start(self, name, *arguments, core=None, **how):
        return subprocess.Popen([self.path(name), *arguments], preexec_fn=_at(core, self.foremost), text=True, **how)

    def run(self, name, *arguments, core=None, seconds=TIMEOUT, codes=(0,)):
        """The JSON in its last line of output. Raises Failed if its exit status is not in `codes`."""
        process = self.start(name, *arguments, core=core, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as late:
            process.kill()
            process.communicate()
            raise Failed(f"{name} has not ended after {seconds:.0f} s") from late
        if process.returncode not in codes:
            raise Failed(f"{name} {' '.join(arguments)}: {process.returncode}: {errors or output}")
        try:
            return json.loads(output.splitlines()[-1])
        except (IndexError, ValueError) as wrong:
            raise Failed(f"{name} printed no JSON: {output!r}") from wrong

    def load(self, port, server, arguments, seconds, strangers=False):
        """The report of `millrace bench`, which runs for `seconds`. With `strangers` its worker may get rows of
        streams that are not part of its run, and reports them; all other counts must be correct."""
        report = self.run("millrace", "bench", "--url", f"ws://127.0.0.1:{port}", "--server-pid", str(server),
                          "--json", *arguments, core=self.client_core, seconds=seconds + TIMEOUT,
                          codes=(0, 1) if strangers else (0,))
        if strangers and not well_but_for_strangers(report):
            raise Failed(f"wrong counts besides rows of other streams: {report}")
        return report


def well_but_for_strangers(report):
    worker = report["worker"]
    faults = [report[name] for name in ("broken", "failed", "repeated", "wrong", "lost_frames", "shed_frames")]
    faults += [worker[name] for name in ("damaged", "repeated", "unended", "shed_frames")]
    return not any(faults) and not report["refused"] and worker["ended"] == report["ended"]


class BareServer:
    """The control. `report` is its final report."""

    def __init__(self, programs, kind, warm_up=0, seconds=TIMEOUT):
        self.process = programs.start("bare_server", "--kind", *kind.split(), "--warm-up", str(warm_up),
                                      "--duration", str(seconds), core=programs.server_core, stdout=subprocess.PIPE)
        self.report = None
        line = self.process.stdout.readline()
        if not line.startswith("listening "):
            raise Failed(f"bare_server printed {line!r}")
        self.pid, self.port = self.process.pid, int(line.rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.send_signal(signal.SIGTERM)
        output, _ = self.process.communicate(timeout=TIMEOUT)
        if error[0] is None:
            if self.process.returncode != 0:
                raise Failed(f"bare_server: {self.process.returncode}")
            self.report = json.loads(output)


class Service:
    """`millrace serve` with one io thread and these pipelines."""

    def __init__(self, programs, pipelines):
        self.folder = tempfile.TemporaryDirectory(prefix="compare-")
        self.workers = f"unix:{self.folder.name}/workers.sock"
        config, self.log = Path(self.folder.name, "millrace.toml"), Path(self.folder.name, "log")
        config.write_text('[listen]\nthreads = 1\nwebsocket = "127.0.0.1:0"\nzeromq = "tcp://127.0.0.1:0"\n'
                          f'admin = "127.0.0.1:0"\nworkers = "{self.workers}"\n' + pipelines)
        with self.log.open("w") as log:
            self.process = programs.start("millrace", "serve", "--config", str(config), core=programs.server_core,
                                          stderr=log)
        self.pid, self.port = self.process.pid, self._listening()

    def _listening(self):
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline and self.process.poll() is None:
            found = re.search(r'websocket="?127\.0\.0\.1:(\d+)', self.log.read_text())
            if found:
                return int(found[1])
            time.sleep(0.01)
        self.process.kill()
        raise Failed(f"the service does not listen: {self.log.read_text()}")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        log = self.log.read_text()
        self.folder.cleanup()
        if error[0] is None and code != 0:
            raise Failed(f"the service ended with {code}: {log[-2000:]}")


def pipeline(name="default", slots=64, chunk="100ms", rows=64, max_wait="0ms", **more):
    lines = [f'{key} = {value}' for key, value in more.items()]
    return "\n".join(["[[pipeline]]", f'name = "{name}"', f"slots = {slots}", f'chunk = {{ size = "{chunk}" }}',
                      f'batch = {{ rows = {rows}, max_wait = "{max_wait}" }}', *lines, ""])
