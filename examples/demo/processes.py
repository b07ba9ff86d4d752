# SPDX-License-Identifier: Apache-2.0
"""Processes that are stopped when the demo ends, for any reason."""

import os
import signal
import subprocess


class Failure(Exception):
    """A part of the demo failed; the message is for the user."""


class Processes:
    """Processes that are stopped in the reverse order of their start. Each writes to its own log in `folder`, unless
    its output is redirected."""

    def __init__(self, folder):
        self._folder = folder
        self._started = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _, process, _ in reversed(self._started):
            stop(process, grace=2)

    def start(self, name, command, **options):
        log = os.path.join(self._folder, name + ".log")
        with open(log, "wb") as output:
            options.setdefault("stdout", output)
            # In a new session, so that Ctrl-C reaches only the demo, which then stops them in order.
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=output,
                                       start_new_session=True, **options)
        self._started.append((name, process, log))
        return process

    def check(self):
        """Raises Failure if a process has ended with an error."""
        for name, process, _ in self._started:
            if process.poll():
                raise Failure(f"{name} ended with exit status {process.returncode}:\n"
                              + self.log(name, last=12))

    def log(self, name, last=None):
        path = next(log for started, _, log in self._started if started == name)
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
        return "\n".join("  " + line for line in (lines[-last:] if last else lines))


def cpu_seconds(process):
    """Returns the time that a running process has computed so far."""
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def stop(process, grace):
    """Sends SIGTERM, and after `grace` seconds SIGKILL. Returns the exit status."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait()
