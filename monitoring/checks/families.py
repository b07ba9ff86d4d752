# SPDX-License-Identifier: Apache-2.0
"""The metrics that docs/metrics.md lists."""
import dataclasses
import functools
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass(frozen=True)
class Family:
    kind: str  # counter, gauge, histogram
    labels: dict  # {label: its values; empty if docs/metrics.md does not list them}


@functools.cache
def families():
    """{name: Family}"""
    page = (ROOT / "docs" / "metrics.md").read_text()
    found = {}
    for name, kind, labels in re.findall(r"^\| `(\w+)` \| (\w+)[^|]* \| ([^|]+) \|", page, re.MULTILINE):
        parts = [part.partition("=") for part in labels.split(", ") if part.strip() not in ("", "–")]
        found[name] = Family(kind, {label.strip(): set(filter(None, values.strip().split("/")))
                                    for label, _, values in parts})
    return found


def family_of(series):
    """(name, Family) that a series belongs to; (None, None) if docs/metrics.md does not list it."""
    known = families()
    if series in known and known[series].kind != "histogram":
        return series, known[series]
    base = re.sub("_(bucket|sum|count)$", "", series)
    if base != series and base in known and known[base].kind == "histogram":
        return base, known[base]
    return None, None
