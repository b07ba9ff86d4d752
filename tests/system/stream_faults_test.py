# SPDX-License-Identifier: Apache-2.0
"""Valid messages in an invalid order or at an invalid position. Ids like C1 are those of docs/internals/guarantees.md."""
import unittest

from faults import PACKET, FaultTest, text
from harness import samples, wait_for
from raw_client import BINARY, RawClient, frame, upgrade

DATA = frame(BINARY, samples(0, PACKET))


class Order(FaultTest):
    def test_messages_after_the_end_are_rejected_and_a_second_end_does_nothing(self):  # C1
        service = self.service()  # there is no worker yet, so that the stream does not end
        with self.moved(service, {("messages_rejected", "unknown_stream"): 4}):
            with RawClient(service.port, upgrade()) as client:
                client.opened().send(DATA + text(type="end") + DATA + text(type="flush") + text(type="reset"))
                client.send(text(type="gap", frames=1) + text(type="end") + text(type="keepalive"))
                rejected = [client.message() for _ in range(4)]
                self.tap(service)
                messages = client.rest()
        self.assertEqual([(m["type"], m["code"], m["frames"]) for m in rejected], [("rejected", "unknown_stream", 0)] * 4)
        self.assertEqual(messages[-1], {"type": "closed", "frames": PACKET, "chunks": 1})

    def test_the_name_of_an_open_stream_is_refused(self):  # C1, C7
        service = self.served()
        with self.moved(service, {("connections_rejected", "parameter"): 1}):
            with self.unharmed(service, id="mine") as good:
                with RawClient(service.port, upgrade("/v1/stream?id=mine")) as client:
                    self.assertEqual(client.head()[0], 409)
                good.row()
            # The name is free when the service has seen the end of the connection.
            wait_for(lambda: not service.streams(), "the stream to be gone")
            with self.unharmed(service, id="mine"):
                pass


class Gaps(FaultTest):
    def rows_around(self, frames):
        """The rows of a stream with a gap of `frames` between its first and its second row."""
        service = self.service()
        tap = self.tap(service)
        with self.moved(service, {}), RawClient(service.port, upgrade("/v1/stream?id=a")) as client:
            client.opened().send(DATA + text(type="gap", frames=frames) + DATA + text(type="end"))
            self.assertEqual(client.rest()[-1], {"type": "closed", "frames": 2 * PACKET, "chunks": 2})
        return [(row["begin"], row["size"], row["flags"], row["reason"], row["gap"]) for row in self.rows(tap, "a")]

    def test_a_gap_is_counted_exactly_and_the_state_reset(self):  # C3
        for frames in (1, 100, 1 << 31, (1 << 53) - 1 - 2 * PACKET):
            with self.subTest(frames=frames):
                after = PACKET + frames
                self.assertEqual(self.rows_around(frames),
                                 [(0, PACKET, ["START", "RESET", "SEGMENT"], "start", 0),
                                  (PACKET, 0, ["LAST"], None, 0),
                                  (after, PACKET, ["RESET", "SEGMENT", "GAP"], "gap", frames),
                                  (after + PACKET, 0, ["LAST", "END"], None, 0)])

    def test_positions_end_at_2_to_the_53(self):  # C3, C5
        service = self.served()
        before = service.peak_memory()
        with self.moved(service, {("connections_closed", "policy"): 2, ("streams_closed", "error"): 2}):
            for last in (text(type="gap", frames=PACKET), DATA + DATA):
                with self.subTest(last=last[:20]), RawClient(service.port, upgrade()) as client:
                    client.opened().send(text(type="gap", frames=(1 << 53) - PACKET - 1) + last)
                    client.send(text(type="gap", frames=2))
                    self.assertEqual(client.ended(), ("values", 4422))
                    self.assertLess(service.peak_memory() - before, 8 << 20)


class Ends(FaultTest):
    def holds_nothing(self, service, closed):
        """Checks that the service holds nothing when `closed` streams are closed."""
        self.await_metric(service, closed, "millrace_streams_closed_total")
        self.assertEqual(service.metric("millrace_streams"), 0)
        self.assertEqual(service.metric("millrace_send_buffer_bytes"), 0)

    def test_an_end_makes_a_row_of_the_remaining_frames_and_frees_everything(self):  # C14
        service = self.service("[[pipeline]]\nslots = 1\nchunk = { size = 1600 }\n")
        tap = self.tap(service)
        for name in ("first", "second"):  # into the only slot
            with RawClient(service.port, upgrade(f"/v1/stream?id={name}")) as client:
                client.opened().send(frame(BINARY, samples(0, 2000)) + text(type="end"))
                self.assertEqual(client.rest()[-1], {"type": "closed", "frames": 2000, "chunks": 2})
            self.assertEqual([(row["begin"], row["size"], row["flags"]) for row in self.rows(tap, name)],
                             [(0, 1600, ["START", "RESET", "SEGMENT"]), (1600, 400, ["LAST", "END"])])
        self.holds_nothing(service, 2)

    def test_a_lost_client_frees_everything_even_if_there_is_no_worker(self):  # C15
        service = self.service("[[pipeline]]\nslots = 1\nchunk = { size = 1600 }\n")
        for _ in range(2):
            with RawClient(service.port, upgrade()) as client:
                client.opened().send(frame(BINARY, samples(0, 2000)))
            wait_for(lambda: not service.streams(), "the stream to be gone")
        self.holds_nothing(service, 2)


if __name__ == "__main__":
    unittest.main()
