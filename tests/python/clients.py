# SPDX-License-Identifier: Apache-2.0
"""A service, and the addresses of its two transports, for tests of clients."""
from harness import SystemTest, wait_for

import millrace

TRANSPORTS = ("websocket", "zeromq")
PIPELINE = '[[pipeline]]\nslots = 2\nchunk = { size = 1600 }\nworker_wait = "1s"\n'
ROW = ("seq", "begin", "size", "flags", "reason", "gap", "mark", "crc32c")


class ClientTest(SystemTest):
    def setUp(self):
        self.served = self.service(PIPELINE)
        self.attached = self.tap(self.served, "default", "--data", "crc32c")

    def url(self, transport):
        return {"websocket": f"ws://127.0.0.1:{self.served.port}",
                "zeromq": f"tcp://127.0.0.1:{self.served.zeromq_port}"}[transport]

    def await_none_open(self):
        wait_for(lambda: not self.served.streams(), "no stream to be open")

    def urls(self):
        for transport in TRANSPORTS:
            with self.subTest(transport):
                yield self.url(transport)


def comparable(events):
    """Events without the data that differs from stream to stream."""
    return [(event.seq, event.begin, event.end, event.begin_s, event.end_s, event.flags,
             [event.data[field] for field in ROW]) if isinstance(event, millrace.Result) else event
            for event in events]
