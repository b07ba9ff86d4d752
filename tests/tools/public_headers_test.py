# SPDX-License-Identifier: Apache-2.0
"""Small trees, and the tree of Millrace, given to the program tools/public_headers.py."""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "public_headers.py"

RULES = """[public]
headers = ["client/client.h", "client/event.h"]
folders = ["client", "base"]
libraries = ["boost/system/result.hpp"]
"""
TREE = {
    "client/client.h": '#include <string>\n\n#include "base/bytes.h"\n#include "client/event.h"\n',
    "client/event.h": "#include <boost/system/result.hpp>\n",
    "client/private.h": '#include "net/socket.h"\n',
    "base/bytes.h": "#include <span>\n",
    "net/socket.h": "#include <boost/asio.hpp>\n",
}


class PublicHeaders(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def written(self, *arguments):
        """The names and texts of the headers that the tool writes."""
        done = subprocess.run([sys.executable, TOOL, self.folder / "into", *arguments], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        installed = self.folder / "into" / "millrace"
        return {file.relative_to(installed).as_posix(): file.read_text() for file in installed.rglob("*.h")}

    def of_tree(self, files, *arguments):
        """The arguments of the tool for TREE with `files` added or replaced."""
        for path, text in (TREE | files | {"rules.toml": RULES}).items():
            file = self.folder / "tree" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return [self.folder / "tree", "--rules", self.folder / "tree" / "rules.toml", *arguments]

    def assert_offence(self, path, text, line):
        done = subprocess.run([sys.executable, TOOL, self.folder / "into", *self.of_tree({path: text})],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (1, f"{path}:{line}\n"), done.stderr)
        self.assertFalse((self.folder / "into").exists())

    def test_named_headers_have_short_names_and_the_others_those_of_their_folders(self):
        self.assertEqual(self.written(*self.of_tree({})), {
            "client.h": "#include <string>\n\n#include <millrace/base/bytes.h>\n#include <millrace/event.h>\n",
            "event.h": "#include <boost/system/result.hpp>\n",
            "base/bytes.h": "#include <span>\n"})

    def test_a_header_that_is_left_out_leaves_the_others(self):
        self.assertEqual(self.written(*self.of_tree({}, "--except", "client/client.h")),
                         {"event.h": "#include <boost/system/result.hpp>\n"})

    def test_a_header_of_an_internal_folder_is_an_offence(self):
        self.assert_offence("base/bytes.h", '\n#include "net/socket.h"\n',
                            "2: installed, and includes net/socket.h: net/ is not public")

    def test_a_header_of_another_library_is_an_offence(self):
        for header in ("boost/asio.hpp", "zmq.hpp", "sys/socket.h"):
            self.assert_offence("client/event.h", f"#include <{header}>\n", f"1: installed, and includes {header}")

    def test_millrace_has_fewer_than_fifty_public_headers_which_include_only_each_other(self):
        written = self.written()
        self.assertLess(len(written), 50)
        included = {name for text in written.values() for name in re.findall(r'^#include [<"]millrace/([^>"]+)', text, re.MULTILINE)}
        self.assertLessEqual(included, set(written))
        self.assertEqual([name for name, text in written.items() if '#include "' in text], [])

    def test_clients_and_workers_need_headers_of_the_standard_library_only(self):
        written = self.written()
        needed = ["client.h", "worker.h"]
        for name in needed:
            included = re.findall(r"^#include <([^>]+)>", written[name], re.MULTILINE)
            self.assertEqual([header for header in included if not re.fullmatch(r"[a-z_]+|millrace/.*", header)], [])
            needed += {header.removeprefix("millrace/") for header in included if "/" in header} - set(needed)


if __name__ == "__main__":
    unittest.main()
