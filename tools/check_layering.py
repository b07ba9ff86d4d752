#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the C++ of a tree against tools/layers.toml: which folders include which, and what code is allowed where.

  tools/check_layering.py [ROOT] [--rules FILE]

Prints one line `file:line: error` for each offence. Exits 1 if there is one.
"""

import argparse
import os
import re
import sys
import tomllib
from collections import Counter
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

CODE = (".h", ".hpp", ".cpp", ".cu", ".cuh")
COUNTED = CODE + (".py",)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Comments and literals: a word in them is not an offence. The path of an include does not count as a literal.
SILENT = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^\s()\\]*)\(.*?\)(?P=tag)"|'
    r'(?<!include )"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL)


def files_of(root):
    """All counted files below root, as paths from it; no build trees and no hidden folders."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f != "__pycache__"
                            and not (Path(folder) == root and f == "build"))
        for name in sorted(names):
            if name.endswith(COUNTED):
                yield (Path(folder) / name).relative_to(root).as_posix()


def spoken(text):
    """The text without comments and literals, line by line."""
    return SILENT.sub(lambda m: "\n" * m[0].count("\n"), text).split("\n")


def matches(path, patterns):
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def folder_of(rules, path):
    """The innermost folder of the rules that contains `path`, or None."""
    for folder in Path(path).parents:
        if folder.as_posix() in [*rules["folders"], *rules["ends"]]:
            return folder.as_posix()
    return None


def within(folder, allowed):
    """True if `folder` is one of `allowed`, or below one of them."""
    return "*" in allowed or any(folder == a or folder.startswith(f"{a}/") for a in allowed)


def include_offence(rules, root, path, quoted, header):
    """The error if `path` includes `header`, or None."""
    places = next((p for h, p in rules["headers"].items() if fnmatchcase(header, h)), ["*"])
    if not matches(path, places):
        return f"only {', '.join(places) or 'no file'} may include {header}"
    if not quoted:
        ours = (root / header).is_file() and "/" in header
        return f"write our own header in quotes: {header}" if ours else None
    if header.endswith("_generated.h"):  # in the build tree; checked above
        return None
    if not (root / header).is_file():
        return f'no file of the tree, or not written from the root: "{header}"'
    folder, other = folder_of(rules, path), folder_of(rules, header)
    if folder in rules["ends"] or folder == other:
        return None
    allowed = rules["folders"][folder]
    if other in rules["folders"] and within(other, allowed):
        return None
    return f"{folder}/ may not include {header}"


def code_offences(rules, root, path, text):
    """(line, error) of every offence in a C++ file."""
    if folder_of(rules, path) is None:
        yield 1, "a folder that tools/layers.toml does not name"
        return
    for number, line in enumerate(spoken(text), 1):
        include = INCLUDE.match(line)
        if include:
            what = include_offence(rules, root, path, include[1] == '"', include[2])
            if what:
                yield number, what
        for word, allowed in rules["words"].items():
            if re.search(word, line) and not matches(path, allowed):
                yield number, f"not allowed here (allowed: {', '.join(allowed) or 'nowhere'}): {line.strip()}"


def link_offences(rules, root):
    """(file, line, error) of each folder's CMakeLists.txt that links a folder it may not include."""
    libraries = {folder.replace("/", "_"): folder for folder in rules["folders"]}
    for folder, allowed in rules["folders"].items():
        path = root / folder / "CMakeLists.txt"
        reach = [folder, *allowed]
        for number, line in enumerate(path.read_text().split("\n") if path.is_file() else [], 1):
            for name in re.findall(r"\bmillrace::(\w+)", line.split("#")[0]):
                if name in libraries and not within(libraries[name], reach):
                    yield f"{folder}/CMakeLists.txt", number, f"{folder}/ may not link {name}"


def rule_offences(rules):
    """(file, line, error) of each rule that names a file or a pattern instead of a folder."""
    for folder, allowed in rules["folders"].items():
        for other in allowed:
            known = other == "*" or any(within(name, [other]) for name in rules["folders"])
            if not known:
                yield "tools/layers.toml", 1, f"{folder}/ may include folders only, not {other}"


def graph_offences(rules, root, whole):
    """(folder, 1, error) if the includes between folders form a circle, or if a line allows what its folder in the whole tree
    does not need."""
    graph = {folder: set() for folder in rules["folders"]}
    for path in files_of(root):
        if path.endswith(CODE) and folder_of(rules, path) in graph:
            for header in re.findall(r'^#include "([^"]+)"', (root / path).read_text(encoding="utf-8"), re.MULTILINE):
                if folder_of(rules, header) in graph:
                    graph[folder_of(rules, path)].add(folder_of(rules, header))
    for folder, others in graph.items():
        others.discard(folder)
        for allowed in rules["folders"][folder] if whole else []:
            if allowed not in ("*", "base") and not any(within(other, [allowed]) for other in others):
                yield f"{folder}/", 1, f"includes nothing of {allowed}/, which its line in tools/layers.toml allows"
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = error.args[1][::-1]
        yield f"{circle[0]}/", 1, f"a circle of folders: {' includes '.join(circle)}"


def count_offences(rules, root):
    """(folder, 1, error) of each folder with too many C++ files, except for the ends."""
    counts = Counter(str(Path(path).parent) for path in files_of(root)
                     if path.endswith(CODE) and folder_of(rules, path) in rules["folders"])
    for folder, count in counts.items():
        if count > rules["max_files"]:
            yield f"{folder}/", 1, f"more than {rules['max_files']} files: {count}"


def offences(rules, root):
    """(file, line, error) of every offence in the tree."""
    for path in files_of(root):
        text = (root / path).read_text(encoding="utf-8")
        count = text.count("\n")
        if count > rules["max_lines"]:
            yield path, count, f"longer than {rules['max_lines']} lines"
        for part in Path(path).stem.split("_"):
            if part in rules["names"]["banned"]:
                yield path, 1, f"a name that is too general: {part}"
        if path.endswith(CODE):
            for number, what in code_offences(rules, root, path, text):
                yield path, number, what
    yield from rule_offences(rules)
    yield from link_offences(rules, root)
    yield from graph_offences(rules, root, root.resolve() == Path(__file__).resolve().parents[1])
    yield from count_offences(rules, root)


def main():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("root", nargs="?", type=Path, default=here.parent)
    parser.add_argument("--rules", type=Path, default=here / "layers.toml")
    args = parser.parse_args()
    rules = tomllib.loads(args.rules.read_text(encoding="utf-8"))
    found = list(offences(rules, args.root.resolve()))
    for path, line, what in found:
        print(f"{path}:{line}: {what}")
    print(f"{len(found)} offences against {args.rules.name}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
