# SPDX-License-Identifier: Apache-2.0
"""Finds the words that people read in a tree: paragraphs of documents, comments, and string literals of code."""

import os
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

C_LIKE = (".h", ".hpp", ".cpp", ".cu", ".cuh", ".fbs", ".js", ".proto")
HASH = (".py", ".sh", ".cmake", ".toml", ".yaml", ".yml", ".service", ".conf", ".dict")
HASH_NAMES = ("CMakeLists.txt", "Dockerfile", "Dockerfile.cuda", "Makefile")
TEXT = (".html", ".css", ".1")
NOT_OURS = ("pyvenv.cfg", "CMakeCache.txt")  # a folder with one of these is an environment or a build tree

# A C++ or JavaScript file: comments are kept, literals are kept apart, all else is code.
C_TOKEN = re.compile(
    r'(?P<comment>//[^\n]*|/\*.*?\*/)|R"(?P<tag>[^\s()\\]*)\((?P<raw>.*?)\)(?P=tag)"|'
    r'(?P<string>"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`)|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
PY_TOKEN = re.compile(
    r'"""(?P<docs>.*?)"""|(?P<string>"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')|'
    r'(?P<comment>#[^\n]*)', re.DOTALL)
SENTENCE_END = re.compile(r'(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)\s+(?=[A-Z0-9"`\[(*])|(?<=[.!?])\s*$')


@dataclass
class Prose:
    """A run of words that belong together, and the line of its file for each position."""
    path: str
    kind: str  # "paragraph", "cell" (or heading), "comment", "string", or "line" of a script, a page or printed code
    text: str = ""
    begins: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def add(self, text: str, line: int) -> None:
        if self.text:
            self.text += " "
        self.begins.append(len(self.text))
        self.lines.append(line)
        self.text += text.strip()

    def line_at(self, position: int) -> int:
        return self.lines[bisect_right(self.begins, position) - 1]

    def sentences(self) -> Iterator[tuple[int, str]]:
        """The sentences with their positions. Code in backquotes counts as one word."""
        text = without_code(self.text)
        begin = 0
        for end in SENTENCE_END.finditer(text):
            if text[begin:end.start()].strip():
                yield begin, text[begin:end.start()].strip()
            begin = end.end()
        if text[begin:].strip():
            yield begin, text[begin:].strip()


def without_code(text: str) -> str:
    """The text with the code in its backquotes blanked out, of the same length."""
    return re.sub(r"`[^`]*`", lambda code: "`" + "_" * (len(code[0]) - 2) + "`", text)


def files_of(root: Path, skipped: list[str]) -> Iterator[str]:
    """The files with words, as paths from root. No build trees, environments or hidden folders except .ci."""
    for folder, folders, names in os.walk(root):
        below = Path(folder).relative_to(root).as_posix()
        folders[:] = sorted(f for f in folders if (not f.startswith(".") or f == ".ci") and f != "__pycache__"
                            and not (below == "." and f == "build")
                            and not any((Path(folder) / f / name).exists() for name in NOT_OURS))
        for name in sorted(names):
            path = name if below == "." else f"{below}/{name}"
            if kind_of(root, path) and not any(fnmatchcase(path, pattern) for pattern in skipped):
                yield path


def kind_of(root: Path, path: str) -> str | None:
    name = Path(path).name
    if name.endswith(".md"):
        return "markdown"
    if name.endswith(C_LIKE):
        return "c"
    if name.endswith(".py") or name.endswith(".pyi"):
        return "python"
    if name.endswith(HASH) or name.removesuffix(".in").endswith(HASH) or name in HASH_NAMES:
        return "hash"
    if name.endswith(TEXT):
        return "text"
    if "." not in name and name != "LICENSE":
        with (root / path).open("rb") as file:
            first = file.read(120)
        if first.startswith(b"#!") or b"SPDX" in first:
            return "python" if b"python" in first.split(b"\n")[0] else "hash"
    return None


def prose_of(root: Path, path: str) -> list[Prose]:
    text = (root / path).read_text(errors="replace")
    match kind_of(root, path):
        case "markdown":
            return markdown(path, text)
        case "c":
            return code(path, text, C_TOKEN, r"//+|/\*+|\*+/|^\s*\*")
        case "python":
            return code(path, text, PY_TOKEN, r"#+:?")
        case "hash":
            return hashed(path, text)
        case _:
            return plain(path, text)


def cells_of(line: str) -> list[str]:
    """The cells of a row of a Markdown table; empty for any other line."""
    return re.split(r"(?<!\\)\|", line.strip())[1:-1] if line.lstrip().startswith("|") else []


def markdown(path: str, text: str) -> list[Prose]:
    """Paragraphs, list items, headings and cells, and the lines of code blocks."""
    found: list[Prose] = []

    def add(kind: str, words: str, line: int) -> Prose:
        found.append(Prose(path, kind))
        found[-1].add(words, line)
        return found[-1]

    fence = ""
    paragraph: Prose | None = None
    for number, line in enumerate(text.split("\n"), 1):
        marker = re.match(r"\s*(```+|~~~+)", line)
        if fence:
            fence = "" if marker and marker[1].startswith(fence) else fence
            add("line", line, number)
        elif marker:
            fence, paragraph = marker[1], None
        elif line.startswith("#"):
            paragraph = None
            add("cell", line.lstrip("# "), number)
        elif cells := cells_of(line):
            paragraph = None
            for cell in cells:
                add("cell", cell, number)
        elif not line.strip() or re.match(r"\s*<!--.*-->\s*$", line):
            paragraph = None
        elif paragraph is None or re.match(r"\s*([-*+]|\d+\.|>)\s", line):
            paragraph = add("paragraph", re.sub(r"^\s*([-*+]|\d+\.|>)\s+", "", line), number)
        else:
            paragraph.add(line, number)
    return [piece for piece in found if re.search(r"\w", piece.text)]


class Code:
    """Collects the comments and the literals of a file of code."""

    def __init__(self, path: str, text: str):
        self.path, self.text = path, text
        self.found: list[Prose] = []
        self.comment_ends = (0, 0)  # line and column of the last comment that is alone on its lines
        self.literal_ends = 0       # position after the last literal

    def start(self, kind: str) -> None:
        self.found.append(Prose(self.path, kind))

    def lines_of(self, text: str, position: int) -> Iterator[tuple[int, str]]:
        return enumerate(text.split("\n"), self.text.count("\n", 0, position) + 1)

    def paragraphs(self, lines: Iterator[tuple[int, str]]) -> None:
        """Adds lines to the last piece; an empty line begins another one."""
        for line, words in lines:
            if not words.strip():
                self.start("comment")
            elif "SPDX-License" not in words:
                self.found[-1].add(words, line)

    def comment(self, part: re.Match, marks: str) -> None:
        """A comment. It continues the one on the line above if both are alone and in the same column."""
        lines = [(line, re.sub(marks, "", words, count=1).removesuffix("*/"))
                 for line, words in self.lines_of(part[0], part.start())]
        column = part.start() - self.text.rfind("\n", 0, part.start())
        alone = not self.text[part.start() - column + 1:part.start()].strip()
        if not alone or self.comment_ends != (lines[0][0] - 1, column):
            self.start("comment")
        self.paragraphs(iter(lines))
        self.comment_ends = (lines[-1][0], column if alone else 0)

    def docstring(self, part: re.Match) -> None:
        self.start("comment")
        self.paragraphs(self.lines_of(part["docs"], part.start()))

    def literal(self, part: re.Match) -> None:
        """A literal with a space, so that it is no key or name. Neighbouring literals are one."""
        words = part.groupdict().get("raw") or part["string"][1:-1]
        if " " in words:
            if not self.literal_ends or self.text[self.literal_ends:part.start()].strip():
                self.start("string")
            (line, _), *_ = self.lines_of(part[0], part.start())
            self.found[-1].add(words.replace("\\n", " "), line)
            self.literal_ends = part.end()


def code(path: str, text: str, token: re.Pattern, marks: str) -> list[Prose]:
    """The comments and literals of a file of code. `marks` is how its comments begin."""
    collected = Code(path, text)
    for part in token.finditer(text):
        groups = part.groupdict()
        if groups.get("comment"):
            collected.comment(part, marks)
        elif groups.get("docs"):
            collected.docstring(part)
        elif groups.get("raw") or groups.get("string"):
            collected.literal(part)
    return [piece for piece in collected.found if piece.text]


def hashed(path: str, text: str) -> list[Prose]:
    """Comments after # of scripts and settings; the other lines as they are, for their messages."""
    found: list[Prose] = []
    comment = False
    for number, line in enumerate(text.split("\n"), 1):
        mark = re.match(r"\s*#+ ?(.*)", line)
        if mark and not line.startswith("#!"):
            if not comment or not mark[1].strip():
                found.append(Prose(path, "comment"))
            if "SPDX-License" not in line:
                found[-1].add(mark[1], number)
            comment = True
        else:
            comment = False
            if line.strip():
                found.append(Prose(path, "line"))
                found[-1].add(line, number)
    return [piece for piece in found if piece.text]


def plain(path: str, text: str) -> list[Prose]:
    """The words of a page, line by line."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if re.search(r"\w", line):
            found.append(Prose(path, "line"))
            found[-1].add(line, number)
    return found
