# SPDX-License-Identifier: Apache-2.0
"""The wheel of scripts/wheel, installed in an empty virtual environment: it contains its libraries, and its worker answers
the rows of a stream. WHEELS is the folder of the wheel."""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from harness import Process, SystemTest, read_all, run, samples, wait_for

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import printed_programs  # noqa: E402

WORKER = """
import millrace
with millrace.Worker() as worker:
    worker.run(lambda batch: batch.size.tolist() if batch.rows else None)
"""


class Wheel(SystemTest):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        _, *install = printed_programs.programs()["deploy_worker"].text.splitlines()  # the first makes the wheel
        commands = "\n".join(install).replace("/opt/worker", folder).replace("build/wheel", os.environ["WHEELS"])
        subprocess.run(["/bin/sh", "-euc", commands], check=True,
                       env={**os.environ, "PATH": "/usr/bin:/bin", "PIP_QUIET": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
                            "PIP_ONLY_BINARY": ":all:"})
        cls.python = f"{folder}/bin/python"

    def test_the_extension_uses_only_libraries_of_the_wheel_and_of_every_linux(self):
        (extension,) = Path(self.python).parent.parent.glob("lib/python*/site-packages/millrace/_core*.so")
        found = subprocess.run(["ldd", extension], check=True, capture_output=True, text=True).stdout
        others = re.findall(r"=> (?!\S*/millrace\.libs/)(\S+)", found)
        self.assertLessEqual({Path(path).name.split(".so")[0] for path in others},
                             {"libstdc++", "libm", "libgcc_s", "libc", "libpthread", "libresolv", "librt", "libdl"})

    def test_a_worker_from_the_wheel_attaches_and_answers(self):
        service = self.service()
        worker = Process(self.python, "-c", WORKER, environment={"MILLRACE_WORKERS": service.workers})
        self.addCleanup(worker.kill)
        wait_for(lambda: service.get("/readyz")[0] == 200 or worker.process.poll() is not None, "the worker to attach")
        self.assertIsNone(worker.process.poll(), worker.errors)

        async def stream():
            async with service.connect() as connection:
                await connection.send(samples(0, 4000))
                await connection.send('{"type":"end"}')
                return (await read_all(connection))[0]

        self.assertEqual([message["data"] for message in run(stream()) if message["type"] == "result"], [1600, 1600, 800])


if __name__ == "__main__":
    unittest.main()
