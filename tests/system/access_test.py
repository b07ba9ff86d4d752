# SPDX-License-Identifier: Apache-2.0
"""Tokens of clients: who may open a stream over each transport, reload, and that no output has a token."""
import os
import signal
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

import websockets
from harness import MILLRACE, PATIENCE, UNHURRIED, SystemTest, read_all, run, samples, wait_for
from zeromq_client import Peer

REFUSED = "millrace_ingest_connections_rejected_total"
PIPELINE = "[[pipeline]]\nchunk = { size = 1600 }\n"


def new_token(name):
    """A token, and its line for the file."""
    made = subprocess.run([MILLRACE, "token", "new", name], capture_output=True, text=True, check=True, timeout=PATIENCE)
    return made.stdout.splitlines()


class AccessTest(SystemTest):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.tokens, self.keys = (os.path.join(self.folder, name) for name in ("tokens", "resume_key"))
        self.token, self.line = new_token("alice")
        self.write(self.line)
        self.write_key("0" * 64)
        recording = f'[recording]\ndirectory = "{self.folder}/recordings"\ncommit = "10ms"\n'
        self.serving = self.service(PIPELINE + "record = { answers = true }\n",
                                    f'try_page = true\n[access]\ntokens = "{self.tokens}"\n'
                                    f'resume_key = "{self.keys}"\n{recording}')
        self.worker = self.tap(self.serving)

    def write(self, *lines):
        with open(self.tokens, "w") as file:
            file.writelines(line + "\n" for line in lines)

    def write_key(self, *lines):
        with open(os.open(self.keys, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.writelines(line + "\n" for line in lines)

    def reload(self, event):
        """The line of the log about a reload."""
        before = len(self.serving.errors)
        self.serving.process.send_signal(signal.SIGHUP)
        return wait_for(lambda: next((line for line in self.serving.errors[before:] if event in line), None), event)

    async def status(self, subprotocols=None, **fields):
        """The status of an upgrade: 101 after a stream was answered to its end."""
        headers = {name.replace("_", "-"): value for name, value in fields.items()}
        try:
            async with websockets.connect(self.serving.url(rate=16000), extra_headers=headers, max_size=None,
                                          subprotocols=subprotocols, **UNHURRIED) as connection:
                self.assertEqual(connection.subprotocol, subprotocols and "millrace.v1")
                await connection.send(samples(0, 1600))
                await connection.send('{"type":"end"}')
                messages, code = await read_all(connection)
                self.assertEqual((messages[-1]["frames"], code), (1600, 1000))
                return 101
        except websockets.InvalidStatusCode as refused:
            return refused.status_code

    def statuses(self, *requests):
        async def ask():
            return [await self.status(**request) for request in requests]

        return run(ask())

    def get(self, path, **fields):
        request = urllib.request.Request(f"http://127.0.0.1:{self.serving.port}{path}", headers=fields)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            with error:
                self.assertNotIn(self.token, error.read().decode())
                return error.code

    def command(self, token, name, *arguments):
        """(exit code, output) of a command with this token."""
        path = os.path.join(self.folder, "token")
        with open(path, "w") as file:
            file.write(token)
        ended = subprocess.run([MILLRACE, name, "--token-file", path, *arguments], input="\0" * 3200, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
        self.assertNotIn(token, ended.stdout)
        return ended.returncode, ended.stdout


class Access(AccessTest):
    def test_a_stream_over_websocket_needs_a_token_in_any_of_its_forms(self):
        bearer, beside = f"Bearer {self.token}", ["millrace.v1", "token", self.token]
        self.assertEqual(self.statuses({"Authorization": bearer}, {"Authorization": f"token {self.token}"},
                                       {"subprotocols": beside},
                                       {"subprotocols": [f"openai-insecure-api-key.{self.token}", "millrace.v1"]}),
                         [101] * 4)
        self.assertEqual(self.statuses({}, {"Authorization": bearer[:-1]}, {"Authorization": bearer + "x"},
                                       {"Authorization": f"Basic {self.token}"}, {"X_Token": self.token},
                                       {"subprotocols": beside, "Authorization": "Bearer other"}), [401] * 6)
        self.assertEqual(self.get(f"/v1/stream?token={self.token}"), 401)
        self.await_metric(self.serving, 6, REFUSED, transport="websocket", reason="unauthenticated")

    def test_the_page_and_health_checks_need_no_token(self):
        authorized = {"Authorization": f"Bearer {self.token}"}
        self.assertEqual([self.get(path) for path in ("/", "/page.js", "/livez", "/v1/pipelines", "/v1/stream")],
                         [200, 200, 200, 401, 401])
        self.assertEqual([self.get(path, **authorized) for path in ("/v1/pipelines", "/v1/stream", "/none")], [200, 426, 404])

    def test_a_stream_over_zeromq_needs_a_token_in_its_open(self):
        with Peer(self.serving.zeromq_port) as peer:
            for wrong in ({}, {"token": ""}, {"token": self.token[:-1]}):
                self.assertEqual(peer.open(**wrong).refusal["code"], "unauthenticated")
            self.assertIsNone(peer.open(token=self.token).refusal)
        self.await_metric(self.serving, 3, REFUSED, transport="zmq", reason="unauthenticated")

    def test_commands_send_the_token_over_both_transports(self):
        for url in self.serving.addresses().values():
            for command in (("stream", "--url", url, "--format", "s16le", "--rate", "16000", "-"),
                            ("bench", "--url", url, "--streams", "2", "--duration", "1s", "--warm-up", "0s")):
                with self.subTest(url=url, command=command[0]):
                    code, output = self.command(self.token, *command)
                    self.assertEqual(code, 0, output)
                    code, output = self.command(self.token[::-1], *command)
                    self.assertEqual(code, 1, output)
                    self.assertRegex(output, "not accepted|refused: (401|unauthenticated)")

    def test_a_reload_reads_the_file_again_and_keeps_the_list_if_the_file_is_wrong(self):
        old = {"Authorization": f"Bearer {self.token}"}
        token, line = new_token("bob")
        new = {"Authorization": f"Bearer {token}"}
        self.write(line)
        self.assertIn("changed=access.tokens", self.reload("configuration reloaded"))
        self.assertEqual(self.statuses(old, new), [401, 101])
        self.write(self.line, "oops")
        self.assertIn("line 2: must be the SHA-256", self.reload("reload refused"))
        self.assertEqual(self.serving.metric("millrace_config_last_reload_successful"), 0)
        self.assertEqual(self.statuses(old, new), [401, 101])
        self.write()
        self.reload("configuration reloaded")
        self.assertEqual(self.statuses(old, new), [401, 401])

    def test_a_reload_reads_the_keys_again_and_changes_nothing_if_others_can_read_them(self):
        def changed(event):
            return "changed=access.resume_key" in self.reload(event)

        self.write_key("1" * 64, "0" * 64)
        self.assertTrue(changed("configuration reloaded"))
        self.assertFalse(changed("configuration reloaded"))
        self.write_key("2" * 64)
        os.chmod(self.keys, 0o644)
        self.write()
        self.assertIn("has mode 0644", self.reload("reload refused"))
        self.assertEqual(self.statuses({"Authorization": f"Bearer {self.token}"}), [101])  # nor the tokens
        os.chmod(self.keys, 0o600)
        self.write(self.line)
        self.write_key("1" * 64, "0" * 64)
        self.assertFalse(changed("configuration reloaded"))  # the keys in use

    def test_no_output_of_the_service_has_a_token(self):
        wrong = new_token("mallory")[0]
        self.statuses(*({"Authorization": f"Bearer {token}"} for token in (self.token, wrong)),
                      *({"subprotocols": ["millrace.v1", "token", token]} for token in (self.token, wrong)))
        with Peer(self.serving.zeromq_port) as peer:
            for token in (wrong, self.token):
                peer.open(token=token)
            outputs = [self.serving.get(path)[1] for path in ("/metrics", "/streams", "/workers", "/log", "/status")]
        self.assertEqual(self.serving.stop(), 0)
        outputs += self.serving.errors + self.serving.lines + self.worker.lines
        for folder, _, names in os.walk(os.path.join(self.folder, "recordings")):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    outputs.append(file.read().decode("latin-1"))
        self.assertTrue(any("alice" not in output and len(output) > 1000 for output in outputs))
        for token in (self.token, wrong):
            self.assertFalse([output for output in outputs if token in output])


class Start(SystemTest):
    def test_a_wrong_file_of_tokens_or_keys_ends_the_program_before_it_listens(self):
        for key in ("tokens", "resume_key"):
            with self.subTest(key=key), tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
                file.write(f'[access]\n{key} = "/nowhere"\n')
                file.flush()
                ended = subprocess.run([MILLRACE, "serve", file.name], capture_output=True, text=True, timeout=PATIENCE)
                self.assertEqual((ended.returncode, ended.stderr.count("\n")), (1, 1))
                self.assertIn(f"millrace: {file.name}: key 'access.{key}' = \"/nowhere\": cannot be read", ended.stderr)


if __name__ == "__main__":
    unittest.main()
