# SPDX-License-Identifier: Apache-2.0
"""Small trees, each with one offence, given to tools/check_language.py as a program."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_language.py"

RULES = r"""
skipped = ["tests/*"]
allowed = [ALLOWED]
[limits]
cell = 20
sentence = 6
long_share = 0.5
exceptions = 1
lines = { "README.md" = 2 }
[words]
'\bno\s?body\b' = "the noun"
[starts]
'Who\b' = "the subject is a thing with a name"
"""

RIGHT = {
    "README.md": "# Name\nA sentence of five words.\n",
    "base/queue.h": "// A queue. Thread-safe.\nclass Queue;\n",
}


class CheckLanguage(unittest.TestCase):
    def run_on(self, files, allowed="", arguments=()):
        """The lines that the tool prints for RIGHT with `files` added or replaced."""
        with tempfile.TemporaryDirectory() as folder:
            rules = Path(folder) / "rules"
            rules.write_text(RULES.replace("ALLOWED", allowed))
            for path, text in (RIGHT | files).items():
                file = Path(folder) / "tree" / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            done = subprocess.run([sys.executable, "-B", TOOL, "--rules", rules, *arguments, Path(folder) / "tree"],
                                  capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        lines = done.stdout.splitlines()
        if not arguments:
            self.assertEqual(done.returncode, 1 if lines else 0)
        return lines

    def test_a_plain_tree_passes(self):
        self.assertEqual(self.run_on({}), [])

    def test_a_word_is_found_in_a_document_a_comment_a_docstring_and_a_message(self):
        for path, text, line in [("a.md", "First.\n\nNobody waits.\n", 3),
                                 ("a.h", "int a;  // nobody waits\n", 1),
                                 ("a.cpp", '\nthrow Error("nobody waits");\n', 2),
                                 ("a.cu", "/* One.\n   Nobody waits. */\n", 2),
                                 ("a.py", 'def a():\n    """Nobody waits."""\n', 2),
                                 ("a.py", "# nobody waits\n", 1),
                                 ("a.cmake", "# Nobody waits.\n", 1),
                                 ("a.js", "show(`nobody waits`);\n", 1),
                                 ("a.md", "```\ncode;  // nobody waits\n```\n", 2),
                                 ("run", "#!/bin/sh\necho nobody\n", 2),
                                 ("page.html", "<p>nobody waits</p>\n", 1)]:
            with self.subTest(path=path):
                self.assertEqual(self.run_on({path: text}), [f'{path}:{line}: "{text[text.lower().find("nobody"):][:6]}": '
                                                             "write the noun"])

    def test_a_phrase_that_is_wrapped_is_found(self):
        self.assertEqual(self.run_on({"a.h": "// Once no\n// body waits.\n"}), ['a.h:1: "no body": write the noun'])
        self.assertEqual(self.run_on({"a.md": "- Once no\n  body waits.\n"}), ['a.md:1: "no body": write the noun'])

    def test_code_is_no_prose(self):
        for path, text in [("a.md", "Call `nobody` once.\n"), ("a.cpp", "int nobody = 0;\n"),
                           ("a.h", '#include "nobody.h"\n'), ("tests/a.h", "// nobody\n")]:
            with self.subTest(path=path, text=text):
                self.assertEqual(self.run_on({path: text}), [])

    def test_a_sentence_must_not_begin_so_unless_it_is_a_question(self):
        self.assertEqual(self.run_on({"a.h": "// First. Who waits is closed.\n"}),
                         ['a.h:1: "Who": a sentence must not begin so: the subject is a thing with a name'])
        self.assertEqual(len(self.run_on({"a.h": "int a;  // who waits\n"})), 1)
        self.assertEqual(len(self.run_on({"a.cpp": 'throw Error("Who waits");\n'})), 1)
        self.assertEqual(self.run_on({"a.md": "Who waits?\n"}), [])

    def test_an_exception_has_a_reason_and_its_number(self):
        def entry(file="a.h", times=1, why="a user's name"):
            return f'{{file = "{file}", words = "nobody", times = {times}, why = "{why}"}}'
        self.assertEqual(self.run_on({"a.h": "// nobody\n"}, entry()), [])
        self.assertEqual(self.run_on({"a.h": "// nobody, nobody\n"}, entry()),
                         ['tools/language.toml: "nobody" is 2 times in a.h'])
        self.assertEqual(len(self.run_on({"a.h": "// nobody\n"}, entry(why=""))), 1)
        self.assertEqual(len(self.run_on({"a.h": "", "b.h": "// nobody\n"}, entry())), 2)

    def test_exceptions_are_limited(self):
        entry = '{file = "a.h", words = "nobody", times = 2, why = "a name"}'
        self.assertEqual(self.run_on({"a.h": "// nobody, nobody\n"}, entry),
                         ["tools/language.toml: 2 exceptions; at most 1"])

    def test_an_environment_of_python_is_not_read(self):
        self.assertEqual(self.run_on({"venv/pyvenv.cfg": "", "venv/lib/a.py": "# nobody\n"}), [])

    def test_a_long_cell_is_an_offence(self):
        self.assertEqual(self.run_on({"a.md": "| short | a cell of more than twenty |\n"}),
                         ["a.md:1: a cell of 26 characters; at most 20"])
        self.assertEqual(self.run_on({"a.md": "- list\n\n  | short | a cell of more than twenty |\n"}),
                         ["a.md:3: a cell of 26 characters; at most 20"])

    def test_few_long_sentences_are_allowed_and_many_are_not(self):
        short, long = "Three short words.", "This is one sentence of eight words altogether."
        self.assertEqual(self.run_on({"a.md": f"{short} {long}\n"}), [])
        lines = self.run_on({"a.md": f"{short} {long}\n\n{long} {long} {long}\n"})
        self.assertEqual(len(lines), 5)
        self.assertEqual(lines[0], "a.md:1: a sentence of 8 words")

    def test_a_page_has_its_length(self):
        self.assertEqual(self.run_on({"README.md": "One.\n\nTwo.\n"}), ["README.md: 3 lines; at most 2"])

    def test_figures_are_printed(self):
        lines = self.run_on({"a.md": "| cell |\n"}, arguments=["--counts"])
        self.assertEqual(lines[0], "0 words and constructions, 0 of them allowed")
        self.assertEqual(lines[-1], "1 cells, the longest of 4 characters")


if __name__ == "__main__":
    unittest.main()
