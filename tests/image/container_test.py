# SPDX-License-Identifier: Apache-2.0
"""The images as an engine runs them: PID 1, user 10001, a read-only root, no capabilities (G18)."""
import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest
import wave
from pathlib import Path

import yaml
from container import USER, Container, Image, ServiceContainer, volume, wait_ready
from harness import read_all, run, samples, wait_for

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "demo"))
from measures import spoken, word_errors  # noqa: E402

KUBERNETES = ROOT / "deploy" / "kubernetes" / "base"
SPEECH = "usr/share/pocketsphinx/test/data/librivox"
ANSWERING = """
import signal, millrace
with millrace.Worker() as worker:
    signal.signal(signal.SIGTERM, lambda *_: worker.bye())
    for batch in worker:
        batch.done([0] * batch.rows)
"""
BASE = "docker.io/library/debian:bookworm-slim"


def mounted(test, tag):
    image = Image(tag)
    test.addClassCleanup(image.close)
    return image


def frames_of(path):
    with wave.open(str(path)) as audio:
        return audio.readframes(audio.getnframes())


class InContainers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.image, cls.demo = mounted(cls, "millrace"), mounted(cls, "millrace-demo")

    def setUp(self):
        self.folder = volume()
        self.addCleanup(self.folder.cleanup)

    def service(self, *arguments, **limits):
        service = ServiceContainer(self.image, self.folder.name, *arguments, **limits)
        self.addCleanup(service.close)
        return service

    def started(self, image, *arguments, **more):
        process = Container(image, *arguments, volume=self.folder.name, **more)
        self.addCleanup(process.kill)
        return process

    def tap(self):
        return self.started(self.image, "tap", "--url", "unix:/run/millrace/private/workers.sock")

    def assert_complete(self, messages, frames):
        """Results without a gap from the first frame to the last."""
        results = [message for message in messages if message["type"] == "result" and message["end"] > message["begin"]]
        ends = [0, *(each["end"] for each in results)]
        self.assertEqual([each["begin"] for each in results], ends[:-1])
        self.assertEqual((ends[-1], messages[-1]["type"], messages[-1]["frames"]), (frames, "closed", frames))


class Demo(InContainers):
    def decoder(self):
        program, *arguments = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())["services"]["decoder"]["entrypoint"]
        return self.started(self.demo, *arguments, entrypoint=program)

    def test_the_demo_is_recognised_and_sigterm_to_all_containers_loses_nothing_of_a_live_stream(self):
        shutil.copy(ROOT / "docker" / "compose.toml", self.folder.name)
        decoder = self.decoder()  # before the service: it waits
        service = self.service("serve", "--config", "/run/millrace/compose.toml")
        wait_ready(service)
        self.assertIsNone(decoder.process.poll(), decoder.errors)
        speech = sorted(Path(self.demo.root, SPEECH).glob("*.wav"))
        client = self.started(self.demo, "stream", "--json", *(f"/{each.relative_to(self.demo.root)}" for each in speech))
        self.assertEqual(client.wait(), 0, client.errors)
        self.assert_recognised([json.loads(line) for line in client.lines], speech)
        self.assert_drained(service, decoder, speech[1])

    def assert_recognised(self, output, speech):
        """The texts of each file reach its end, and at most 8 % of the words are wrong."""
        read = (Path(self.demo.root, SPEECH) / "transcription").read_text()
        wrong, all_words = 0, 0
        for file in speech:
            with self.subTest(file.name):
                messages = [each for each in output if each["file"].endswith(file.name)]
                recognised = self.text(messages, len(frames_of(file)) // 2)
                words = re.search(rf"<s> (.*) </s> \({file.stem}\)", read)[1]
                wrong, all_words = wrong + word_errors(words, recognised), all_words + len(words.split())
        self.assertLessEqual(wrong, all_words * 0.08)

    def text(self, messages, frames):
        """The words of the final texts of a stream, the last of which ends with its last frame."""
        finals = [each for each in messages if (each.get("data") or {}).get("final")]
        self.assertEqual((finals[-1]["end"], messages[-1]["type"], messages[-1]["frames"]), (frames, "closed", frames))
        return spoken(" ".join(each["data"]["text"] for each in finals))

    def assert_drained(self, service, decoder, speech):
        frames = frames_of(speech)

        async def live():
            async with service.connect() as connection:
                for begin in range(0, len(frames), 3200):
                    await connection.send(frames[begin:begin + 3200])
                messages = []
                while not any(message["type"] == "result" for message in messages):
                    messages.append(json.loads(await connection.recv()))
                decoder.process.send_signal(signal.SIGTERM)
                service.process.send_signal(signal.SIGTERM)
                rest, code = await read_all(connection)
                return messages + rest, code

        messages, code = run(live())
        self.assertRegex(self.text(messages, len(frames) // 2), "^he was not an .* young man$")
        self.assertEqual(code, 1012)
        self.assertEqual((service.wait(), decoder.wait()), (0, 0), service.errors + decoder.errors)


class Kubernetes(InContainers):
    def setUp(self):
        super().setUp()
        os.chown(self.folder.name, 0, USER)  # as emptyDir with fsGroup
        os.chmod(self.folder.name, 0o2777)

    def worker(self):
        """A worker that knows the socket from its environment, as a sidecar does."""
        (sidecar,) = yaml.safe_load((KUBERNETES / "deployment.yaml").read_text())["spec"]["template"]["spec"]["initContainers"]
        variables = [f"{each['name']}={each['value']}" for each in sidecar["env"]]
        return self.started(self.demo, "-B", "-c", ANSWERING, entrypoint="/usr/bin/python3",
                            environment=[*variables, "PYTHONPATH=/usr/lib/moonshine"])

    def test_a_worker_that_starts_before_the_service_answers_until_it_has_drained_and_then_leaves_at_sigterm(self):
        settings = (KUBERNETES / "millrace.toml").read_text()
        Path(self.folder.name, "millrace.toml").write_text(settings.replace('"3s"', '"0.1s"').replace('"10s"', '"1s"'))
        worker = self.worker()
        wait_for(lambda: any("waiting for" in line for line in worker.errors), "the worker to wait")
        service = self.service("serve", "--config", "/run/millrace/millrace.toml")
        wait_ready(service)

        async def live():
            async with service.connect() as connection:
                await connection.send(samples(0, 1600))
                messages = [json.loads(await connection.recv()) for _ in range(2)]
                service.process.send_signal(signal.SIGTERM)
                while messages[-1]["type"] != "goaway":
                    messages.append(json.loads(await connection.recv()))
                await connection.send('{"type":"end"}')
                rest, _ = await read_all(connection)
                return messages + rest

        self.assert_complete(run(live()), 1600)
        self.assertEqual(service.wait(), 0, service.errors)
        self.assertIsNone(worker.process.poll(), worker.errors)
        self.assertEqual(worker.stop(signal.SIGTERM), 0, worker.errors)


class Hardened(InContainers):
    def status(self, service):
        text = Path(f"/proc/{service.pid()}/status").read_text()
        return dict(re.findall(r"(\w+):\s*(.*)", text))

    def test_the_service_is_pid_1_of_user_10001_without_capabilities(self):
        service = self.service()
        status = self.status(service)
        self.assertEqual(status["NSpid"].split()[-1], "1")
        self.assertEqual({*status["Uid"].split(), *status["Gid"].split()}, {"10001"})
        self.assertEqual({int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}, {0})
        self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
        for path in ("/x", "/etc/millrace/x", "/var/x"):
            self.assertIn("Read-only file system", service.exec("/bin/sh", "-c", f"echo >{path}").stderr)

    def test_the_health_check_of_the_image_passes_without_a_worker(self):
        service = self.service()
        kind, *command = self.image.settings["Healthcheck"]["Test"]
        self.assertEqual((kind, service.exec(*command).returncode), ("CMD", 0))
        self.assertEqual(service.get("/readyz")[0], 503)

    def test_orphans_are_reaped_and_a_killed_worker_is_counted_while_a_stream_continues(self):
        service = self.service()
        first, tap = self.tap(), None
        wait_ready(service)

        async def play():
            nonlocal tap
            async with service.connect() as connection:
                await connection.send(samples(0, 1600))
                messages = [json.loads(await connection.recv()) for _ in range(2)]
                await asyncio.to_thread(self.leave_an_orphan, service)
                tap = await asyncio.to_thread(self.replace, service, first)
                await connection.send(samples(1600, 1600))
                await connection.send('{"type":"end"}')
                rest, _ = await read_all(connection)
                return messages + rest

        self.assert_complete(run(play()), 3200)
        service.recount()
        self.assertEqual(service.metric("millrace_worker_failures_total", reason="disconnect"), 1)
        self.assertEqual(service.stop(), 0, service.errors)

    def replace(self, service, worker):
        worker.kill()
        wait_for(lambda: service.get("/readyz")[0] == 503, "the service to notice")
        tap = self.tap()
        wait_ready(service)
        return tap

    def children(self, service):
        """(state, name) of each child of the service, zombies among them."""
        pid = service.pid()
        for file in Path("/proc").glob("[0-9]*/stat"):
            try:
                name, rest = re.match(r"\d+ \((.*)\) (.*)", file.read_text()).groups()
            except OSError:
                continue
            if rest.split()[1] == str(pid):
                yield rest[0], name

    def leave_an_orphan(self, service):
        """A process that becomes the child of PID 1 and ends."""
        fifo = f"{self.folder.name}/fifo"
        subprocess.run(["mkfifo", "--mode=666", fifo], check=True)
        left = service.exec("/bin/sh", "-c", "(read line </run/millrace/fifo) >/dev/null 2>&1 &")
        self.assertEqual(left.returncode, 0, left.stderr)
        wait_for(lambda: ("S", "sh") in self.children(service), "the orphan to have a new parent")
        Path(fifo).write_text("end\n")
        wait_for(lambda: not list(self.children(service)), "the orphan to be reaped")


class Misconfigured(InContainers):
    def ends(self, **limits):
        """The error lines of a service that does not start."""
        ended = Container(self.image, **limits)
        self.addCleanup(ended.kill)
        self.assertEqual(ended.wait(), 1)
        return ended.errors

    def test_a_socket_volume_of_another_user_is_named(self):
        for owner, mode in ((10002, 0o700), (10002, 0o755), (0, 0o700), (0, 0o755)):
            with self.subTest(owner=owner, mode=oct(mode)):
                other = volume(owner, mode)
                self.addCleanup(other.cleanup)
                (line,) = self.ends(volume=other.name)
                self.assertIn(f"/run/millrace belongs to user {owner}, and this process runs as user 10001", line)

    def test_a_missing_socket_volume_is_named(self):
        (line,) = self.ends()
        self.assertRegex(line, "/run/millrace.*Read-only file system")

    def test_too_few_descriptors_are_named(self):
        service = self.service(descriptors=1024)
        (line,) = [line for line in service.errors if "RLIMIT_NOFILE" in line]
        self.assertRegex(line, "RLIMIT_NOFILE is 1024 and must be at least 11536")

    def test_too_little_memory_is_named(self):
        service = self.service(memory=64 << 20)
        (line,) = [line for line in service.errors if " memory " in line]
        self.assertRegex(line, "there_is=.*lower limits.connections")


class Content(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.image, cls.base = mounted(cls, "millrace"), mounted(cls, BASE)

    def size(self, image):
        return int(subprocess.run(["du", "-sb", image.root], check=True, capture_output=True, text=True).stdout.split()[0])

    def test_the_service_adds_at_most_60_mb_to_its_base(self):
        added = self.size(self.image) - self.size(self.base)
        print(f"the service image adds {added / 1e6:.1f} MB to its base")
        self.assertLess(added, 60e6)

    def test_the_image_has_no_compiler_and_no_python(self):
        usr = Path(self.image.root, "usr")
        self.assertTrue((usr / "bin" / "millrace").exists())
        tool = re.compile(r"(.*-)?(python|pypy|cc|c\+\+|gcc|g\+\+|cpp|clang|tcc|as|ld|cc1|cc1plus|collect2|nvcc|ptxas)[\d.+-]*")
        found = [str(path) for folder in ("bin", "sbin", "lib", "libexec", "local") for path in (usr / folder).glob("**/*")
                 if tool.fullmatch(path.name) and path.is_file() and path.stat().st_mode & 0o111]
        self.assertEqual(found, [])

    def test_the_list_of_packages_is_that_of_dpkg(self):
        listed = Path(self.image.root, "usr/share/millrace-packages.txt").read_text().splitlines()
        installed = subprocess.run(["dpkg-query", f"--admindir={self.image.root}/var/lib/dpkg", "-W",
                                    "-f", "${Package} ${Version} ${Architecture} ${source:Package}\n"],
                                   check=True, capture_output=True, text=True).stdout.splitlines()
        self.assertEqual(listed, installed)
        self.assertTrue(any(line.startswith("millrace ") for line in listed))

    def test_the_image_stops_by_sigterm_and_starts_without_a_shell(self):
        settings = self.image.settings
        self.assertEqual((settings["StopSignal"], settings["User"]), ("SIGTERM", "10001:10001"))
        self.assertEqual(settings["Entrypoint"], ["/usr/bin/millrace"])
        self.assertEqual(settings["Cmd"], ["serve", "--config", "/etc/millrace/millrace.toml"])
        self.assertIn("http://127.0.0.1:9464/livez", settings["Healthcheck"]["Test"])


if __name__ == "__main__":
    unittest.main()
