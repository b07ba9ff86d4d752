# SPDX-License-Identifier: Apache-2.0
"""The systemd unit: its exposure, and its agreement with the package."""
import configparser
import re
import subprocess
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import printed_programs  # noqa: E402

PACKAGING = Path(__file__).resolve().parents[2] / "packaging"
UNIT = PACKAGING / "millrace.service"


def settings():
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str
    unit.read(UNIT)
    return unit["Service"]


class Unit(unittest.TestCase):
    def analyze(self, *arguments, drop_in=None):
        """The output of systemd-analyze for the unit, with a command that exists on this machine."""
        with tempfile.TemporaryDirectory() as folder:
            unit = Path(folder, UNIT.name)
            unit.write_text(UNIT.read_text().replace("/usr/bin/millrace", "/bin/true"))
            if drop_in:
                Path(f"{unit}.d").mkdir()
                Path(f"{unit}.d", drop_in).write_text((PACKAGING / drop_in).read_text())
            judged = subprocess.run(["systemd-analyze", *arguments, unit], capture_output=True, text=True)
            self.assertEqual((judged.returncode, judged.stderr), (0, ""), judged.stdout)
            return judged.stdout

    def test_systemd_accepts_the_unit_with_and_without_each_drop_in(self):
        for drop_in in (None, "gpu.conf", "keys.conf"):
            with self.subTest(drop_in):
                self.analyze("verify", "--man=no", drop_in=drop_in)

    def test_systemd_finds_an_exposure_of_at_most_2_with_and_without_gpus(self):
        security = ("security", "--offline=true", "--threshold=20")
        self.assertIn("Service has no access to hardware devices", self.analyze(*security))
        self.assertIn("potentially has access to hardware devices", self.analyze(*security, drop_in="gpu.conf"))

    def test_credentials_are_the_files_that_the_drop_in_names_as_keys(self):
        drop_in = (PACKAGING / "keys.conf").read_text()
        credentials = dict(re.findall(r"^LoadCredential=(\S+):(\S+)$", drop_in, re.MULTILINE))
        self.assertEqual(credentials, {name: f"/etc/millrace/{name}" for name in ("key.pem", "resume_key")})
        self.assertIn(f"/run/credentials/{UNIT.name}/key.pem", drop_in)

    def test_systemd_accepts_the_unit_that_the_documents_print_for_a_worker(self):
        (printed,) = (block for block in printed_programs.blocks() if block.language == "ini" and "ExecStart=" in block.text)
        with tempfile.TemporaryDirectory() as folder:
            unit = Path(folder, "millrace-worker.service")
            unit.write_text(printed.text.replace("/opt/worker/bin/python", "/usr/bin/python3"))
            verified = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True)
        self.assertEqual((verified.returncode, verified.stderr), (0, ""))

    def test_the_grace_time_is_longer_than_the_drain(self):
        drain = 25  # seconds: the default of [limits] drain
        self.assertGreater(int(settings()["TimeoutStopSec"]), drain + 1)

    def test_the_workers_socket_is_in_the_private_runtime_directory(self):
        configuration = tomllib.loads((PACKAGING / "millrace.toml").read_text())
        self.assertEqual(configuration["listen"]["workers"], f"unix:/run/{settings()['RuntimeDirectory']}/workers.sock")
        self.assertEqual(settings()["RuntimeDirectoryMode"], "0700")

    def test_the_service_may_record_streams_in_the_directory_of_the_manual(self):
        (configuration,) = [block.text for block in printed_programs.blocks() if block.place.startswith("docs/recording.md") and
                            "[recording]" in block.text]
        self.assertEqual(tomllib.loads(configuration)["recording"]["directory"], f"/var/lib/{settings()['StateDirectory']}")
        self.assertEqual(settings()["StateDirectoryMode"], "0700")

    def test_the_service_reads_the_file_that_the_package_installs(self):
        installed = (PACKAGING / "scripts" / "conffiles").read_text().split()
        self.assertEqual(settings()["ExecStart"].split(), ["/usr/bin/millrace", "serve", "--config", *installed])


if __name__ == "__main__":
    unittest.main()
