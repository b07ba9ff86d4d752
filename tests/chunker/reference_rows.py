#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cases in, rows out: the executable contract for many random cases in one process.

Reads a JSON array of {spec, events, align, pad}, writes one of {rows, values}, where frame p has
the value p + 1 and rows are as wide as the widest window that spec and events can give.
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "conformance"))
sys.dont_write_bytecode = True
import chunk_reference as reference


def answer(case):
    spec = reference.Spec(**case["spec"])
    chunker = reference.stream(spec, case["events"])
    rows = chunker.rows
    width = reference.row_width(spec)
    for kind, n in case["events"]:
        if kind == "size":
            width = max(width, spec.left + n + spec.right)
    return {
        "rows": rows,
        "messages": chunker.messages,
        "values": [
            reference.row_values(spec, row, lambda p: p + 1, width, case["align"], case["pad"]) if row[3] else None
            for row in rows
        ],
    }


if __name__ == "__main__":
    with open(sys.argv[1]) as cases, open(sys.argv[2], "w") as answers:
        json.dump([answer(case) for case in json.load(cases)], answers)
