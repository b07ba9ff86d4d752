#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the headers that are installed: those of [public] in tools/layers.toml, and what they include.

  tools/public_headers.py INTO [ROOT] [--rules FILE] [--except HEADER]

Writes them to INTO/millrace, with includes as <millrace/...>. INTO is emptied first. If users would need
an internal header or another library, writes nothing, prints one `file:line: error` for each such
include, and exits 1.
"""

import argparse
import re
import shutil
import sys
import tomllib
from pathlib import Path

INCLUDE = re.compile(r'^#include ([<"])([^>"]+)[>"]', re.MULTILINE)


def includes(root, path):
    """(line, true for a header of this tree, header) of each include."""
    text = (root / path).read_text(encoding="utf-8")
    for found in INCLUDE.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, found[1] == '"', found[2]


def closure(root, headers):
    """These headers and all headers of this tree that they include, each once."""
    reached = list(headers)
    for path in reached:  # grows while it is read
        reached += sorted({header for _, ours, header in includes(root, path) if ours} - set(reached))
    return reached


def installed_path(public, path):
    """The path below include/millrace."""
    return Path(path).name if path in public["headers"] else path


def include_offence(public, ours, header):
    """The error if a public header includes `header`, or None."""
    if ours:
        folder = Path(header).parent.as_posix()
        return None if folder in public["folders"] else f"installed, and includes {header}: {folder}/ is not public"
    standard = re.fullmatch(r"[a-z_]+", header)
    return None if standard or header in public["libraries"] else f"installed, and includes {header}"


def offences(public, root, headers):
    """(file, line, error) of every include that a public header must not have."""
    for path in headers:
        if Path(path).parent.as_posix() not in public["folders"]:
            continue  # an offence of the header that includes it
        for line, ours, header in includes(root, path):
            what = include_offence(public, ours, header)
            if what:
                yield path, line, what


def write(public, root, into, headers):
    shutil.rmtree(into, ignore_errors=True)
    for path in headers:
        text = (root / path).read_text(encoding="utf-8")
        written = into / "millrace" / installed_path(public, path)
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(INCLUDE.sub(lambda m: m[0] if m[1] == "<"
                                       else f"#include <millrace/{installed_path(public, m[2])}>", text),
                           encoding="utf-8")


def main():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("into", type=Path)
    parser.add_argument("root", nargs="?", type=Path, default=here.parent)
    parser.add_argument("--rules", type=Path, default=here / "layers.toml")
    parser.add_argument("--except", dest="left_out", action="append", default=[], metavar="HEADER")
    args = parser.parse_args()
    public = tomllib.loads(args.rules.read_text(encoding="utf-8"))["public"]
    headers = closure(args.root, [header for header in public["headers"] if header not in args.left_out])
    found = list(offences(public, args.root, headers))
    for path, line, what in found:
        print(f"{path}:{line}: {what}")
    if found:
        return 1
    write(public, args.root, args.into, headers)
    print(f"{len(headers)} headers in {args.into}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
