# SPDX-License-Identifier: Apache-2.0
"""`shed_after`: clients of a service that cannot keep up are not paused, and learn how many frames were lost."""
import unittest

import worker_wire as wire
from faults import FaultTest, text
from harness import samples, wait_for
from raw_client import BINARY, PING, PONG, RawClient, frame, upgrade
from raw_worker import Honest, RawWorker

PACKET = 160  # frames, 10 ms
PIPELINE = '[[pipeline]]\nchunk = { size = "10ms" }\nshed_after = "100ms"\n'


class Shedding(FaultTest):
    def test_frames_that_wait_too_long_become_an_exact_gap_and_no_client_is_paused(self):  # F4
        service = self.service(PIPELINE)
        worker = RawWorker(service.workers).attached().beat()
        self.addCleanup(worker.close)
        sent = 0
        with RawClient(service.port, upgrade("/v1/stream?id=shed")) as client:
            def send_until_some_is_lost():
                nonlocal sent
                for _ in range(30):
                    client.send(frame(BINARY, samples(sent, PACKET)))
                    sent += PACKET
                return service.metric("millrace_stream_lost_audio_seconds_total", reason="overflow") > 1

            client.opened()
            wait_for(send_until_some_is_lost, "frames to be shed")
            self.assertEqual(client.send(frame(PING)).frame(), (PONG, b""))  # the service has read all frames
            honest = Honest(worker)
            self.addCleanup(honest.close)
            while client.message()["seq"] < 8:  # the rows that were ready; the next one is at the gap
                pass
            client.send(frame(BINARY, samples(sent, PACKET)) + text(type="end"))
            sent += PACKET
            messages = client.rest()
        rows = honest.rows
        lost = sum(row.gap for row in rows)
        self.assertEqual(messages[-1], {"type": "closed", "frames": sent - lost,
                                        "chunks": sum(row.size > 0 for row in rows)})
        self.assertGreater(lost, sent // 2)
        position = 0
        for row in rows:
            self.assertEqual(row.begin, position + row.gap)
            self.assertEqual("GAP" in wire.names(row.flags), row.gap > 0)
            position = row.begin + row.size
        self.assertEqual(position, sent)
        resets = [wire.REASONS[row.reason] for row in rows if row.size and row.flags & wire.RESET]
        self.assertEqual(resets[0], "start")
        self.assertEqual(set(resets[1:]), {"overflow"})
        self.assertEqual([m["begin"] for m in messages if m["type"] == "result"], [row.begin for row in rows])
        wait_for(lambda: round(16000 * service.metric(
            "millrace_stream_lost_audio_seconds_total", reason="overflow")) == lost, "all of it to be counted")
        self.assertEqual(service.metric("millrace_ingest_paused_seconds_total", transport="websocket"), 0)


if __name__ == "__main__":
    unittest.main()
