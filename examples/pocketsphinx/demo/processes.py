# SPDX-License-Identifier: Apache-2.0
"""Processes that are gone when the demo is, whichever way it ends."""

import os
import signal
import subprocess


class Failure(Exception):
    """Something of the demo did not work; the message is for its user."""


class Processes:
    """Started in order, stopped in the reverse order. Each writes to a log of its own in `folder`
    unless its output is taken."""

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
            # A session of its own: Ctrl-C reaches the demo alone, which then stops them in order.
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=output,
                                       start_new_session=True, **options)
        self._started.append((name, process, log))
        return process

    def check(self):
        """Raises Failure if one has ended with an error."""
        for name, process, _ in self._started:
            if process.poll():
                raise Failure(f"{name} ended with exit status {process.returncode}:\n"
                              + self.log(name, last=12))

    def log(self, name, last=None):
        path = next(log for started, _, log in self._started if started == name)
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
        return "\n".join("  " + line for line in (lines[-last:] if last else lines))


def stop(process, grace):
    """SIGTERM, and after `grace` seconds SIGKILL. Its exit status."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait()
