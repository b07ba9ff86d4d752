# SPDX-License-Identifier: Apache-2.0
"""The Debian packages of scripts/packages: lintian, and their installation in the base image of the
containers, where the program runs with the command line of the unit and a notify socket."""
import configparser
import json
import re
import shutil
import socket
import subprocess
import sys
import unittest
from pathlib import Path

from container import Container, ServiceContainer, buildah, volume, wait_ready
from harness import PATIENCE, read_all, run, samples

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import printed_programs  # noqa: E402

PROGRAMS = printed_programs.programs()
PACKAGES = ROOT / "build" / "packages"
BASE = "docker.io/library/debian:bookworm-slim"


def package(name):
    (file,) = PACKAGES.glob(f"{name}_*.deb")
    return file


class Lintian(unittest.TestCase):
    def test_lintian_finds_no_error_and_no_warning(self):
        checked = subprocess.run(["lintian", "--fail-on", "error,warning", "--allow-root",
                                  package("millrace"), package("libmillrace-dev")], capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)


class Installed(unittest.TestCase):
    """A file system after `apt install ./millrace_*.deb`, with the attributes of container.Image."""

    @classmethod
    def setUpClass(cls):
        cls.container = buildah("from", "--pull-never", BASE)
        cls.addClassCleanup(buildah, "rm", cls.container)
        cls.root = buildah("mount", cls.container)
        folder = Path(cls.root, "root", PACKAGES.relative_to(ROOT))
        folder.mkdir(parents=True)
        for name in ("millrace", "libmillrace-dev"):
            shutil.copy(package(name), folder)
        Path(cls.root, "etc/apt/apt.conf.d/yes").write_text('APT::Get::Assume-Yes "true";')
        cls.run_inside("apt-get", "update", "-q")
        cls.before = cls.files()
        *_, install = PROGRAMS["deploy_package"].text.splitlines()
        cls.run_inside("env", "DEBIAN_FRONTEND=noninteractive", "sh", "-euc", f"cd /root; {install}")
        user, group = re.search(r"^millrace:x:(\d+):(\d+):", Path(cls.root, "etc/passwd").read_text(), re.MULTILINE).groups()
        cls.user = int(user)
        cls.settings = {"User": f"{user}:{group}", "Entrypoint": [], "Env": []}

    @classmethod
    def run_inside(cls, *command):
        return buildah("run", cls.container, "--", *command)

    @classmethod
    def apt(cls, *command):
        return cls.run_inside("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qy", *command)

    def libraries(self):
        return (f"/{file.relative_to(self.root)}" for file in Path(self.root, "root").glob("**/libmillrace-dev_*.deb"))

    @classmethod
    def files(cls):
        """All paths except those where dpkg and apt keep their state, and the backups of /etc/passwd."""
        paths = (str(path.relative_to(cls.root)) for path in Path(cls.root).rglob("*"))
        return {path for path in paths if not re.match(r"(proc|sys|dev|run|tmp|var/(cache|log|lib/(apt|dpkg)))/|etc/\w+-$", path)}

    def unit(self):
        unit = configparser.RawConfigParser(strict=False)
        unit.optionxform = str
        unit.read(f"{self.root}/lib/systemd/system/millrace.service")
        return unit["Service"]

    def test_the_service_notifies_that_it_is_ready_and_serves_a_worker_and_a_client(self):
        notifications = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(notifications.close)
        notifications.bind("\0millrace-packages-test")
        notifications.settimeout(PATIENCE)
        runtime = volume(self.user, int(self.unit()["RuntimeDirectoryMode"], 8))
        self.addCleanup(runtime.cleanup)
        self.settings["Cmd"] = self.unit()["ExecStart"].split()
        service = ServiceContainer(self, runtime.name, environment=["NOTIFY_SOCKET=@millrace-packages-test"])
        self.addCleanup(service.close)
        self.assertIn(b"READY=1", notifications.recv(4096).split(b"\n"))
        tap = Container(self, "/usr/bin/millrace", "tap", volume=runtime.name,
                        environment=["MILLRACE_WORKERS=unix:/run/millrace/workers.sock"])
        self.addCleanup(tap.kill)
        wait_ready(service)
        messages, _ = run(self.stream(service))
        self.assertEqual([messages[0]["type"], messages[-1]["type"], messages[-1]["frames"]], ["ready", "closed", 4000])
        self.assert_printed_commands_work(runtime.name)
        self.assertEqual(service.stop(), 0, service.errors)
        received = set()
        while b"STOPPING=1" not in received:
            received.update(notifications.recv(4096).split(b"\n"))

    def assert_printed_commands_work(self, runtime):
        """Runs the printed commands that try the service with a worker and a client. The container has the user millrace."""
        commands = PROGRAMS["deploy_package_try"].text.replace("runuser -u millrace -- ", "")
        tried = Container(self, "/bin/sh", "-euc", f"cd /run/millrace; {commands}", volume=runtime)
        self.addCleanup(tried.kill)
        self.assertEqual(tried.wait(), 0, tried.errors)
        messages = [json.loads(line) for line in tried.lines]
        self.assertEqual((messages[-1]["type"], messages[-1]["frames"]), ("closed", 32000))

    async def stream(self, service):
        async with service.connect() as connection:
            await connection.send(samples(0, 4000))
            await connection.send('{"type":"end"}')
            return await read_all(connection)

    def test_the_packages_of_the_library_can_be_installed_beside_it(self):
        self.assertIn("Inst libmillrace-dev", self.apt("install", "--simulate", *self.libraries()))

    def test_the_program_is_stripped_and_its_configuration_passes_its_check(self):
        described = subprocess.run(["file", f"{self.root}/usr/bin/millrace"], capture_output=True, text=True).stdout
        self.assertIn(", stripped", described)
        self.run_inside("millrace", "check-config", "/etc/millrace/millrace.toml")

    def test_z_a_removal_leaves_the_configuration_and_a_purge_leaves_nothing(self):
        self.apt("remove", "millrace")
        self.assertEqual([file.name for file in Path(self.root, "etc/millrace").iterdir()], ["millrace.toml"])
        self.assertFalse(Path(self.root, "usr/bin/millrace").exists())
        self.apt("purge", "--autoremove", "millrace")
        self.assertEqual(self.files() - self.before, set())


if __name__ == "__main__":
    unittest.main()
