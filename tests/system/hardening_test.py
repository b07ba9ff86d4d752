# SPDX-License-Identifier: Apache-2.0
"""docs/hardening.md: the blocks that it prints run one after another, as printed, in a folder instead of the root of a machine.
What each step promises is then asked of the service."""
import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from harness import MILLRACE, PATIENCE, Process, Service, SystemTest, fetch, wait_for

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import printed_programs as printed  # noqa: E402

PROGRAMS = printed.programs()
SYSTEMCTL = '#!/bin/sh\necho "$1" >>"$SYSTEMCTL_CALLS"\n'


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


class Unit(Service):
    """The service, started as the unit starts it: with the files of LoadCredential= as systemd presents them."""

    def __init__(self, root, config):
        self.root, self.config, self.limits = root, config, ()
        self._start()

    def _start(self):
        for drop_in in self.root.glob("etc/systemd/system/millrace.service.d/*.conf"):
            for name, path in re.findall(r"^LoadCredential=(\S+?):(\S+)$", drop_in.read_text(), re.MULTILINE):
                credential = self.root / "run/credentials/millrace.service" / name
                credential.parent.mkdir(parents=True, exist_ok=True)
                credential.unlink(missing_ok=True)
                credential.write_text(Path(path).read_text())
                credential.chmod(0o400)
        Process.__init__(self, MILLRACE, "serve", "--config", str(self.config))
        self.await_ready(self._listening, "the service to listen")


class Machine(SystemTest):
    """A folder in the place of the root of a machine."""

    def setUp(self):
        self.root = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for folder in ("home", "bin", "etc", "run/millrace"):
            (self.root / folder).mkdir(parents=True)
        (self.root / "run/millrace").chmod(0o700)
        (self.root / "bin/millrace").symlink_to(MILLRACE)
        (self.root / "bin/systemctl").write_text(SYSTEMCTL)
        (self.root / "bin/systemctl").chmod(0o755)
        self.port, self.admin_port = free_port(), free_port()
        self.serving = None

    def here(self, text):
        """A printed text with the paths, ports and names of this machine. A test need not be root, and has no user `millrace`."""
        for old, new in (("/etc/", f"{self.root}/etc/"), ("/run/", f"{self.root}/run/"), ("0.0.0.0:8443", "127.0.0.1:8443"), ("8443", str(self.port)),
                         ("9464", str(self.admin_port)), ("speech.example", "localhost"), ("-o root -g millrace -m 0640", "-m 0600"),
                         ("-o root -g millrace -m 0750", "-m 0700"), ("chown root:10001", "true")):
            text = text.replace(old, new)
        return text

    def step(self, name):
        """Runs a printed block, and then the calls of systemctl. Returns its output."""
        calls = self.root / "calls"
        calls.write_text("")
        done = subprocess.run(["/bin/sh", "-euc", self.here(PROGRAMS[name].text)], cwd=self.root / "home", capture_output=True, text=True, timeout=PATIENCE,
                              env={**os.environ, "PATH": f"{self.root}/bin:{os.environ['PATH']}:/usr/sbin:/sbin", "SYSTEMCTL_CALLS": str(calls)})
        self.assertEqual(done.returncode, 0, f"{name}: {done.stderr}")
        for call in calls.read_text().split():
            {"restart": self.restart, "reload": self.reload, "daemon-reload": lambda: None}[call]()
        return done.stdout

    def restart(self):
        if self.serving:
            self.assertEqual(self.serving.stop(), 0)
            self.serving.kill()
        self.serve(self.root / "etc/millrace/millrace.toml")

    def serve(self, config):
        self.serving = Unit(self.root, config)
        self.addCleanup(self.serving.kill)

    def reload(self):
        before = len(self.serving.errors)
        self.serving.process.send_signal(1)
        wait_for(lambda: [line for line in self.serving.errors[before:] if "configuration reloaded" in line], "the reload")

    def attach(self):
        tap = Process(MILLRACE, "tap", "--url", f"unix:{self.root}/run/millrace/workers.sock")
        self.addCleanup(tap.kill)
        wait_for(lambda: fetch(f"http://127.0.0.1:{self.admin_port}/readyz")[0] == 200, "the worker to attach")
        return tap

    def stream(self, *options, scheme="wss", ca="authority.pem"):
        """The exit code and the errors of a client that opens a stream."""
        authority = ("--ca", self.root / "home" / ca) if scheme == "wss" else ()
        done = subprocess.run([MILLRACE, "stream", "-", "--format", "s16le", "--rate", "16000", "--url", f"{scheme}://localhost:{self.port}", *authority, *options],
                              input=bytes(3200), capture_output=True, timeout=PATIENCE)
        return done.returncode, done.stderr.decode()

    def expiry(self):
        return float(re.search(r"^millrace_tls_certificate_expiry_seconds (\S+)$", fetch(f"http://127.0.0.1:{self.admin_port}/metrics")[1], re.MULTILINE)[1])

    def certificate(self):
        """The serial number of the certificate that clients get."""
        context = ssl.create_default_context(cafile=self.root / "home/authority.pem")
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as plain, context.wrap_socket(plain, server_hostname="localhost") as client:
            return client.getpeercert()["serialNumber"]


class Hardening(Machine):
    def test_each_step_has_the_effect_that_the_page_promises(self):
        self.step("hardening_files")
        tap = self.attach()
        self.assertEqual(self.stream(scheme="ws")[0], 0)
        self.step("hardening_certificate")
        tap.stop()
        self.step("hardening_tls")
        tap = self.attach()
        self.assertNotEqual(self.stream(scheme="ws")[0], 0)
        self.assertEqual(self.stream()[0], 0)
        tap.stop()
        self.step("hardening_tokens")
        tap = self.attach()
        self.assertIn("unauthenticated", self.stream()[1])
        self.assertEqual((self.root / "home/kitchen.token").stat().st_mode & 0o777, 0o600)
        self.step("hardening_client")
        self.step("hardening_tenants")
        self.assertEqual(self.stream("--token-file", self.root / "home/acme.token"), (0, ""))
        self.assertTrue([line for line in tap.lines if '"stream":"acme/' in line.replace(" ", "")], tap.lines[-3:])
        self.step("hardening_resume")
        tap.stop()
        self.step("hardening_public")
        self.assertRegex((self.root / "home/effective.toml").read_text(), r'(?m)^profile += "public"')
        tap = self.attach()
        self.step("hardening_client")
        listening = self.step("hardening_admin")
        self.assertIn(f"127.0.0.1:{self.admin_port} ", listening)
        tap.stop()
        self.step("hardening_credentials")
        tap = self.attach()
        self.step("hardening_client")
        before, expiry = self.certificate(), self.expiry()
        self.step("hardening_renewal")
        self.assertNotEqual(self.certificate(), before)
        self.assertGreaterEqual(self.expiry(), expiry)
        self.step("hardening_client")
        self.scanned(self.step("hardening_scan"))

    def scanned(self, output):
        """What sslscan found is what the page says."""
        protocols = dict(re.findall(r"^(SSLv\d|TLSv[\d.]+) +(enabled|disabled)$", output, re.MULTILINE))
        self.assertEqual({name for name, state in protocols.items() if state == "enabled"}, {"TLSv1.2", "TLSv1.3"}, output)
        self.assertEqual(len(protocols), 6, output)
        ciphers = re.findall(r"^(?:Preferred|Accepted) +(\S+) +(\d+) bits +(\S+)", output, re.MULTILINE)
        self.assertGreater(len(ciphers), 2, output)
        for version, bits, name in ciphers:
            self.assertGreaterEqual(int(bits), 128, name)
            self.assertRegex(name, "^TLS_(AES|CHACHA20)_" if version == "TLSv1.3" else "^ECDHE-.*(GCM|POLY1305)")
        self.assertIn("Session renegotiation not supported", output)
        self.assertEqual(len(re.findall("not vulnerable to heartbleed", output)), 2, output)

    def test_each_printed_step_of_the_page_runs_here(self):
        steps = {name for name in PROGRAMS if name.startswith("hardening_")} - {"hardening_tunnel"}
        with open(__file__) as file:
            self.assertEqual(steps, set(re.findall(r'step\("(hardening_\w+)"\)', file.read())))


class Containers(Machine):
    def test_the_printed_files_fit_the_configuration_of_the_containers(self):
        (self.root / "home/docker").mkdir()
        self.step("deploy_tls")
        folder = self.root / "home/docker/tls"
        if os.geteuid():
            (folder / "key.pem").chmod(0o600)  # 0640 needs root
        text = (printed.ROOT / "docker/compose.tls.toml").read_text()
        for old, new in (("/etc/millrace-tls", str(folder)), ("/run/millrace/private", f"{self.root}/run/millrace"), ("0.0.0.0:8080", f"127.0.0.1:{self.port}"),
                         ("0.0.0.0:9464", f"127.0.0.1:{self.admin_port}")):
            self.assertIn(old, text)
            text = text.replace(old, new)
        config = self.root / "compose.toml"
        config.write_text(text)
        self.serve(config)
        self.attach()
        self.assertEqual(self.stream("--token-file", folder / "token", ca="docker/tls/chain.pem"), (0, ""))
        self.assertIn("unauthenticated", self.stream(ca="docker/tls/chain.pem")[1])


if __name__ == "__main__":
    unittest.main()
