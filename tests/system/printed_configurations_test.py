# SPDX-License-Identifier: Apache-2.0
"""The configurations in documents are valid, and `check-config` prints the comments that a document prints below one."""
import itertools
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from harness import PATIENCE, SystemTest
from tls_front import Authority

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import printed_programs as printed  # noqa: E402


class Configurations(SystemTest):
    def setUp(self):
        """The files that printed configurations name."""
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        certificate, key = Authority(self.folder).certificate("service")
        certificate.rename(Path(self.folder) / "chain.pem")
        key.rename(Path(self.folder) / "key.pem")

    def check(self, text):
        if "[[tenant]]" in text:  # a file that a configuration names
            (Path(self.folder) / "tenants.toml").write_text(text)
            text = '[access]\ntenants = "/etc/millrace/tenants.toml"\n[[pipeline]]\nname = "english"\n'
        text = text.replace("/etc/millrace/", self.folder + "/")
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(text)
            file.flush()
            command = ["train-serve", "--check"] if "[plan]" in text else ["check-config"]
            return subprocess.run([os.environ["MILLRACE"], *command, file.name], capture_output=True, text=True, timeout=PATIENCE)

    def test_every_printed_configuration_is_valid_and_has_the_comments_printed_below_it(self):
        count = 0
        for block, after in itertools.pairwise([*printed.blocks(), None]):
            if block.language != "toml":
                continue
            count += 1
            with self.subTest(block.place):
                checked = self.check(block.text)
                self.assertEqual((checked.returncode, checked.stderr), (0, ""))
                if after and not after.language and after.text.startswith("# ") and not after.text.startswith("# /"):
                    self.assertLessEqual(set(after.text.splitlines()), set(checked.stdout.splitlines()))
        self.assertGreater(count, 3)


if __name__ == "__main__":
    unittest.main()
