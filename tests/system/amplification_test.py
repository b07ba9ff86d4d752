# SPDX-License-Identifier: Apache-2.0
"""No input of a client costs the io threads more than a hundred times the CPU that as many bytes of
frames cost them. CPU time of the threads counts, which other work on the machine does not change
much; each figure is the least of three."""
import contextlib
import os
import threading
import unittest

from faults import FaultTest, text
from harness import samples
from raw_client import BINARY, PING, PONG, TEXT, RawClient, frame, upgrade

CONTINUATION = 0
TALK = 320  # frames of a message, as a telephone sends them: 20 ms
MOST = 100
ROUNDS = 3
DEEP = b'{"type":' + b"[" * 1000 + b"}"


def commands(count, **message):
    return text(**message) * count


# What a client sends behind its upgrade, in a connection of its own.
INPUTS = {
    "empty messages": frame(BINARY, b"") * 20_000,
    "messages of a byte": frame(BINARY, b"\0") * 20_000,
    "fragments of a byte": (frame(BINARY, b"\0", fin=False) + frame(CONTINUATION, b"\0", fin=False) * 998
                            + frame(CONTINUATION, b"\0")) * 20,
    "empty fragments": (frame(BINARY, b"", fin=False) + frame(CONTINUATION, b"", fin=False) * 999
                        + frame(CONTINUATION, b"")) * 20,
    "empty pings": frame(PING, b"") * 20_000,
    "pings": frame(PING, b"p" * 125) * 5000,
    "pongs": frame(PONG, b"") * 20_000,
    "keepalives": commands(5000, type="keepalive"),
    "resets": commands(5000, type="reset"),
    "gaps": commands(2000, type="gap", frames=1),
    "flushes": commands(2000, type="flush"),
    "marks": commands(2000, type="flush", mark=7),
    "a value that is no number": frame(TEXT, DEEP),
    "a long command": frame(TEXT, b'{"type":"keepalive"' + b" " * 60_000 + b"}"),
    "a deep command": frame(TEXT, DEEP * 60),
    "bytes that are no UTF-8": frame(TEXT, b"\xff" * 1000),
}


class Amplification(FaultTest):
    def cpu(self):
        """Nanoseconds that the io threads have run."""
        total = 0
        folder = f"/proc/{self.service_.process.pid}/task"
        for thread in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):
                with open(f"{folder}/{thread}/comm") as name, open(f"{folder}/{thread}/schedstat") as times:
                    if name.read().startswith("io-"):
                        total += int(times.read().split()[0])
        return total

    def per_byte(self, data):
        """The least of some runs, each until the service has ended the stream."""
        def once():
            with RawClient(self.service_.port, upgrade()) as client:
                client.opened()
                before = self.cpu()
                # The service may stop reading until its messages are read.
                sender = threading.Thread(target=client.send, args=(data + text(type="end"),))
                sender.start()
                client.ended()
                sender.join()
                return (self.cpu() - before) / len(data)

        return min(once() for _ in range(ROUNDS))

    def test_no_input_costs_a_hundred_times_what_frames_do(self):
        self.service_ = self.served()
        if self.service_.sanitized():
            self.skipTest("a sanitizer costs some code much more than other code")
        frames = self.per_byte(b"".join(frame(BINARY, samples(i * TALK, TALK)) for i in range(1000)))
        for name, data in INPUTS.items():
            with self.subTest(name):
                self.assertLess(self.per_byte(data), MOST * frames)


if __name__ == "__main__":
    unittest.main()
