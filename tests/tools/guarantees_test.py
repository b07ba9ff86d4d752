# SPDX-License-Identifier: Apache-2.0
"""docs/internals/guarantees.md lists promises with their ids, and the tests that show each of them: the tests exist.

A section has promises, `- **R1** One sentence.`, and below them one block of tests:

  <details><summary>Tests of R1 to R9</summary>

  - R1 `folder/file: case`

  </details>
"""
import dataclasses
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "internals" / "guarantees.md"
LEAST = 625  # promises of the page; a promise that is removed lowers it
LONGEST = 160  # characters of a promise

ID = r"[A-Z]\d+[a-z]?"


@dataclasses.dataclass
class Section:
    line: int
    title: str
    promises: list = dataclasses.field(default_factory=list)  # (line, id, sentence)
    blocks: list = dataclasses.field(default_factory=list)  # (line, summary)
    tests: list = dataclasses.field(default_factory=list)  # (line, id, test)


def parse(text):
    """The sections of a page, and (line, problem) for each line that has not the form of its place."""
    sections, wrong, within = [Section(0, "")], [], False
    for number, line in enumerate(text.splitlines(), 1):
        section = sections[-1]
        if heading := re.fullmatch(r"#+ (.*)", line):
            sections.append(Section(number, heading[1]))
        elif block := re.fullmatch(r"<details><summary>(.*)</summary>", line):
            section.blocks.append((number, block[1]))
            within = True
        elif line == "</details>":
            within = False
        elif within:
            if test := re.fullmatch(rf"- ({ID}) `([^`]+)`", line):
                section.tests.append((number, *test.groups()))
            elif line:
                wrong.append((number, "not an id and a test in backquotes"))
        elif promise := re.fullmatch(rf"- \*\*({ID})\*\* (\S.*)", line):
            section.promises.append((number, *promise.groups()))
            if len(line) > LONGEST:
                wrong.append((number, f"{len(line)} characters; at most {LONGEST}"))
        elif line.startswith("- **"):
            wrong.append((number, "not an id and a promise"))
    return sections, wrong


def problems(text, exists):
    """(line, problem) for each rule that a page breaks."""
    sections, wrong = parse(text)
    known = {}
    for section in sections:
        ids = [name for _, name, _ in section.promises]
        tested = {name for _, name, _ in section.tests}
        shown = set()
        for line, name, _ in section.promises:
            if name in known:
                wrong.append((line, f"{name} is also in line {known[name]}"))
            known.setdefault(name, line)
            if name not in tested:
                wrong.append((line, f"{name} has no test"))
        for line, name, test in section.tests:
            if name not in ids:
                wrong.append((line, f"{name} is not a promise of this section"))
            if not exists(test):
                wrong.append((line, f"there is no test {test}"))
            if (name, test) in shown:
                wrong.append((line, f"{name} names {test} twice"))
            shown.add((name, test))
        if len(section.blocks) != bool(ids):
            wrong.append((section.line, f"{len(section.blocks)} blocks of tests for {len(ids)} promises"))
        for line, summary in section.blocks:
            if ids and summary != "Tests of " + " to ".join(dict.fromkeys((ids[0], ids[-1]))):
                wrong.append((line, f'"{summary}" for {ids[0]} to {ids[-1]}'))
    return sorted(wrong)


def exists(name):
    """`folder/file: name of a case`, `system/file.test_name`, or `fuzz/target`."""
    if name.startswith("fuzz/"):
        return (ROOT / "tests" / f"{name}.cpp").exists()
    file, _, case = name.partition(": ")
    if case:
        path = ROOT / "tests" / f"{file}.cpp"
        # A long name is split over lines in C++.
        return path.exists() and re.search(rf'TEST_CASE(_METHOD)?\(\s*(\w+,\s*)?"{re.escape(case)}"',
                                           re.sub(r'"\s*\n\s*"', "", path.read_text())) is not None
    file, _, case = name.rpartition(".")
    path = ROOT / "tests" / f"{file}.py"
    return path.exists() and f"def {case}(" in path.read_text()


class Guarantees(unittest.TestCase):
    def test_the_page_breaks_no_rule(self):
        self.maxDiff = None
        self.assertEqual(problems(PAGE.read_text(), exists), [])

    def test_no_promise_was_lost(self):
        sections, _ = parse(PAGE.read_text())
        self.assertGreaterEqual(sum(len(section.promises) for section in sections), LEAST)


GOOD = """# Guarantees

- A list of something else: `R1`.

## Rows

- **R1** Rows are kept.
- **R2** They are in order.

A remark.

<details><summary>Tests of R1 to R2</summary>

- R1 `rows/rows_test: rows are kept`
- R1 `fuzz/rows`
- R2 `system/rows_test.test_order`

</details>

## Faults

- **G5a** It continues.

<details><summary>Tests of G5a</summary>

- G5a `fuzz/rows`

</details>
"""


class Rules(unittest.TestCase):
    """Each rule is broken once."""

    def found(self, old, new, there=lambda test: True):
        self.assertEqual(GOOD.count(old), 1)
        return [what for _, what in problems(GOOD.replace(old, new), there)]

    def test_a_good_page_has_no_problem(self):
        self.assertEqual(problems(GOOD, lambda test: True), [])
        self.assertEqual([(len(section.promises), len(section.tests)) for section in parse(GOOD)[0]],
                         [(0, 0), (0, 0), (2, 3), (1, 1)])

    def test_a_promise_without_a_test_is_found(self):
        self.assertEqual(self.found("- R2 `system/rows_test.test_order`\n", ""), ["R2 has no test"])

    def test_a_test_that_does_not_exist_is_found(self):
        self.assertEqual(self.found("`system/rows_test.test_order`", "`system/rows_test.test_none`", lambda test: "none" not in test),
                         ["there is no test system/rows_test.test_none"])

    def test_a_test_of_another_section_or_of_no_promise_is_found(self):
        for name in ("R1", "G6"):
            self.assertEqual(self.found("- G5a `fuzz/rows`", f"- G5a `fuzz/rows`\n- {name} `fuzz/rows`"),
                             [f"{name} is not a promise of this section"])

    def test_an_id_that_is_there_twice_is_found(self):
        self.assertEqual(self.found("- **R2** They are in order.", "- **R2** They are in order.\n- **R2** They are new."),
                         ["R2 is also in line 8"])
        self.assertIn("R2 is also in line 8", self.found("**G5a**", "**R2**"))

    def test_a_long_promise_is_found(self):
        most = LONGEST - len("- **R1** ")
        self.assertEqual(self.found("Rows are kept.", "x" * most), [])
        self.assertEqual(self.found("Rows are kept.", "x" * (most + 1)), [f"{LONGEST + 1} characters; at most {LONGEST}"])

    def test_a_line_of_another_form_is_found(self):
        for line in ("- R2: `fuzz/rows`", "- R2 fuzz/rows", "- R2 `fuzz/rows`, `fuzz/order`", "and more"):
            self.assertEqual(self.found("- R1 `fuzz/rows`", f"- R1 `fuzz/rows`\n{line}"), ["not an id and a test in backquotes"])
        for line in ("- **R3**", "- **3** They are new.", "- **R3**: They are new."):
            self.assertEqual(self.found("- **R1**", f"{line}\n- **R1**"), ["not an id and a promise"])

    def test_a_test_that_a_promise_names_twice_is_found(self):
        self.assertEqual(self.found("- R1 `fuzz/rows`", "- R1 `fuzz/rows`\n- R1 `fuzz/rows`"), ["R1 names fuzz/rows twice"])

    def test_a_section_with_another_number_of_blocks_is_found(self):
        block = GOOD[GOOD.index("<details><summary>Tests of G5a"):]
        self.assertEqual(self.found(block, ""), ["0 blocks of tests for 1 promises", "G5a has no test"])
        self.assertEqual(self.found(block, block + block.replace("fuzz/rows", "fuzz/order")), ["2 blocks of tests for 1 promises"])
        self.assertIn("1 blocks of tests for 0 promises", self.found("- **G5a** It continues.", ""))

    def test_a_summary_of_other_ids_is_found(self):
        self.assertEqual(self.found("Tests of R1 to R2", "Tests of R1 to R3"), ['"Tests of R1 to R3" for R1 to R2'])

    def test_tests_are_found_by_their_names(self):
        for name in ("tools/guarantees_test.test_tests_are_found_by_their_names", "fuzz/upgrade",
                     "chunker/chunker_test: an abort drops the frames that are in no ready row"):
            self.assertTrue(exists(name), name)
        for name in ("tools/guarantees_test.test_none", "tools/none.test_none", "fuzz/none", "chunker/chunker_test: none",
                     "chunker/none: none"):
            self.assertFalse(exists(name), name)


if __name__ == "__main__":
    unittest.main()
