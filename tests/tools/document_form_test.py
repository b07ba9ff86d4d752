# SPDX-License-Identifier: Apache-2.0
"""The form of the documents: links lead to files and headings that exist, and marks are directly above programs."""
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import printed_programs as printed  # noqa: E402


def anchors(text):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


class Links(unittest.TestCase):
    def test_an_anchor_is_the_heading_in_lower_case_with_hyphens(self):
        self.assertEqual(anchors("# A `b` (c)\n```\n# no heading\n```\n"), {"a-b-c"})

    def test_every_link_leads_to_a_file(self):
        for document in printed.documents():
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
                with self.subTest(document=document.relative_to(printed.ROOT), target=target):
                    self.assertTrue((document.parent / target).exists())

    def test_every_link_to_a_heading_finds_it(self):
        for document in printed.documents():
            for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]*)\)", document.read_text()):
                page = document.parent / target if target else document
                if page.suffix == ".md":
                    with self.subTest(document=document.relative_to(printed.ROOT), target=target):
                        self.assertIn(anchor, anchors(page.read_text()))


class Marks(unittest.TestCase):
    def test_a_program_is_the_block_directly_after_its_mark(self):
        text = "<!-- run: a -->\n```python\n1\n```\n<!-- run: b -->\n\n```sh\n2\n```\n- x\n  ```cpp\n  3\n    4\n  ```\n"
        self.assertEqual([block[1:] for block in printed.blocks_of(text, "x.md")],
                         [("run", "a", "python", "1\n"), (None, None, "sh", "2\n"), (None, None, "cpp", "3\n  4\n")])

    def test_every_mark_is_directly_above_its_program(self):
        for document in printed.documents():
            with self.subTest(document.relative_to(printed.ROOT)):
                text = document.read_text()
                marked = [block for block in printed.blocks_of(text, document) if block.role]
                self.assertEqual(len(re.findall("^ *<!-- (?:run|part of):", text, re.MULTILINE)), len(marked))


if __name__ == "__main__":
    unittest.main()
