# SPDX-License-Identifier: Apache-2.0
"""The limits of `profile = "public"`: floods of one address and of many, through proxies; forged addresses; audio that is too fast."""
import asyncio
import socket
import ssl
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import websockets
from harness import COUNTED, MILLRACE, PATIENCE, UNHURRIED, Process, SystemTest, read_all, run, samples, wait_for
from raw_client import RawClient, upgrade
from tls_front import Authority

REFUSED = "millrace_ingest_connections_rejected_total"
PIPELINE = "[[pipeline]]\nslots = 2000\nchunk = { size = 1600 }\n"
HAPROXY = """defaults
  mode tcp
  timeout connect 10s
  timeout client 60s
  timeout server 60s
listen millrace
  bind 127.0.0.1:{port}
  server service 127.0.0.1:{service} send-proxy-v2 source 127.0.0.1
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class PublicProfileTest(SystemTest):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        made = subprocess.run([MILLRACE, "token", "new", "alice"], capture_output=True, text=True, check=True, timeout=PATIENCE)
        self.token, line = made.stdout.splitlines()
        Path(self.folder, "tenants.toml").write_text(f'[[tenant]]\nname = "acme"\ntokens = [{{ sha256 = "{line.split()[0]}" }}]\n')

    def public(self, proxies='["127.0.0.1"]', security="plain = true", tls=""):
        return self.service(PIPELINE, f'{security}\nproxies = {proxies}\n[access]\ntenants = "{self.folder}/tenants.toml"\n'
                                      f'[limits]\nprofile = "public"\n{tls}')

    def connect(self, url, address=None):
        headers = {"Authorization": f"Bearer {self.token}", **({"X-Forwarded-For": address} if address else {})}
        return websockets.connect(url, extra_headers=headers, max_size=None, compression=None, **UNHURRIED)

    def stream(self, serving, address):
        """A connection with a stream, which is not read."""
        client = RawClient(serving.port, upgrade("/v1/stream?rate=16000", Authorization=f"Bearer {self.token}", X_Forwarded_For=address))
        self.addCleanup(client.__exit__)
        return client

    @staticmethod
    def status(client):
        answer = client.socket.recv(4096)
        return int(answer.split(b" ", 2)[1])

    def statuses(self, serving, addresses):
        """How often each status was the answer to a request from each of these addresses, and the seconds that it took."""
        begin = time.monotonic()
        counts = {}
        for address in addresses:
            with RawClient(serving.port, upgrade("/v1/stream?rate=16000", Authorization=f"Bearer {self.token}",
                                                 X_Forwarded_For=address)) as client:
                status = self.status(client)
            counts[status] = counts.get(status, 0) + 1
        return counts, time.monotonic() - begin

    async def answered(self, url, address):
        """The frames that one stream had, with a result for each row."""
        async with self.connect(url, address) as connection:
            for first in range(0, 16000, 1600):
                await connection.send(samples(first, 1600))
                await asyncio.sleep(0.02)
            await connection.send('{"type":"end"}')
            messages, code = await read_all(connection)
        self.assertEqual(code, 1000, messages)
        self.assertEqual(sum(message["type"] == "result" for message in messages), 11)  # and the row with the end
        return messages[-1]["frames"]

    def test_a_flood_of_one_address_is_refused_and_another_address_loses_nothing(self):
        serving = self.public()
        self.tap(serving)
        url = serving.url(rate=16000)

        async def both():
            flood = asyncio.to_thread(self.statuses, serving, ["192.0.2.1"] * 1000)
            good = [await self.answered(url, "2001:db8::1") for _ in range(3)]
            return await flood, good

        (counts, seconds), good = run(both())
        self.assertEqual(good, [16000] * 3)
        self.assertLessEqual(counts[101], 41 + 20 * seconds)
        self.assertGreaterEqual(counts[101], 40)
        self.assertEqual(counts, {101: counts[101], 429: 1000 - counts[101]})
        self.await_metric(serving, counts[429], REFUSED, reason="limit_address")

    def test_an_address_has_64_connections(self):
        serving = self.public()
        clients = []
        for _ in range(64):
            def accepted():
                client = self.stream(serving, "192.0.2.1")
                return self.status(client) == 101 and client

            clients.append(wait_for(accepted, "the rate to allow a connection", 0.05))
        self.assertEqual([self.status(self.stream(serving, address)) for address in ("192.0.2.1", "192.0.2.2")], [429, 101])
        clients.pop().__exit__()
        wait_for(lambda: self.status(self.stream(serving, "192.0.2.1")) == 101, "the place of the connection that ended", 0.05)

    def test_a_flood_of_many_addresses_is_bounded(self):
        serving = self.public()
        self.tap(serving)
        counts, seconds = self.statuses(serving, [f"198.51.{i // 250}.{i % 250}" for i in range(1000)])
        self.assertLessEqual(counts[101], 401 + 200 * seconds)
        self.assertEqual(set(counts) - {101, 503}, set())
        wait_for(lambda: self.statuses(serving, ["192.0.2.1"])[0] == {101: 1}, "the rate to allow a connection", 0.05)

    def test_a_client_cannot_choose_its_address(self):
        serving = self.public()

        async def peer(address, expected):
            async with self.connect(serving.url(rate=16000, id="call"), address):
                (stream,) = serving.streams()
                self.assertRegex(stream["peer"], expected)

        run(peer("203.0.113.5, 192.0.2.1", r"^192\.0\.2\.1$"))
        run(peer("192.0.2.1, unknown", r"^127\.0\.0\.1:\d+$"))
        serving = self.public(proxies='["192.0.2.0/24"]')
        run(peer("203.0.113.5", r"^127\.0\.0\.1:\d+$"))

    def haproxy(self, serving):
        """The port of a HAProxy in front of the service."""
        port, config = free_port(), Path(self.folder, "haproxy.cfg")
        config.write_text(HAPROXY.format(port=port, service=serving.port))
        proxy = Process("/usr/sbin/haproxy", "-db", "-f", config)
        self.addCleanup(proxy.kill)

        def listens():
            with socket.socket() as client:
                return client.connect_ex(("127.0.0.1", port)) == 0

        wait_for(listens, "haproxy to listen")
        return port

    @staticmethod
    def from_address(address, port):
        return socket.create_connection(("127.0.0.1", port), PATIENCE, (address, 0))

    def test_haproxy_names_the_client(self):
        serving = self.public()
        port = self.haproxy(serving)
        with self.from_address("127.0.0.9", port) as client:
            client.sendall(upgrade("/v1/stream?rate=16000", Authorization=f"Bearer {self.token}"))
            self.assertIn(b" 101 ", client.recv(4096))
            (stream,) = serving.streams()
            self.assertEqual(stream["peer"], f"127.0.0.9:{client.getsockname()[1]}")
        statuses = []
        for _ in range(65):  # which stay open
            client = self.enterContext(self.from_address("127.0.0.10", port))
            client.sendall(upgrade("/v1/stream?rate=16000", Authorization=f"Bearer {self.token}"))
            statuses.append(client.recv(4096).split(b" ", 2)[1])
        self.assertEqual(statuses[:40], [b"101"] * 40)
        self.assertEqual(set(statuses), {b"101", b"429"})

    def test_haproxy_passes_tls_on_and_names_the_client(self):
        authority = Authority(self.folder)
        certificate, key = authority.certificate("service")
        serving = self.public(security="", tls=f'[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n')
        context = ssl.create_default_context(cafile=authority.ca)
        with self.from_address("127.0.0.9", self.haproxy(serving)) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as client:
                client.sendall(upgrade("/v1/stream?rate=16000", Authorization=f"Bearer {self.token}"))
                self.assertIn(b" 101 ", client.recv(4096))
                (stream,) = serving.streams()
                self.assertEqual(stream["peer"], f"127.0.0.9:{client.getsockname()[1]}")

    def test_a_client_of_ten_times_real_time_is_slowed_and_another_is_answered(self):
        serving = self.public()
        self.tap(serving)
        url = serving.url(rate=16000)

        async def flood(begun):
            async with self.connect(url, "192.0.2.1") as connection:
                begun.set()
                for first in range(0, 16 * 16000, 1600):
                    await connection.send(samples(first, 1600))
                    await asyncio.sleep(0.01)
                await connection.send('{"type":"end"}')
                return (await read_all(connection))[0][-1]

        async def both():
            begun = asyncio.Event()
            fast = asyncio.create_task(flood(begun))
            await begun.wait()
            begin = time.monotonic()
            await asyncio.to_thread(wait_for, lambda: serving.metric("millrace_ingest_paused_connections") == 1, "the pause", COUNTED)
            self.assertEqual(await self.answered(url, "192.0.2.2"), 16000)
            closed = await fast
            return closed, time.monotonic() - begin

        closed, seconds = run(both())
        self.assertEqual((closed["type"], closed["frames"]), ("closed", 16 * 16000))
        self.assertGreaterEqual(10 + 2 * seconds, 16)


if __name__ == "__main__":
    unittest.main(verbosity=2)
