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
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from prose import Prose, cells_of, files_of, prose_of, without_code  # noqa: E402

RULES = Path(__file__).parent / "language.toml"


def words_of(piece: Prose, rules: dict) -> Iterator[tuple[int, str, str]]:
    """Yields (line, words, what to write) for each pattern that a piece contains."""
    text = piece.text if piece.kind in ("string", "line") else without_code(piece.text)
    for pattern, instead in rules["words"].items():
        for found in re.finditer(pattern, text, re.IGNORECASE):
            yield piece.line_at(found.start()), found[0], f"write {instead}"
    if piece.kind in ("cell", "line"):  # no sentences
        return
    for begin, sentence in piece.sentences():
        if piece.kind == "string" and sentence[0].islower():  # may follow a value
            continue
        for pattern, instead in rules["starts"].items():
            if (found := re.match(pattern, sentence, re.IGNORECASE)) and not sentence.endswith("?"):
                yield piece.line_at(begin), found[0], f"a sentence must not begin so: {instead}"


def offences_of(prose: list[Prose], rules: dict) -> Iterator[str]:
    """Yields a line for each offence that is not allowed, and for each exception that is not exact."""
    used = Counter()
    for piece in prose:
        for line, words, instead in words_of(piece, rules):
            used[piece.path, words.lower()] += 1
            if not any((a["file"], a["words"]) == (piece.path, words.lower()) for a in rules["allowed"]):
                yield f'{piece.path}:{line}: "{words}": {instead}'
    for a in rules["allowed"]:
        if not a["why"] or used[a["file"], a["words"]] != a["times"]:
            yield f'tools/language.toml: "{a["words"]}" is {used[a["file"], a["words"]]} times in {a["file"]}'


def long_cells(root: Path, paths: list[str]) -> Iterator[tuple[str, int, int]]:
    """Yields (path, line, length) for each cell of a Markdown table."""
    for path in paths:
        if path.endswith(".md"):
            for number, line in enumerate((root / path).read_text(errors="replace").split("\n"), 1):
                for cell in cells_of(line):
                    yield path, number, len(cell.strip())


def sentences_of(prose: list[Prose]) -> dict[str, list[tuple[str, int, int]]]:
    """Returns (path, line, number of words) of each sentence in paragraphs and in comments. Cells do not count."""
    found = {"documents": [], "comments": []}
    for piece in prose:
        if piece.kind in ("paragraph", "comment"):
            found["documents" if piece.kind == "paragraph" else "comments"] += [
                (piece.path, piece.line_at(begin), len(sentence.split())) for begin, sentence in piece.sentences()]
    return found


def check(root: Path, paths: list[str], rules: dict) -> list[str]:
    prose = [piece for path in paths for piece in prose_of(root, path)]
    limits = rules["limits"]
    wrong = list(offences_of(prose, rules | {"allowed": [a for a in rules["allowed"] if a["file"] in paths]}))
    wrong += [f"{path}:{line}: a cell of {length} characters; at most {limits['cell']}"
              for path, line, length in long_cells(root, paths) if length > limits["cell"]]
    for kind, sentences in sentences_of(prose).items():
        long = [sentence for sentence in sentences if sentence[2] > limits["sentence"]]
        if len(long) > limits["long_share"] * len(sentences):
            wrong += [f"{path}:{line}: a sentence of {words} words" for path, line, words in long]
            wrong.append(f"{len(long)} of {len(sentences)} sentences in {kind} have more than {limits['sentence']} words; "
                         f"at most {limits['long_share']:.0%} may")
    for path, lines in limits["lines"].items():
        if path in paths and (count := (root / path).read_text().count("\n")) > lines:
            wrong.append(f"{path}: {count} lines; at most {lines}")
    if (times := sum(a["times"] for a in rules["allowed"])) > limits["exceptions"]:
        wrong.append(f"tools/language.toml: {times} exceptions; at most {limits['exceptions']}")
    return wrong


def counts(root: Path, paths: list[str], rules: dict) -> list[str]:
    prose = [piece for path in paths for piece in prose_of(root, path)]
    lines = [f"{sum(1 for piece in prose for _ in words_of(piece, rules))} words and constructions, "
             f"{sum(a['times'] for a in rules['allowed'])} of them allowed"]
    for kind, sentences in sentences_of(prose).items():
        long = sum(words > rules["limits"]["sentence"] for _, _, words in sentences)
        lines.append(f"{len(sentences)} sentences in {kind}, {long / max(len(sentences), 1):.1%} of them long")
    cells = [length for _, _, length in long_cells(root, paths)]
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
    lines = counts(root, paths, rules) if given.counts else check(root, paths, rules)
    print(*lines, sep="\n", end="\n" if lines else "")
    return 0 if given.counts or not lines else 1


if __name__ == "__main__":
    sys.exit(main())
