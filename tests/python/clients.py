# SPDX-License-Identifier: Apache-2.0
"""A service with its two doors, for tests of clients."""
import json

from harness import SystemTest, wait_for

import millrace

DOORS = ("websocket", "zeromq")
PIPELINE = '[[pipeline]]\nslots = 2\nchunk = { size = 1600 }\nworker_wait = "1s"\n'
ROW = ("seq", "begin", "size", "flags", "reason", "gap", "mark", "crc32c")


class ClientTest(SystemTest):
    def setUp(self):
        self.served = self.service(PIPELINE)
        self.attached = self.tap(self.served, "default", "--data", "crc32c")

    def url(self, door):
        return {"websocket": f"ws://127.0.0.1:{self.served.port}",
                "zeromq": f"tcp://127.0.0.1:{self.served.zeromq_port}"}[door]

    def await_none_open(self):
        wait_for(lambda: json.loads(self.served.get("/streams")[1]) ["streams"] == [], "no stream to be open")

    def doors(self):
        for door in DOORS:
            with self.subTest(door):
                yield self.url(door)


def told(events):
    """What a client was told, without what differs from stream to stream."""
    return [(event.seq, event.begin, event.end, event.begin_s, event.end_s, event.flags,
             [event.data[field] for field in ROW]) if isinstance(event, millrace.Result) else event
            for event in events]
