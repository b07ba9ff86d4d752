#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs that documents print, to be run as they are printed.

A fenced block of python, cpp or sh right behind a line `<!-- run: NAME -->` is the program NAME;
behind `<!-- part of: NAME -->` it is a piece of that program, to be talked about. A block of python
or cpp without either is nothing that a document may have; one of sh may be there for the reader.

  tests/support/printed_programs.py FOLDER    writes those in C++ to FOLDER/NAME.cpp
"""
import re
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FENCED = re.compile(r"^(?:[ ]*<!-- (?P<role>run|part of): (?P<name>[a-z0-9_]+) -->\n)?"
                    r"(?P<indent>[ ]*)```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^(?P=indent)```$",
                    re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    place: str  # FILE:LINE of its fence
    role: str | None
    name: str | None
    language: str
    text: str


def documents():
    """Those that are ours: what a build folder holds is not."""
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "python/*.md", "bench/*.md", "monitoring/*.md"):
        yield from sorted(ROOT.glob(pattern))


def blocks_of(text, file):
    for found in FENCED.finditer(text):
        line = text.count("\n", 0, found.start("indent")) + 1
        yield Block(f"{file}:{line}", found["role"], found["name"], found["language"],
                    textwrap.dedent(found["text"]))


def blocks():
    for document in documents():
        yield from blocks_of(document.read_text(), document.relative_to(ROOT))


def programs():
    """By name."""
    named = {}
    for block in blocks():
        if block.role == "run" and named.setdefault(block.name, block) is not block:
            raise ValueError(f"{block.place} and {named[block.name].place} have the same name, {block.name}")
    return named


def write_sources(folder):
    """Leaves alone what is as it was, so that it is not compiled again."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {folder / f"{name}.cpp": block.text for name, block in programs().items() if block.language == "cpp"}
    for stale in set(folder.glob("*.cpp")) - set(wanted):
        stale.unlink()
    for path, text in wanted.items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    write_sources(Path(sys.argv[1]))
