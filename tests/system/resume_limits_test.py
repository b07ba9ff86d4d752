# SPDX-License-Identifier: Apache-2.0
"""Clients that continue a stream (docs/resume.md) with bad input, too late, too often or in great numbers."""
import asyncio
import collections
import tempfile
import unittest

from faults import PACKET
from harness import read_all, run, samples, wait_for
from raw_client import BINARY, RawClient, frame
from resume_client import ResumingClient, refusal
from resume_faults import LimitsTest

REFUSED = "connections_rejected", "resume"
LONG = '[limits]\nresume = "10min"\n'
FAR = 2 ** 53
# Numbers of a client that has received one result of one row, and has sent no command.
NUMBERS = {name: [*wrong] for name, wrong in {"n": (2, FAR - 1), "seq": (2, FAR - 1), "from": (PACKET + 1, FAR - 1),
                                              "commands": (1, FAR - 1), "begin": (PACKET + 1, FAR - 1), "have": (2, FAR - 1),
                                              "flushed": (2, FAR - 1)}.items()}
MALFORMED = ["A" * 85 + "!", "A" * 4096, "token", "+/" * 43, "%41" * 20]


class BadInput(LimitsTest):
    def test_bad_tokens_and_numbers_are_refused(self):
        async def all_of_them(service):
            expected = collections.Counter()
            async with self.refusing(service, expected, id="a") as client:
                for token in [*MALFORMED, client.token[:-1], client.token + "A", f"x, resume.{client.token}"]:
                    self.refused(expected, client, (400, "schema", "resume"), token)
                other = "B" if client.token[20] == "A" else "A"
                self.refused(expected, client, (403, "forbidden", "resume"), client.token[:20] + other + client.token[21:])
                self.refused(expected, client, (404, "unknown_stream", "resume"), "A" * len(client.token))
                self.refused(expected, client, (400, "schema", "n"), " ", reason="parameter")  # no token, but numbers
                for name, values in NUMBERS.items():
                    for value in values:
                        self.refused(expected, client, (400, "schema", name), **{name: value})
                    for value in (FAR, -1, "1.0", "", "0x1", 2 ** 64):
                        self.refused(expected, client, (400, "schema", name), reason="parameter", **{name: value})

        run(all_of_them(self.served(extra=LONG)))

    def test_other_parameters_than_at_the_open_are_refused(self):
        async def all_of_them(service):
            expected = collections.Counter()
            async with self.refusing(service, expected, id="a", options='{"a":1}') as client:
                for changed in ({"format": "f32le"}, {"rate": 8000}, {"channels": 2}, {"options": '{"a":2}'}, {"options": None},
                                {"record": "no"}, {"chunk": PACKET}, {"rate": None}):
                    self.refused(expected, client, (400, "schema", None), **changed)
                self.refused(expected, client, (403, "forbidden", "resume"), id="b")
                self.refused(expected, client, (400, "schema", "resume"), reason="parameter", resume=None)
                self.refused(expected, client, (400, "schema", "id"), reason="parameter", id=None)

        run(all_of_them(self.served(extra=LONG)))

    def test_messages_that_were_acknowledged_do_not_come_again(self):
        async def forgetful(service):
            client = await self.opened(service, id="a")
            await client.acknowledge()
            await client.send(samples(PACKET, PACKET))
            await client.receive_until("result")
            self.assertEqual(await asyncio.to_thread(refusal, client, n=0), (400, "schema", "n"))
            await self.finished(client)

        service = self.served()
        with self.moved(service, {REFUSED: 1}), self.unharmed(service):
            run(forgetful(service))

    def test_frames_that_are_sent_before_ready_are_those_that_follow(self):
        async def early(service):
            client = await self.opened(service, id="a")
            await self.cut(service, client)
            client.parts.append(samples(PACKET, PACKET))
            with RawClient(service.port, client.request() + frame(BINARY, client.parts[-1])) as raw:
                self.assertEqual(raw.head()[0], 101)
                ready, result = raw.message(), raw.message()
                self.assertEqual((ready["frames"], result["seq"], result["n"]), (PACKET, 1, 1))
            client.token = ready["resume"]
            self.assertEqual((await client.connect())["frames"], 2 * PACKET)
            await client.receive_until("result")
            await self.finished(client)

        service = self.served()
        with self.unharmed(service):
            run(early(service))

    def test_numbers_at_which_no_stream_can_be_opened_anew_are_refused(self):
        async def all_of_them(service):
            client = await self.opened(service, id="a", rate=8000)
            client.have = 0
            await self.cut(service, client)
            await asyncio.to_thread(wait_for, lambda: service.streams() == [], "the window to be over")
            for changed in ({"begin": FAR - 1}, {"skip": 1}, {"begin": 1, "skip": 2}, {"from": 7}, {"set": "x"}):
                self.assertEqual((await asyncio.to_thread(refusal, client, **changed))[0], 400, changed)
            for changed in ({"n": FAR - 1}, {"have": FAR - 1, "flushed": FAR - 1}, {"seq": FAR - 1}, {"commands": FAR - 1}):
                self.assertEqual(await asyncio.to_thread(refusal, client, **changed), (101, None, None), changed)
                await asyncio.to_thread(wait_for, lambda: service.streams() == [], "the stream to end")

        service = self.served(extra='[limits]\nresume = "1s"\n')
        with self.unharmed(self.served()):
            run(all_of_them(service))

    def test_messages_that_acknowledge_too_much_end_the_stream(self):
        async def all_of_them(service):
            for parameters in {}, {"resume": None}:
                client = ResumingClient(service.url(), **parameters)
                query = {name: value for name, value in client.parameters.items() if value}
                async with service.connect(**query) as connection:
                    await connection.recv()
                    await connection.send(samples(0, PACKET))
                    await connection.recv()
                    await connection.send('{"type":"ack","n":2}')
                    messages, code = await read_all(connection)
                self.assertEqual((messages[-1]["code"], code), ("schema", 4400))

        service = self.served()
        with self.moved(service, {("connections_closed", "protocol"): 2, ("streams_closed", "error"): 2}), self.unharmed(service):
            run(all_of_them(service))


class Tokens(LimitsTest):
    def test_a_token_is_used_when_something_arrives_over_its_connection(self):
        async def twice(service, expected):
            with self.unharmed(service) as good:
                client = await self.opened(service, id="a")
                client.good, old = good, client.token
                for _ in range(3):  # nothing arrives
                    self.assertEqual((await client.connect(old))["resumed"], True)
                await client.send(samples(PACKET, PACKET))
                await client.receive()
                for _ in range(3):
                    await asyncio.to_thread(self.refused, expected, client, (409, "conflict", "resume"), old)
                await self.finished(client)

        service, expected = self.served(), collections.Counter({("connections_closed", "policy"): 3})
        with self.moved(service, expected):
            run(twice(service, expected))

    def test_of_two_connections_with_one_token_one_has_the_stream(self):
        async def pair(service, number):
            client = await self.opened(service, id=f"s{number}")
            twin = ResumingClient(client.url)
            twin.__dict__.update({**client.__dict__, "readies": list(client.readies), "messages": list(client.messages)})
            old = client.socket
            for outcome in await asyncio.gather(client.connect(), twin.connect(), return_exceptions=True):
                self.assertIn("resumed" if isinstance(outcome, dict) else "conflict", str(outcome))  # perhaps before its `ready`
            await read_all(old)
            over, _ = await asyncio.wait([asyncio.create_task(one.socket.wait_closed()) for one in (client, twin)],
                                         return_when=asyncio.FIRST_COMPLETED)
            lost, kept = (client, twin) if client.socket.closed else (twin, client)
            self.assertEqual((len(over), lost.socket.close_code, kept.socket.closed), (1, 4409, False))
            await self.finished(kept)

        async def pairs(service):
            await asyncio.gather(*(pair(service, number) for number in range(30)))

        service = self.served()
        with self.moved(service, {("connections_closed", "policy"): 60}), self.unharmed(service):
            run(pairs(service))

    def test_a_stream_that_has_continued_elsewhere_is_opened_anew_when_it_returns(self):
        async def there_and_back(here, there):
            client = await self.opened(here, id="a", rows=2)
            old = client.token
            await self.cut(here, client)
            client.url = there.url()
            self.assertEqual((await client.connect())["resumed"], False)
            await client.send_again()
            await client.send(samples(2 * PACKET, PACKET))
            await client.receive()
            await self.cut(there, client)
            client.url = here.url()
            self.assertEqual((await client.connect())["resumed"], False)
            await client.send_again()
            self.assertEqual(await asyncio.to_thread(refusal, client, old), (409, "conflict", "resume"))
            await self.finished(client)
            self.assertEqual((await client.connect())["resumed"], False)  # its token is known for 5 h
            await client.socket.close()

        with tempfile.NamedTemporaryFile("w", prefix="millrace-") as key:
            key.write("4f" * 32)
            key.flush()
            extra = f'{LONG}[access]\nresume_key = "{key.name}"\n'
            here, there = self.served(extra=extra), self.served(extra=extra)
            with self.unharmed(here), self.unharmed(there):
                run(there_and_back(here, there))
            self.assertEqual(there.stop(), 0)  # before its worker

    def test_a_token_is_for_its_pipeline(self):
        async def elsewhere(service):
            client = await self.opened(service, id="a", pipeline="default")
            for answer, pipeline in (((403, "forbidden", "resume"), "other"), ((404, "unknown_pipeline", "pipeline"), "third")):
                self.assertEqual(await asyncio.to_thread(refusal, client, pipeline=pipeline), answer)
            await self.finished(client)

        service = self.service("".join(f'[[pipeline]]\nname = "{name}"\nchunk = {{ size = {PACKET} }}\n' for name in ("default", "other")))
        self.tap(service)
        run(elsewhere(service))


class ManyTimes(LimitsTest):
    def test_a_connection_may_be_cut_while_it_takes_the_stream(self):
        async def cut_often(service):
            client = await self.opened(service, id="a")
            await self.cut(service, client)
            request = client.request()
            for count in range(200):
                with RawClient(service.port, request) as raw:
                    if count % 4 > 1:
                        raw.receive()
                    if count % 2:  # the service sees a reset
                        raw.abort()
            await asyncio.to_thread(wait_for, lambda: not all(s["connected"] for s in service.streams()), "the cuts")
            self.assertEqual((await client.connect())["resumed"], True)
            await self.finished(client)

        service = self.served(extra=LONG)
        with self.unharmed(service):
            run(cut_often(service))

    def test_a_client_may_resume_again_and_again(self):
        async def again_and_again(service):
            client = await self.opened(service)
            for count in range(500):
                if count % 3:
                    client.cut()
                self.assertEqual((await client.connect())["resumed"], True)
                if count % 5 == 0:
                    await client.send(samples(client.have * PACKET, PACKET))
                    while (await client.receive())["type"] != "result":
                        pass
            await self.finished(client)

        service = self.served(extra=LONG)
        with self.unharmed(service):
            run(again_and_again(service))

    def test_clients_that_connect_again_at_once_all_have_their_streams(self):
        async def at_once(service):
            clients = [await self.opened(service) for _ in range(200)]
            await self.cut(service, *clients)
            readies = await asyncio.gather(*(client.connect() for client in clients))
            self.assertEqual([ready["resumed"] for ready in readies], [True] * len(clients))
            await asyncio.gather(*(self.finished(client) for client in clients))

        service = self.served(slots=201, extra=LONG)
        with self.moved(service, {}), self.unharmed(service):
            run(at_once(service))

    def test_streams_that_wait_take_bounded_memory_and_no_slot_from_a_new_one(self):
        async def left(service, count):
            for _ in range(count):
                client = await self.opened(service)
                await client.send(samples(0, PACKET - 1))
                client.cut()

        service = self.served(slots=301, extra=LONG)
        with self.unharmed(service):
            run(left(service, 300))
            before = service.memory()
            run(left(service, 600))
            wait_for(lambda: sum(not stream["connected"] for stream in service.streams()) == 300, "the streams to wait")
            if not service.sanitized():
                self.assertLess(service.memory() - before, 16 << 20)
        self.assertEqual(service.stop(), 0)  # before its worker


class NoAcknowledgement(LimitsTest):
    def test_a_client_that_never_acknowledges_is_ended(self):
        async def silent(service):
            client = ResumingClient(service.url(), id="a")
            await client.connect()
            for number in range(400):
                await client.send(samples(number * PACKET, PACKET))
            messages, code = await read_all(client.socket)
            results = sum(message["type"] == "result" for message in messages)
            self.assertLess(results, 400)
            self.assertGreater(results, 60)
            self.assertEqual((messages[-1]["code"], code), ("slow_reader", 1008))

        async def obedient(service):
            client = ResumingClient(service.url(), id="b")
            await client.connect()
            for number in range(400):
                await client.send(samples(number * PACKET, PACKET))
                while (await client.receive())["type"] != "result":
                    pass
                if number % 20 == 0:
                    await client.acknowledge()
            await client.send({"type": "end"})
            await client.receive_until("closed")

        async def both(service):
            await asyncio.gather(silent(service), obedient(service))

        service = self.served(extra='[limits]\nresume_buffer = "64KiB"\n')
        with self.moved(service, {("connections_closed", "slow_reader"): 1, ("streams_closed", "error"): 1}), self.unharmed(service):
            run(both(service))


if __name__ == "__main__":
    unittest.main()
