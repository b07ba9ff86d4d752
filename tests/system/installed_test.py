# SPDX-License-Identifier: Apache-2.0
"""The programs that tests/consumer builds against the installed library, except those of documents_test."""
import os
import subprocess
import unittest
from pathlib import Path

from harness import PATIENCE, SystemTest

PROGRAMS = Path(os.environ["PRINTED_PROGRAMS"])


def output(*arguments):
    ended = subprocess.run(arguments, capture_output=True, text=True, timeout=PATIENCE)
    if ended.returncode != 0:
        raise AssertionError(f"{arguments} ended with {ended.returncode}: {ended.stderr}")
    return ended.stdout


class Installed(SystemTest):
    def test_a_client_works_in_one_program_with_another_library_that_uses_asio(self):
        service = self.service()
        self.tap(service)
        for url in (f"ws://127.0.0.1:{service.port}", f"tcp://127.0.0.1:{service.zeromq_port}"):
            with self.subTest(url):
                self.assertEqual(output(PROGRAMS / "beside_asio", url), "11 results, 1600 beats\n")

    def test_rows_of_two_streams_become_batches_in_one_process(self):
        self.assertEqual(output(PROGRAMS / "in_process"),
                         "slot 0: 1 2 3 4\nslot 1: 1 2 3 4\nslot 0: 5 6 0 0\nslot 1: 5 6 0 0\n")


if __name__ == "__main__":
    unittest.main()
