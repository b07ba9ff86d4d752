# SPDX-License-Identifier: Apache-2.0
"""docs/log.md lists the events that the service writes, and no others."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIRECT = r'(?:\b(?:rare_)?(info|warning|error)|(\bwrite)\))\(\s*"([^"]+)"'
REPORTED = r'\breport\(log, "([^"]+)"'  # when memory is short
BY_WORKERS = r'\blog\(\s*\{(?:\.what = )?"([^"]+)"([^;]*);'


def written():
    """{event: its levels}, of the calls in service/, replay/, commands/, workers/ and training/."""
    events = {}
    for path in (path for folder in ("service", "replay", "commands", "workers", "training") for path in (ROOT / folder).rglob("*.cpp")):
        text = path.read_text()
        for level, varies, event in re.findall(DIRECT, text):
            events.setdefault(event, set()).update({"info", "warning"} if varies else {level})
        for event in re.findall(REPORTED, text):
            events.setdefault(event, set()).add("error")
        for event, rest in re.findall(BY_WORKERS, text):
            events.setdefault(event, set()).add("warning" if re.search(r"\btrue\}", rest) else "info")
        for level, event in re.findall(r'LogLevel::(\w+), "([^"]+)"', text):
            events.setdefault(event, set()).add(level)
    return events


def documented():
    page = (ROOT / "docs" / "log.md").read_text()
    return {event: set(re.findall(r"info|warning|error", levels))
            for event, levels in re.findall(r"^\| `([^`]+)` \| ([^|]+) \| [^|]+ \| [^|]+ \|$",
                                            page.split("## Events")[1], re.MULTILINE)}


class Log(unittest.TestCase):
    def test_the_document_has_each_event_with_its_levels(self):
        self.maxDiff = None
        self.assertGreater(len(written()), 25)
        self.assertEqual(documented(), written())


if __name__ == "__main__":
    unittest.main()
