# SPDX-License-Identifier: Apache-2.0
"""docs/internals/architecture.md names files and functions that exist, and every folder of the layering."""
import pathlib
import re
import sys
import tomllib
import unittest
from collections import Counter

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from prose import files_of  # noqa: E402

PAGE = re.sub(r"\]\([^)]*\)", "]", (ROOT / "docs" / "internals" / "architecture.md").read_text())  # without links
LAYERS = tomllib.loads((ROOT / "tools" / "layers.toml").read_text())
FILE = r"[\w./*]+\.(?:h|cpp|cu|fbs|py|toml|yml)"


def is_one_of(path, files):
    """True if a file has this name, or this path from the root; `*` stands for any characters."""
    pattern = re.compile(rf"(^|.*/){re.escape(path).replace(re.escape('*'), '[^/]*')}$")
    return any(pattern.match(file) for file in files)


def folders_of(files):
    return {parent.as_posix() for file in files for parent in pathlib.Path(file).parents}


class Architecture(unittest.TestCase):
    def setUp(self):
        self.files = set(files_of(ROOT, []))

    def test_each_file_that_it_names_exists(self):
        paths = set(re.findall(rf"(?<![\w./]){FILE}(?![\w/])", PAGE))
        self.assertGreater(len(paths), 100)
        self.assertEqual([path for path in sorted(paths) if not is_one_of(path, self.files)], [])

    def test_each_folder_that_it_names_exists(self):
        paths = set(re.findall(r"`([\w./]+)/`", PAGE))
        self.assertGreater(len(paths), 30)
        folders = folders_of(self.files)
        self.assertEqual([path for path in sorted(paths)
                          if not (ROOT / path).is_dir() and not is_one_of(path, folders)], [])

    def test_each_function_that_it_names_exists(self):
        code = {path: (ROOT / path).read_text() for path in self.files if path.endswith(".h")}
        functions = set(re.findall(r"\b([A-Z]\w+)::([a-z]\w+)\b", PAGE))
        self.assertGreater(len(functions), 15)
        for owner, function in sorted(functions):
            declares = [path for path, text in code.items()
                        if re.search(rf"\b(class|struct) {owner}\b[^;{{]*\{{", text)
                        and re.search(rf"\b{function}\(", text)]
            self.assertTrue(declares, f"{owner}::{function}")

    def test_it_lists_every_folder_of_the_layering_once(self):
        table = PAGE.split("\n## Folders\n")[1].split("\n## ")[0]
        listed = Counter(re.findall(r"`([\w/]+)/`", table))
        self.assertEqual({folder: listed[folder] for folder in LAYERS["folders"]}, dict.fromkeys(LAYERS["folders"], 1))


if __name__ == "__main__":
    unittest.main()
