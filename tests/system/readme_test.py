# SPDX-License-Identifier: Apache-2.0
"""What the README says a client is, is one; and its links lead somewhere."""
import glob
import os
import re
import subprocess
import sys
import unittest

from harness import PATIENCE, SystemTest, samples

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


class Readme(SystemTest):
    def test_the_client_of_the_readme_gets_its_results(self):
        with open(os.path.join(ROOT, "README.md")) as file:
            program = re.search(r"```python\n(.*?)```", file.read(), re.DOTALL)[1]
        service = self.service()
        self.tap(service)
        client = subprocess.run([sys.executable, "-c", program, service.url()], input=samples(0, 4000),
                                capture_output=True, timeout=PATIENCE)
        self.assertEqual(client.returncode, 0, client.stderr.decode())
        self.assertEqual([line.split()[:2] for line in client.stdout.decode().splitlines()],
                         [["0", "0.1"], ["0.1", "0.2"], ["0.2", "0.25"]])

    def test_every_link_of_the_documents_leads_to_a_file(self):
        for document in glob.glob(os.path.join(ROOT, "*.md")) + glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True):
            with open(document) as file:
                for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", file.read()):
                    with self.subTest(document=os.path.relpath(document, ROOT), target=target):
                        self.assertTrue(os.path.exists(os.path.join(os.path.dirname(document), target)))


if __name__ == "__main__":
    unittest.main()
