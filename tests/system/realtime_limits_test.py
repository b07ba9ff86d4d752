# SPDX-License-Identifier: Apache-2.0
"""Clients of /v1/realtime that are slow or silent, send much, or come in great numbers, and workers that hang. like A25 are
those of docs/internals/guarantees.md."""
import signal
import threading
import unittest

from harness import COUNTED, wait_for
from memory_test import ShortService
from memory_test import setUpModule as needs_a_mount_namespace
from raw_client import PATIENCE, PING, PONG, TEXT, RawClient, frame, upgrade
from raw_worker import Honest, RawWorker
from realtime_client import (COMMIT, COMPLETED, HEARD, MOST, PATH, RealtimeClient, RealtimeTest, append, event, longest, update)

MB = 1 << 20
CLOSED = "connections_closed"


class TimeLimits(RealtimeTest):
    SLOW = {"half a header": (upgrade(PATH)[:60], None),  # A9
            "nothing": (b"", None),  # A10
            "an empty fragment": (upgrade(PATH) + frame(TEXT, fin=False), 4408),  # A21
            "half a message": (upgrade(PATH) + append(bytes(4800))[:1000], 4408),  # A22
            "a fragment and pings": (upgrade(PATH) + frame(TEXT, fin=False) + frame(PING) * 3, 4408),  # A39
            "half a message of a stream": (upgrade(PATH) + append(bytes(9600)) + append(bytes(4800))[:1000], 4408)}
    FLOODS = {"commits": COMMIT, "updates": update(type="transcription"), "no events": event("dance"),
              "commits after audio": append(bytes(480)) + COMMIT}

    def test_a_client_that_does_not_go_on_or_does_not_read_is_ended_at_its_time_limit(self):  # A26 and those above
        """All at once, because these limits are 5 and 10 s."""
        service = self.heard()
        expected = {("connections_rejected", "handshake"): 2, (CLOSED, "idle"): 4, ("streams_closed", "idle"): 1,
                    (CLOSED, "slow_reader"): len(self.FLOODS), ("streams_closed", "error"): 1}

        def ended(reason):
            return service.metric("millrace_ingest_connections_closed_total", reason=reason)

        with self.moved(service, expected), self.unharmed(service) as good:
            before = service.peak_memory()
            for name, flood in self.FLOODS.items():
                with self.subTest(name):
                    self.client(service, receive_buffer=4096).block(flood * 1000)
                    good.row()
            slow = {name: RawClient(service.port, sent) for name, (sent, _) in self.SLOW.items()}
            for name, client in slow.items():
                with self.subTest(name), client:
                    code = self.SLOW[name][1]
                    if code:
                        RealtimeClient.opened(client)
                    self.assertEqual(RealtimeClient.ended(client), (code and "idle", code))
                    good.row()
            wait_for(lambda: good.row() or ended("slow_reader") == len(self.FLOODS), "the others to be ended", COUNTED)
            if not service.sanitized():
                self.assertLess(service.peak_memory() - before, 4 * MB)
            service.recount()
            expected["messages_rejected", "schema"] = self.counts(service)["messages_rejected", "schema"]


class Floods(RealtimeTest):
    def test_each_ping_is_answered_and_pongs_are_dropped(self):  # A25
        service = self.heard()
        with self.moved(service, {}), self.unharmed(service) as good:
            before = service.peak_memory()
            client = self.client(service)
            flood = threading.Thread(target=client.send, args=(frame(PING, b"p" * 125) * 20_000,))
            flood.start()
            for _ in range(20_000):
                self.assertEqual(client.frame(), (PONG, b"p" * 125))
            flood.join()
            client.updated().send(frame(PONG, b"p" * 125) * 20_000)
            self.is_whole(client)
            if not service.sanitized():
                self.assertLess(service.peak_memory() - before, 4 * MB)
            good.row()
            client.socket.close()

    def test_audio_of_1_mib_while_the_stream_is_paused_waits_and_all_is_transcribed(self):  # B16, B17
        service = self.service("[[pipeline]]\nslots = 8\nchunk = { size = 1600 }\n")
        worker = RawWorker(service.workers).attached().beat()
        self.addCleanup(worker.close)
        with self.moved(service, {}):
            client = self.client(service).updated()
            audio, large = append(bytes(48000)), frame(TEXT, longest("input_audio_buffer.append", "audio"))
            sending = threading.Thread(target=client.send, args=(audio * 60 + large + audio + COMMIT,))
            before = service.peak_memory()
            sending.start()
            self.await_metric(service, 1, "millrace_ingest_paused_connections")
            if not service.sanitized():
                self.assertLess(service.peak_memory() - before, 16 * MB)
            self.addCleanup(Honest(worker, HEARD).close)
            with self.unharmed(service):
                usage = client.until(COMPLETED)["usage"]
            seconds = 61 + (MOST - 47) // 4 * 3 / 48000
            self.assertAlmostEqual(usage["seconds"], seconds, delta=0.1)  # the resampler holds some samples
            sending.join()
            client.socket.close()


class Room(RealtimeTest):
    def test_connections_without_a_stream_are_bounded_by_half_of_the_limit(self):
        service = self.heard(extra="[limits]\nconnections = 200\n")
        with self.moved(service, {(CLOSED, "policy"): 20}), self.unharmed(service) as good:
            waiting = [self.client(service) for _ in range(100)]
            self.await_metric(service, 100, "millrace_ingest_waiting_connections")
            good.row()
            beyond = [self.client(service) for _ in range(20)]
            self.assertEqual({client.ended() for client in beyond}, {(None, 1013)})
            good.row()
            with self.unharmed(service):
                self.is_whole(waiting[0].updated())  # one that has a stream makes room
            wait_for(lambda: service.metric("millrace_ingest_waiting_connections") == 99, "room", COUNTED)
            for client in waiting:
                client.socket.close()

    def test_a_first_audio_that_finds_no_slot_is_closed_without_an_event(self):
        service = self.heard(slots=1)
        clients = [self.client(service).updated() for _ in range(2)]
        with self.moved(service, {(CLOSED, "policy"): 2}):
            with self.unharmed(service):
                for client in clients:
                    self.assertEqual(client.send(append(bytes(9600)) * 3).ended(), (None, 1013))
            self.is_whole(self.client(service).updated())

    def test_while_memory_is_short_connections_without_a_stream_are_closed_first(self):
        needs_a_mount_namespace()
        service = ShortService("[[pipeline]]\nchunk = { size = 1600 }\n")
        self.addCleanup(service.close)
        self.addCleanup(Honest(RawWorker(service.workers).attached().beat(), HEARD).close)
        with self.moved(service, {(CLOSED, "policy"): 5}), self.unharmed(service):
            waiting = [self.client(service).updated() for _ in range(5)]
            busy = self.client(service).updated()
            self.is_whole(busy)
            service.use(85)
            self.assertEqual({client.ended() for client in waiting}, {(None, 1013)})
            self.is_whole(busy)
            busy.socket.close()

    def test_when_the_service_stops_waiting_connections_are_closed_without_an_event(self):
        service = self.heard()
        waiting, busy = self.client(service), self.client(service).updated().send(append(bytes(9600)))
        wait_for(lambda: service.streams(), "its stream")
        service.process.send_signal(signal.SIGTERM)
        self.assertEqual(waiting.ended(), (None, 1012))
        self.assertEqual(busy.until(COMPLETED)["transcript"], "heard")
        self.assertEqual(busy.ended(), (None, 1012))
        for client in waiting, busy:
            client.socket.close()
        self.assertEqual(service.wait(), 0)


if __name__ == "__main__":
    unittest.main()
