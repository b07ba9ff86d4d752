# SPDX-License-Identifier: Apache-2.0
"""scripts/image uses the container engine that runs. The programs docker, podman and buildah are replaced by scripts
that log their calls."""
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# `info` fails unless the variable RUNS has the engine's name.
PROGRAM = """#!/bin/sh
name=${0##*/}
if [ "$1" = info ]; then case " $RUNS " in *" $name "*) exit 0 ;; *) exit 1 ;; esac; fi
echo "$name DOCKER_BUILDKIT=$DOCKER_BUILDKIT $*" >>"$CALLS"
"""


class Engine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for name in ("docker", "podman", "buildah"):
            (self.folder / name).write_text(PROGRAM)
            (self.folder / name).chmod(0o755)

    def build(self, runs="", target="service", **environment):
        """The last call of an engine that is not `info`."""
        calls = self.folder / "calls"
        subprocess.run([ROOT / "scripts" / "image", target, "--build-arg", "A=1"], check=True,
                       env={"PATH": f"{self.folder}:/usr/bin:/bin", "RUNS": runs, "CALLS": str(calls), **environment})
        return calls.read_text().splitlines()[-1]

    def test_docker_builds_if_it_runs(self):
        wanted = "--file docker/Dockerfile --target service --tag millrace --build-arg A=1 ."
        self.assertEqual(self.build("docker podman"), f"docker DOCKER_BUILDKIT=1 build {wanted}")

    def test_podman_builds_with_health_checks_if_docker_does_not_run(self):
        wanted = "--file docker/Dockerfile.cuda --target worker --tag millrace-worker --build-arg A=1 ."
        self.assertEqual(self.build("podman", "cuda-worker"), f"podman DOCKER_BUILDKIT= build --format docker {wanted}")

    def test_buildah_builds_if_no_other_engine_runs_or_if_it_is_requested(self):
        for runs, environment in (("", {}), ("docker podman", {"IMAGE_ENGINE": "buildah"})):
            with self.subTest(runs):
                called = self.build(runs, **environment)
                self.assertRegex(called, r"^buildah .* build --format docker --layers=false .* --target service --tag millrace ")
                self.assertIn(f"--volume {ROOT}/build/image/Dockerfile:/millrace/build ", called)

    def test_the_base_always_uses_buildah(self):
        self.assertIn("inspect --type image docker.io/library/debian:bookworm-slim", self.build("docker podman", "base"))

    def test_check_all_builds_with_the_engine_whose_images_the_image_tests_read(self):
        calls = re.findall(r".*scripts/image .*", (ROOT / "scripts" / "check-all").read_text())
        self.assertEqual([re.sub(r" .*", "", call.strip()) for call in calls], ["IMAGE_ENGINE=buildah"])


if __name__ == "__main__":
    unittest.main()
