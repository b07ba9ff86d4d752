#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that comments, documents, help texts and messages are plain English (CONTRIBUTING.md, Language).

  tools/check_language.py [--counts] [ROOT | FILE...]

Prints `file:line: what is wrong` for each offence; exits 1 if there is one. tools/language.toml has the
words, the limits and the exceptions. `--counts` prints figures instead: words, long sentences, long cells.
"""

import argparse
import re
import sys
import tomllib
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from prose import Prose, files_of, prose_of, without_code  # noqa: E402

RULES = Path(__file__).parent / "language.toml"


def offences_of(prose: list[Prose], rules: dict):
    """Yields (path, line, text) for each offence, and uses up the exceptions of `rules`."""
    words = [(re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in rules["words"].items()]
    starts = [(re.compile(pattern), instead) for pattern, instead in rules["starts"].items()]
    allowed = {(a["file"], a["words"]): 0 for a in rules["allowed"]}
    for piece in prose:
        text = piece.text if piece.kind == "string" else without_code(piece.text)
        for pattern, instead in words:
            for found in pattern.finditer(text):
                if (piece.path, found[0].lower()) in allowed:
                    allowed[piece.path, found[0].lower()] += 1
                else:
                    yield piece.path, piece.line_at(found.start()), f'"{found[0]}": write {instead}'
        if piece.kind == "string":
            continue
        for begin, sentence in piece.sentences():
            for pattern, instead in starts:
                if pattern.match(sentence) and not sentence.endswith("?"):
                    yield piece.path, piece.line_at(begin), f'"{sentence[:40]}…": {instead}'
    for (path, used), times in allowed.items():
        if not times:
            yield "tools/language.toml", 1, f'the exception "{used}" in {path} is not used'


def cells_of(root: Path, paths: list[str]):
    """Yields (path, line, length) for each cell of a Markdown table."""
    for path in paths:
        if path.endswith(".md"):
            for number, line in enumerate((root / path).read_text().split("\n"), 1):
                if line.startswith("|"):
                    for cell in re.split(r"(?<!\\)\|", line)[1:-1]:
                        yield path, number, len(cell.strip())


def is_document(path: str) -> bool:
    return path.endswith(".md")


def long_sentences(prose: list[Prose], limit: int):
    """Returns all sentences as a Counter by kind, and the long ones as (path, line, words)."""
    total, long = Counter(), []
    for piece in prose:
        if piece.kind == "string":
            continue
        kind = "documents" if is_document(piece.path) else "comments"
        for begin, sentence in piece.sentences():
            count = len(sentence.split())
            total[kind] += 1
            if count > limit:
                long.append((kind, piece.path, piece.line_at(begin), count))
    return total, long


def check(root: Path, paths: list[str], rules: dict, whole: bool) -> list[str]:
    prose = [piece for path in paths for piece in prose_of(root, path)]
    if not whole:  # the exceptions of files that are not looked at are not "not used"
        rules = rules | {"allowed": [a for a in rules["allowed"] if a["file"] in paths]}
    wrong = [f"{path}:{line}: {text}" for path, line, text in offences_of(prose, rules)]

    limits = rules["limits"]
    wrong += [f"{path}:{line}: a cell of {length} characters; at most {limits['cell']}"
              for path, line, length in cells_of(root, paths) if length > limits["cell"]]
    total, long = long_sentences(prose, limits["sentence"])
    for kind, count in total.items():
        of_kind = [l for l in long if l[0] == kind]
        if len(of_kind) > limits["long_share"] * count:
            wrong += [f"{path}:{line}: a sentence of {words} words" for _, path, line, words in of_kind]
            wrong.append(f"{len(of_kind)} of {count} sentences in {kind} have more than {limits['sentence']} words; "
                         f"at most {limits['long_share']:.0%} may")
    for path, lines in limits["lines"].items():
        if path in paths and (count := (root / path).read_text().count("\n")) > lines:
            wrong.append(f"{path}: {count} lines; at most {lines}")
    if len(rules["allowed"]) > limits["exceptions"]:
        wrong.append(f"tools/language.toml: {len(rules['allowed'])} exceptions; at most {limits['exceptions']}")
    return wrong


def counts(root: Path, paths: list[str], rules: dict) -> list[str]:
    prose = [piece for path in paths for piece in prose_of(root, path)]
    total, long = long_sentences(prose, rules["limits"]["sentence"])
    lines = [f"{len(list(offences_of(prose, rules | {'allowed': []})))} words and constructions"]
    for kind in total:
        share = sum(l[0] == kind for l in long) / total[kind]
        lines.append(f"{total[kind]} sentences in {kind}, {share:.1%} of them long")
    cells = [length for _, _, length in cells_of(root, paths)]
    lines.append(f"{len(cells)} cells, the longest of {max(cells, default=0)} characters")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks that the words of a tree are plain English.")
    parser.add_argument("paths", nargs="*", type=Path, help="files, or the root of a tree (default: this tree)")
    parser.add_argument("--rules", type=Path, default=RULES)
    parser.add_argument("--counts", action="store_true", help="print figures")
    given = parser.parse_args()
    rules = tomllib.loads(given.rules.read_text())

    whole = not given.paths or given.paths[0].is_dir()
    root = (given.paths[0] if given.paths and whole else Path(__file__).parent.parent).resolve()
    paths = list(files_of(root, rules["skipped"])) if whole else [
        p.resolve().relative_to(root).as_posix() for p in given.paths]
    lines = counts(root, paths, rules) if given.counts else check(root, paths, rules, whole)
    print(*lines, sep="\n", end="\n" if lines else "")
    return 0 if given.counts or not lines else 1


if __name__ == "__main__":
    sys.exit(main())
