# SPDX-License-Identifier: Apache-2.0
"""Tenants: their streams, pipelines and limits are apart, over each transport."""
import asyncio
import datetime
import hashlib
import json
import os
import signal
import subprocess
import tempfile
import time
import unittest

import client_wire as wire
import websockets
from harness import MILLRACE, PATIENCE, UNHURRIED, SystemTest, read_all, run, samples, wait_for
from zeromq_client import Peer

PIPELINES = """[[pipeline]]
name = "english"
chunk = { size = 1600 }
record = {}
[[pipeline]]
name = "german"
chunk = { size = 1600 }
"""


def tokens(*names, more=""):
    """The value of `tokens` of a tenant."""
    entries = ", ".join(f'{{ sha256 = "{hashlib.sha256(name.encode()).hexdigest()}"{more} }}' for name in names)
    return f"tokens = [{entries}]\n"


def tenant(name, *its_tokens, more="", limits=""):
    return f'[[tenant]]\nname = "{name}"\n{tokens(*its_tokens, more=more)}{limits}\n'


class TenantsTest(SystemTest):
    def serve(self, *tenants, access="", extra=""):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.file = os.path.join(self.folder, "tenants.toml")
        self.write(*tenants)
        self.serving = self.service(PIPELINES + extra, f'[access]\ntenants = "{self.file}"\n{access}'
                                    f'[recording]\ndirectory = "{self.folder}/recordings"\ncommit = "10ms"\n')
        self.worker = self.tap(self.serving, "english")
        return self.serving

    def write(self, *tenants):
        with open(self.file, "w") as file:
            file.writelines(tenants)

    def reload(self, event="configuration reloaded"):
        before = len(self.serving.errors)
        self.serving.process.send_signal(signal.SIGHUP)
        return wait_for(lambda: next((line for line in self.serving.errors[before:] if event in line), None), event)

    def connect(self, token, subprotocols=None, **parameters):
        parameters = {"pipeline": "english", "rate": 16000} | parameters
        return websockets.connect(self.serving.url(**parameters), extra_headers={"Authorization": f"Bearer {token}"},
                                  subprotocols=subprotocols, **UNHURRIED)

    async def refusal(self, token, **parameters):
        """The status of a refused upgrade; 101 if it is accepted."""
        try:
            async with self.connect(token, **parameters):
                return 101
        except websockets.InvalidStatusCode as refused:
            self.refused = refused.headers
            return refused.status_code


class Apart(TenantsTest):
    def test_two_tenants_have_streams_of_one_id_which_a_worker_list_and_recording_name_with_the_tenant(self):
        async def talk():
            async with self.connect("a", id="mic") as first, self.connect("b", id="mic") as second:
                names = [json.loads(await one.recv())["stream"] for one in (first, second)]
                listed = [one["stream"] for one in self.serving.streams()]
                for one in (first, second):
                    await one.send(samples(0, 1600))
                    await one.send('{"type":"end"}')
                    messages, code = await read_all(one)
                    self.assertEqual((messages[-1]["frames"], code), (1600, 1000))
                return names, sorted(listed)

        self.serve(tenant("acme", "a"), tenant("other", "b"))
        self.assertEqual(run(talk()), (["mic", "mic"], ["acme/mic", "other/mic"]))
        for name in ("acme/mic", "other/mic"):
            self.assertTrue(self.rows(self.worker, name))
        self.serving.process.send_signal(signal.SIGTERM)
        self.serving.process.wait(PATIENCE)
        recordings = [MILLRACE, "recordings"]
        folder = f"{self.folder}/recordings"
        subprocess.run([*recordings, "rm", folder, "--tenant", "acme"], check=True, capture_output=True, timeout=PATIENCE)
        kept = subprocess.run([*recordings, "ls", folder], check=True, capture_output=True, text=True, timeout=PATIENCE).stdout
        self.assertIn("other/mic", kept)
        self.assertNotIn("acme/mic", kept)

    def test_a_pipeline_of_others_is_forbidden_and_an_unknown_token_is_refused(self):
        async def talk():
            return [await self.refusal("a", pipeline="german"), await self.refusal("b", pipeline="english"),
                    await self.refusal("c"), await self.refusal("a")]

        self.serve(tenant("acme", "a", limits='pipelines = ["english"]'), tenant("other", "b", limits='pipelines = ["german"]'))
        self.assertEqual(run(talk()), [403, 403, 401, 101])
        with Peer(self.serving.zeromq_port) as peer:
            self.assertEqual(peer.open(token="a", pipeline="german").refusal["code"], "forbidden")
            self.assertEqual(peer.open(token="c", pipeline="english").refusal["code"], "unauthenticated")
            self.assertIsNone(peer.open(token="a", pipeline="english").refusal)

    def test_a_resume_token_of_another_tenant_is_refused(self):
        async def talk():
            async with self.connect("a", id="mic", resume="1") as mine:
                token = json.loads(await mine.recv())["resume"]
            beside = ["millrace.v1", "resume." + token]
            place = {"id": "mic", "resume": "1", "n": 0, "seq": 0, "from": 0, "skip": 0, "begin": 0, "commands": 0, "have": 0,
                     "flushed": 0}
            return await self.refusal("b", subprotocols=beside, **place)

        self.serve(tenant("acme", "a"), tenant("other", "b"))
        self.assertIn(run(talk()), (400, 403))

    def test_an_expired_token_is_refused(self):
        self.serve(tenant("acme", "a", more=", until = 2020-01-01T00:00:00Z"))
        self.assertEqual(run(self.refusal("a")), 401)

    def test_clients_of_a_tenants_own_listener_need_no_token(self):
        async def talk():
            async with websockets.connect(f"ws://127.0.0.1:{port}/v1/listen?sample_rate=16000&encoding=linear16", **UNHURRIED):
                return [one["stream"] for one in self.serving.streams()]

        with __import__("socket").socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.serve(tenant("acme"), extra='[[protocol]]\nname = "deepgram"\ntenant = "acme"\npipeline = "english"\n'
                   f'listen = "127.0.0.1:{port}"\n')
        self.assertEqual([name.split("/")[0] for name in run(talk())], ["acme"])


class Limits(TenantsTest):
    def test_streams_beyond_the_limit_are_refused_while_another_tenant_opens_some(self):
        async def talk():
            async with self.connect("a"), self.connect("a"):
                refused = await self.refusal("a")
                self.assertGreater(int(self.refused["Retry-After"]), 0)
                return [refused, await self.refusal("b")]

        self.serve(tenant("acme", "a", limits="streams = 2"), tenant("other", "b"))
        self.assertEqual(run(talk()), [429, 101])
        self.await_metric(self.serving, 1, "millrace_ingest_connections_rejected_total", transport="websocket", reason="limit_tenant")

    def test_opens_beyond_the_rate_are_refused_while_another_tenant_opens_some(self):
        async def talk():
            return [await self.refusal(one) for one in "aaab"]

        self.serve(tenant("acme", "a", limits='opens = "1/s"'), tenant("other", "b"))
        self.assertEqual(run(talk()), [101, 101, 429, 101])
        self.assertGreater(int(self.refused["Retry-After"]), 0)

    def test_a_tenant_that_sends_too_much_signal_is_not_read_meanwhile_and_another_one_is(self):
        async def send(name, order):
            async with self.connect(name) as connection:
                reading = asyncio.create_task(read_all(connection))
                for second in range(60):
                    await connection.send(samples(16000 * second, 16000))
                await connection.send('{"type":"end"}')
                messages, _ = await reading
                order.append((name, messages[-1]["frames"]))

        async def talk():
            order = []
            await asyncio.gather(send("a", order), send("b", order))
            return order

        self.serve(tenant("acme", "a", limits='signal = "5/s"'), tenant("other", "b"))
        self.assertEqual(run(talk()), [("b", 960000), ("a", 960000)])

    def test_a_reload_changes_the_limits_at_once_and_refuses_a_wrong_file(self):
        async def talk():
            async with self.connect("a"):
                self.write(tenant("acme", "a", limits="streams = 1"))
                self.assertIn("changed=access.tenants", self.reload())
                return await self.refusal("a")

        self.serve(tenant("acme", "a"))
        self.assertEqual(run(talk()), 429)
        self.write("[[tenant]]\nname = 1")
        self.assertIn("tenants.toml:2: key 'tenant.name': must be a string", self.reload("reload refused"))
        self.assertEqual(run(self.refusal("a")), 101)


class Ends(TenantsTest):
    def some_stream_waits(self):
        return not all(one["connected"] for one in self.serving.streams())

    def test_a_revoked_token_ends_its_streams_at_once_over_each_transport_and_those_of_others_continue(self):
        async def talk(peer):
            async with self.connect("a") as first, self.connect("b") as second, self.connect("a", id="lost", resume="1") as third:
                for one in (first, second, third):
                    await one.recv()
                await third.send(samples(0, 1600))
                await third.recv()
                third.transport.abort()
                await asyncio.to_thread(wait_for, self.some_stream_waits, "a stream that waits")
                over = peer.open(token="a", pipeline="english")
                stays = peer.open(token="b", pipeline="english")
                self.write(tenant("other", "b"))
                began = time.monotonic()
                self.reload()
                messages, code = await read_all(first)
                self.assertLess(time.monotonic() - began, 2)
                self.assertEqual((messages[-1]["code"], code), ("unauthenticated", 4401))
                self.assertEqual(over.rest()[-1]["code"], "unauthenticated")
                self.assertEqual(stays.send(samples(0, 1600)).command(wire.end).rest()[-1]["type"], "closed")
                await second.send(samples(0, 1600))
                await second.send('{"type":"end"}')
                messages, code = await read_all(second)
                self.assertEqual((messages[-1]["frames"], code), (1600, 1000))
            return await self.refusal("a")

        self.serve(tenant("acme", "a"), tenant("other", "b"))
        with Peer(self.serving.zeromq_port) as peer:
            self.assertEqual(run(talk(peer)), 401)
        self.assertTrue(any("lost" in line and "unauthenticated" in line for line in self.serving.errors))

    def test_a_stream_ends_when_its_token_expires_after_a_goaway(self):
        async def talk():
            async with self.connect("a") as connection:
                return await read_all(connection)

        until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=3)
        self.serve(tenant("acme", "a", more=f", until = {until.isoformat(timespec='seconds')}"))
        messages, code = run(talk())
        self.assertEqual([message["type"] for message in messages], ["ready", "goaway", "error"])
        self.assertEqual((messages[-1]["code"], code), ("unauthenticated", 4401))


if __name__ == "__main__":
    unittest.main()
