# SPDX-License-Identifier: Apache-2.0
"""Clients of Deepgram's /v1/listen that do not read, or send much. Ids like A26 are those of docs/internals/guarantees.md."""
import threading
import unittest

from harness import COUNTED, wait_for
from listen_faults_test import CLOSE_STREAM, CLOSED, FINALIZE, ListenTest
from raw_client import BINARY, frame
from raw_worker import Honest, RawWorker
from realtime_client import HEARD, MOST, event

MB = 1 << 20


class Limits(ListenTest):
    FLOODS = {"Finalize": FINALIZE, "no messages": event("Dance"), "Finalize after audio": frame(BINARY, bytes(320)) + FINALIZE}

    def test_a_client_that_does_not_read_is_not_read_either_and_is_ended(self):  # A26
        """All at once, because the limit is 10 s."""
        service = self.heard()
        expected = {(CLOSED, "slow_reader"): len(self.FLOODS), ("streams_closed", "error"): len(self.FLOODS)}
        with self.moved(service, expected), self.unharmed(service) as good:
            before = service.peak_memory()
            for name, flood in self.FLOODS.items():
                with self.subTest(name):
                    self.client(service, receive_buffer=4096).block(flood * 1000)
                    good.row()

            def ended():
                return service.metric("millrace_ingest_connections_closed_total", reason="slow_reader")

            wait_for(lambda: good.row() or ended() == len(self.FLOODS), "them to be ended", COUNTED)
            if not service.sanitized():
                self.assertLess(service.peak_memory() - before, 4 * MB)
            service.recount()
            expected["messages_rejected", "schema"] = self.counts(service)["messages_rejected", "schema"]

    def test_audio_of_1_mib_while_the_stream_is_paused_waits_and_all_is_transcribed(self):  # B16, B17
        service = self.service("[[pipeline]]\nslots = 8\nchunk = { size = 1600 }\n")
        worker = RawWorker(service.workers).attached().beat()
        with self.moved(service, {}):
            client = self.client(service)
            sending = threading.Thread(target=client.send, args=(frame(BINARY, bytes(MOST)) * 3 + CLOSE_STREAM,))
            before = service.peak_memory()
            sending.start()
            self.await_metric(service, 1, "millrace_ingest_paused_connections")
            if not service.sanitized():
                self.assertLess(service.peak_memory() - before, 16 * MB)
            self.addCleanup(Honest(worker, HEARD).close)
            with self.unharmed(service):
                self.assertEqual(client.ended(), ("Metadata", 1000))
            self.assertAlmostEqual(client.messages[-1]["duration"], 3 * MOST / 2 / 16000, 3)
            sending.join()


if __name__ == "__main__":
    unittest.main()
