# SPDX-License-Identifier: Apache-2.0
"""Streams that survive their connection (docs/resume.md): nothing is lost and nothing comes twice."""
import asyncio
import contextlib
import json
import os
import signal
import tempfile
import unittest

import websockets

from cutting_proxy import CuttingProxy
from harness import ALL_INPUTS, COUNTED, SystemTest, read_all, run, samples, wait_for
from resume_client import ResumingClient, refusal

ROW = 100  # frames
PIPELINE = f"[[pipeline]]\nslots = 64\nchunk = {{ size = {ROW} }}\n"
SESSION = [samples(0, 150), {"type": "flush", "mark": 7}, samples(150, 50), {"type": "message", "data": 1}, samples(200, 130),
           {"type": "set", "options": {"a": 2}}, {"type": "gap", "frames": 10}, samples(340, 77), {"type": "reset"},
           samples(417, 20), {"type": "end"}]
TOGETHER = 24  # sessions at a time


def part_of_the_model(row):
    """A row without what depends on the batch and on the name of the stream."""
    return {key: value for key, value in row.items() if key not in ("stream", "slot", "batch")}


def without_place(messages):
    """Messages without the number of the row from which the stream could be continued, which depends on time."""
    return [{key: part_of_the_model(value) if key == "data" else value for key, value in message.items() if key != "ack"}
            for message in messages]


class ResumeTest(SystemTest):
    def served(self, pipeline=PIPELINE, extra="", key=None):
        """A service with a worker that answers each row. `key`: whether its tokens outlive it."""
        if key:
            folder = tempfile.TemporaryDirectory(prefix="millrace-")
            self.addCleanup(folder.cleanup)
            path = os.path.join(folder.name, "resume_key")
            with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
                file.write(key)
            extra += f'[access]\nresume_key = "{path}"\n'
        service = self.service(pipeline, extra)
        self.tap_of(service)
        return service

    def tap_of(self, service):
        self.worker = self.tap(service, "default", "--data", "crc32c")
        return self.worker

    def client(self, service, **parameters):
        return ResumingClient(service.url(), **parameters)

    async def opened(self, service, rows=1, **parameters):
        """A client that has received some rows."""
        client = self.client(service, **parameters)
        await client.connect()
        await client.send(samples(0, rows * ROW))
        await client.receive_until("result", rows)
        return client

    def waiting(self, service, count):
        """Waits until this number of streams wait for their clients."""
        def names():
            return [stream["stream"] for stream in service.streams() if not stream["connected"]]

        wait_for(lambda: len(names()) == count, f"{count} streams to wait")
        return names()

    def assertNothingWaits(self, service):
        wait_for(lambda: service.metric("millrace_streams_detached") == 0, "the gauge to be 0", COUNTED)

    def assertContinues(self, client, rows):
        """Each row is there once, and in order."""
        results = [message for message in client.messages if message["type"] == "result"]
        self.assertEqual([result["seq"] for result in results], list(range(rows)))
        self.assertEqual([result["begin"] for result in results if result["begin"] != result["end"]],
                         [ROW * seq for seq in range(len([r for r in results if r["begin"] != r["end"]]))])


class Cuts(ResumeTest):
    """A session whose first connection is cut, at each of its bytes in both directions, is the session without a cut."""

    async def uncut(self, service):
        with contextlib.closing(CuttingProxy(service.port)) as proxy:
            client = self.client(service, first=proxy.url, id="uncut")
            return without_place(await client.finish(SESSION)), proxy.passed

    async def sessions(self, service, expected, cuts):
        wrong, names = [], []

        async def worker():
            with contextlib.closing(CuttingProxy(service.port)) as proxy:
                while cuts:
                    down, byte, proxy.hard = cut = cuts.pop()
                    proxy.limits = iter([(None, byte) if down else (byte, None)])
                    name = "{}-{}-{}".format(*cut)
                    client = self.client(service, first=proxy.url, id=name)
                    try:
                        got = without_place(await client.finish(SESSION))
                    except (AssertionError, websockets.WebSocketException) as error:
                        got = repr(error)
                    names.append((name, [ready.get("resumed") for ready in client.readies]))
                    if got != expected:
                        wrong.append((cut, got))

        await asyncio.gather(*(worker() for _ in range(TOGETHER)))
        return wrong, names

    def test_a_session_that_is_cut_at_any_byte_is_the_uncut_session(self):
        """The first connection of each session is ended or reset after this byte."""
        service = self.served()
        expected, counts = run(self.uncut(service))
        self.assertEqual(expected[-1]["type"], "closed")
        rows = [part_of_the_model(row) for row in self.rows(self.worker, "uncut")]
        cuts = [(down, byte, hard) for down in (False, True) for byte in range(1, counts[down] + 1) for hard in (False, True)
                if ALL_INPUTS or hard == byte % 2]
        wrong, names = run(self.sessions(service, expected, cuts))
        self.assertEqual(wrong[:3], [], f"{len(wrong)} wrong, of {len(names)}; expected {expected}")
        resumed = [ready for _, readies in names for ready in readies[1:]]
        self.assertGreater(resumed.count(True), len(names) // 2)
        wait_for(lambda: service.streams() == [], "the streams to end")
        by_stream = {}
        for row in map(json.loads, list(self.worker.lines)):
            by_stream.setdefault(row["stream"], []).append(part_of_the_model(row))
        again = [(name, readies, by_stream.get(name)) for name, readies in names if by_stream.get(name) != rows]
        self.assertEqual(again[:2], [], f"{len(again)} wrong, of {len(names)}; expected {rows}")
        self.assertNothingWaits(service)
        lost = service.metric("millrace_streams_resumed_total", state="lost")
        kept = service.metric("millrace_streams_resumed_total", state="kept")
        self.assertGreaterEqual(kept, resumed.count(True))  # a `ready` may have been lost
        self.assertLessEqual(lost, resumed.count(False))  # not counted: those that had received nothing


class Attachments(ResumeTest):
    def test_a_client_takes_its_stream_from_a_connection_that_still_stands(self):
        """On the same thread, or on another one: the kernel chooses the thread of each connection."""
        async def take_over(service, number):
            client = await self.opened(service, id=f"s{number}")
            for times in range(2):
                old = client.socket
                ready = await client.connect()
                self.assertEqual((ready["resumed"], ready["frames"], ready["commands"]), (True, ROW * (2 * times + 1), 0))
                error, code = await read_all(old)
                self.assertEqual([(m["type"], m["code"], "n" in m) for m in error if m["type"] != "ack"], [("error", "conflict", False)])
                self.assertEqual(code, 4409)
                await client.send(samples((2 * times + 1) * ROW, 2 * ROW))
                await client.receive_until("result", 2)
            await client.send({"type": "end"})
            await client.receive_until("closed")
            self.assertContinues(client, 6)

        async def all_of_them(service):
            await asyncio.gather(*(take_over(service, number) for number in range(40)))

        service = self.served()
        run(all_of_them(service))
        self.await_metric(service, 80, "millrace_streams_resumed_total", state="kept")
        self.await_metric(service, 0, "millrace_ingest_connections_rejected_total", reason="resume")

    def test_a_stream_that_waits_is_shown_and_counted_until_its_window_is_over(self):
        async def lost_for_a_while(service):
            client = await self.opened(service, rows=2, id="a")
            self.assertEqual([stream["connected"] for stream in await asyncio.to_thread(service.streams)], [True])
            client.cut()
            self.assertEqual(await asyncio.to_thread(self.waiting, service, 1), ["a"])
            await asyncio.to_thread(self.await_metric, service, 1, "millrace_streams_detached")
            await asyncio.to_thread(wait_for, lambda: service.streams() == [], "the window to be over")
            self.assertEqual((await client.connect())["resumed"], False)
            await client.send_again()
            await client.send({"type": "end"})
            await client.receive_until("closed")
            self.assertContinues(client, 3)

        service = self.served(extra='[limits]\nresume = "1500ms"\n')
        run(lost_for_a_while(service))
        self.assertNothingWaits(service)
        self.await_metric(service, 1, "millrace_streams_resumed_total", state="lost")
        self.assertEqual(service.metric("millrace_streams_resumed_total", state="kept"), 0)

    def test_a_new_stream_takes_the_slot_of_the_one_that_has_waited_for_the_longest_time(self):
        async def all_in_turn(service):
            first, second = await self.opened(service, id="first"), await self.opened(service, id="second")
            for client in first, second:
                client.cut()
                await asyncio.to_thread(self.waiting, service, 1 + (client is second))
            self.assertEqual(await asyncio.to_thread(refusal, first, n=99), (400, "schema", "n"))  # changes nothing
            third = await self.opened(service, id="third")
            self.assertEqual(await asyncio.to_thread(self.waiting, service, 1), ["second"])
            self.assertEqual((await first.connect())["resumed"], False)  # now the second one has no slot
            await first.send_again()
            self.assertEqual(await asyncio.to_thread(refusal, second), (503, "no_room", None))
            with self.assertRaises(websockets.InvalidStatusCode):
                await self.opened(service, id="fourth")
            for client in third, first:
                await client.send({"type": "end"})
                await client.receive_until("closed")
                self.assertContinues(client, 2)
            self.assertEqual((await second.connect())["resumed"], False)
            await second.socket.close()

        run(all_in_turn(self.served(f"[[pipeline]]\nslots = 2\nchunk = {{ size = {ROW} }}\n")))

    def test_a_service_that_stops_does_not_wait_for_clients(self):
        async def several(service):
            for _ in range(6):
                (await self.opened(service)).cut()

        service = self.served(extra='[limits]\ndrain = "1h"\nresume = "10min"\n')
        run(several(service))
        self.waiting(service, 6)
        self.assertEqual(service.stop(), 0)  # fails after PATIENCE, which is less than the window

    def test_a_stream_that_received_nothing_ends_with_its_connection(self):
        async def silent(service):
            client = self.client(service, id="a")
            await client.connect()
            client.cut()
            await asyncio.to_thread(wait_for, lambda: service.streams() == [], "the stream to end")
            self.assertEqual((await client.connect())["resumed"], False)
            await client.send(samples(0, ROW))
            self.assertEqual((await client.receive())["flags"], ["START", "RESET", "SEGMENT"])
            await client.send({"type": "end"})
            await client.receive_until("closed")

        with tempfile.TemporaryDirectory(prefix="millrace-") as folder:
            service = self.served(f"[[pipeline]]\nslots = 1\nchunk = {{ size = {ROW} }}\n[recording]\ndirectory = \"{folder}/r\"\n")
            run(silent(service))
            self.assertNothingWaits(service)

    def test_a_stream_without_resume_ends_with_its_connection(self):
        async def lost(service):
            for number in range(4):
                connection = await service.connect(rate=16000)
                ready = json.loads(await connection.recv())
                self.assertEqual(ready, {"type": "ready", "stream": ready["stream"], "pipeline": "default", "frames": 0})
                await connection.send(samples(0, ROW))
                self.assertEqual(json.loads(await connection.recv()).keys() & {"n", "ack"}, set())
                connection.transport.abort()
                await asyncio.to_thread(wait_for, lambda: service.streams() == [], "the slot to be free", patience=5)

        service = self.served(f"[[pipeline]]\nslots = 1\nchunk = {{ size = {ROW} }}\n")
        run(lost(service))
        self.assertNothingWaits(service)


class Restarts(ResumeTest):
    """The service is killed. With a key, the next process opens the streams anew."""

    PARTS = [samples(0, 250), {"type": "flush", "mark": 1}, samples(250, 150), {"type": "message", "data": "a"}, samples(400, 100),
             {"type": "set", "options": {"a": 1}}, {"type": "flush", "mark": 2}, samples(500, 250), {"type": "reset"},
             samples(750, 250), {"type": "end"}]

    async def begun(self, service, number, **parameters):
        """A client that has sent some parts, and has received some messages."""
        client = self.client(service, id=f"s{number}", **parameters)
        await client.connect()
        await client.send(*self.PARTS[:1 + number % (len(self.PARTS) - 1)])
        with contextlib.suppress(asyncio.TimeoutError):
            for _ in range(number // len(self.PARTS)):
                await asyncio.wait_for(client.receive(), 0.5)
        return client

    async def restarted(self, service, count, **parameters):
        clients = await asyncio.gather(*(self.begun(service, number, **parameters) for number in range(count)))
        service.stop(signal.SIGKILL)
        await asyncio.to_thread(service.again)
        await asyncio.to_thread(self.tap_of, service)
        return clients

    @staticmethod
    def outcome(client):
        return ([(m["seq"], m["begin"], m["end"]) for m in client.messages if m["type"] == "result"],
                [m["mark"] for m in client.messages if m["type"] == "flushed"])

    async def continued(self, service, client, expected):
        place = list(client.place)
        ready = await client.connect()
        self.assertEqual((ready["resumed"], ready["frames"], ready["commands"]), (False, place[1], place[2]))
        await client.send_again()
        await client.send(*self.PARTS[len(client.parts):])
        await client.receive_until("closed")
        self.assertEqual(self.outcome(client), expected, (ready, place))
        first = (await asyncio.to_thread(self.rows, self.worker, ready["stream"]))[0]
        self.assertEqual((first["seq"], first["begin"], first["reason"], first["flags"][0]),
                         (place[0], place[3], "failover" if any(place) else "start", "RESET" if any(place) else "START"))

    async def all_continued(self, service, count, **parameters):
        whole = self.client(service, **parameters)
        await whole.finish(self.PARTS)
        clients = await self.restarted(service, count, **parameters)
        await asyncio.gather(*(self.continued(service, client, self.outcome(whole)) for client in clients))

    def test_a_stream_that_is_opened_anew_loses_nothing_and_repeats_nothing(self):
        run(self.all_continued(self.served(key="4f" * 32), 60))

    def test_the_same_with_context_and_another_rate(self):
        pipeline = f"[[pipeline]]\nslots = 64\nchunk = {{ size = {ROW}, left = 30, right = 20 }}\n"
        run(self.all_continued(self.served(pipeline, key="4f" * 32), 60, rate=8000))

    def test_without_a_key_the_streams_of_the_process_before_are_unknown(self):
        async def all_of_them(service):
            for client in await self.restarted(service, 2):
                self.assertEqual(await asyncio.to_thread(refusal, client), (404, "unknown_stream", "resume"))

        service = self.served()
        run(all_of_them(service))
        self.await_metric(service, 2, "millrace_ingest_connections_rejected_total", reason="resume")


if __name__ == "__main__":
    unittest.main()
