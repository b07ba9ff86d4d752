# SPDX-License-Identifier: Apache-2.0
"""The wheels of scripts/wheel in containers that have Debian's Python, and neither a compiler nor -dev packages: the package and the
program train and serve."""
import json
import re
import shutil
import subprocess
import sys
import unittest
import wave
from pathlib import Path

from container import ROOT, SOCKET, USER, Container, ServiceContainer, buildah, debian_with_python, volume, wait_ready, with_network
from harness import wait_for

sys.path.insert(0, str(ROOT / "tests" / "support"))
import printed_programs  # noqa: E402

WHEELS = ROOT / "build" / "wheel"
PREFIX = "/opt/worker"
SERVE = f"""
[listen]
websocket = "127.0.0.1:8080"
admin = "127.0.0.1:9464"
workers = "unix:{SOCKET}/workers.sock"
[[pipeline]]
name = "default"
chunk = {{ size = "100ms" }}
"""
TRAIN = f"""
[listen]
workers = "unix:{SOCKET}/train.sock"
admin = "127.0.0.1:0"
[plan]
streams = "{SOCKET}/speech"
chunk = {{ size = "100ms" }}
slots = 2
augment = "augment:louder"
"""
AUGMENT = """
def louder(stream, random):
    stream.frames = stream.frames * 2
    return stream
"""
WORKER = """
import millrace
with millrace.Worker() as worker:
    worker.run(lambda batch: batch.size.tolist() if batch.rows else None)
"""
LOUDEST = """
import millrace, sys
for name in sys.argv[1:]:
    keys = {} if name.startswith("unix:") else {"chunk": {"size": "100ms"}, "slots": 2}
    with millrace.Dataset(name, **keys) as data:
        batches = [(batch.rows, int(batch.data.max())) for batch in data]
    print(sum(rows for rows, _ in batches), max(loudest for _, loudest in batches))
"""


class Installed:
    """A file system after the documented installation, with the attributes of container.Image."""

    @classmethod
    def setUpClass(cls):
        cls.container = buildah("from", "--pull-never", debian_with_python(cls.suite))
        cls.addClassCleanup(buildah, "rm", cls.container)
        cls.root = buildah("mount", cls.container)
        (wheel,) = WHEELS.glob(f"millrace-*-{cls.abi}-*.whl")
        folder = Path(cls.root, "root", WHEELS.relative_to(ROOT))
        folder.mkdir(parents=True)
        shutil.copy(wheel, folder)
        subprocess.run(with_network(WHEELS / "venv/bin/pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
                                    "--dest", folder, "--python-version", cls.python, "numpy"), check=True)
        _, *install = printed_programs.programs()["deploy_worker"].text.splitlines()  # the first makes the wheels
        commands = "\n".join(install).replace("cp311", cls.abi)
        buildah("run", "--env", "PIP_NO_INDEX=1", "--env", "PIP_FIND_LINKS=build/wheel", cls.container, "--", "sh", "-euc",
                f"cd /root; {commands}")
        cls.settings = {"User": f"{USER}:{USER}", "Entrypoint": [], "Env": [f"PATH={PREFIX}/bin:/usr/bin:/bin", f"HOME={SOCKET}"]}
        cls.volume = volume()
        cls.addClassCleanup(cls.volume.cleanup)
        cls.write_inputs(Path(cls.volume.name))

    @classmethod
    def write_inputs(cls, folder):
        for name, text in {"serve.toml": SERVE, "train.toml": TRAIN, "augment.py": AUGMENT}.items():
            (folder / name).write_text(text)
        (folder / "speech").mkdir()
        for name in "one", "two":
            with wave.open(str(folder / "speech" / f"{name}.wav"), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(16000)
                file.writeframes(b"\x00\x10" * 16000)
        for path in (folder, folder / "speech"):
            shutil.chown(path, USER, USER)

    def started(self, *command, kind=Container):
        """A container that runs the command in the folder of the inputs."""
        command = ("/bin/sh", "-euc", f'cd {SOCKET}; exec "$@"', "sh", *command)
        container = kind(self, self.volume.name, *command) if kind is ServiceContainer else kind(self, *command, volume=self.volume.name)
        self.addCleanup(container.kill)
        return container

    def lines(self, *command):
        done = self.started(*command)
        self.assertEqual(done.wait(), 0, done.errors)
        return done.lines

    def test_there_is_no_compiler_and_no_development_package(self):
        packages = buildah("run", self.container, "--", "dpkg-query", "-W", "-f", "${Package}\n").splitlines()
        self.assertIn("python3-venv", packages)
        self.assertEqual([name for name in packages if re.search(r"^lib.*-dev$|^gcc-\d+$|^g\+\+|^libsndfile|^libzmq", name)], [])

    def test_program_and_extension_use_only_libraries_of_the_wheel_and_of_every_linux(self):
        for pattern in ("millrace/_core*.so", "millrace.scripts/millrace"):
            (file,) = Path(self.root + PREFIX).glob(f"lib/python3*/site-packages/{pattern}")
            found = buildah("run", self.container, "--", "ldd", f"/{file.relative_to(self.root)}")
            self.assertIn("/millrace.libs/libsndfile", found)
            others = re.findall(r"=> (?!\S*/millrace\.libs/)(.*)", found)
            self.assertLessEqual({Path(path).name.split(".so")[0] for path in others},
                                 {"libstdc++", "libm", "libgcc_s", "libc", "libpthread", "libresolv", "librt", "libdl"}, file)

    def test_each_library_in_the_wheel_has_its_license(self):
        (site,) = Path(self.root + PREFIX).glob("lib/python3*/site-packages")
        (licenses,) = site.glob("millrace-*.dist-info/licenses")
        libraries = list((site / "millrace.libs").iterdir())
        self.assertGreater(len(libraries), 20)
        for library in libraries:
            name = re.sub(r"-[0-9a-f]{8}", "", library.name)  # auditwheel adds a part of a hash
            owners = subprocess.run(["dpkg-query", "-S", f"*/{name}"], check=True, capture_output=True, text=True).stdout
            owner = owners.split(":")[0]
            self.assertTrue((licenses / f"{owner}.txt").is_file(), owners)

    def test_the_program_has_the_version_of_the_package(self):
        (version,) = self.lines("python", "-c", "import millrace; print(millrace.__version__)")
        self.assertIn(version, " ".join(self.lines("millrace", "--version")))

    def test_files_are_indexed_planned_and_trained_on(self):
        self.lines("millrace", "index", "speech")
        plan = self.lines("millrace", "plan", "--streams", "speech", "--mode", "stateful", "--spec", "size=100ms", "--slots", "2")
        self.assertEqual(sum(len(json.loads(line)) for line in plan), 20)
        self.assertEqual(self.lines("python", "-c", LOUDEST, "speech"), ["20 4096"])

    def test_a_server_of_batches_calls_functions_in_the_python_of_its_environment(self):
        server = self.started("env", "PATH=/usr/bin:/bin", f"{PREFIX}/bin/millrace", "train-serve", "train.toml")
        wait_for(lambda: any("event=listening" in line for line in server.errors) or server.process.poll() is not None, "the server")
        self.assertIsNone(server.process.poll(), server.errors)
        self.assertEqual(self.lines("python", "-c", LOUDEST, f"unix:{SOCKET}/train.sock"), ["20 8192"], server.errors)

    def test_a_worker_answers_the_rows_of_a_client(self):
        service = self.started("millrace", "serve", "--config", "serve.toml", kind=ServiceContainer)
        worker = self.started("env", f"MILLRACE_WORKERS=unix:{SOCKET}/workers.sock", "python", "-c", WORKER)
        wait_ready(service)
        messages = [json.loads(line) for line in self.lines("millrace", "stream", "speech/one.wav")]
        self.assertEqual([message["data"] for message in messages if message["type"] == "result"], [1600] * 10, worker.errors)
        self.assertEqual(service.stop(), 0, service.errors)


class Debian12(Installed, unittest.TestCase):
    suite, abi, python = "bookworm", "cp311", "3.11"


class Debian13(Installed, unittest.TestCase):
    suite, abi, python = "trixie", "abi3", "3.13"


if __name__ == "__main__":
    unittest.main()
