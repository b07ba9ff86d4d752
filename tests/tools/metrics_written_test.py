# SPDX-License-Identifier: Apache-2.0
"""Each metric of docs/metrics.md is written somewhere in the product, and so is each value of its labels.

The exporter (monitoring/) names the counters of a family, stats.h their types, and the rest of the product writes
them as `…stats….counter[value].add(…)`. tests/monitoring compares the document with the exporter."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = "base schemas input chunker cutting batcher streams transport gpu workers recording training monitoring service".split()
ELSEWHERE = re.compile(r"process_\w+|millrace_build_info")  # the exporter itself makes these
HELPED = {  # families for which the exporter has a separate function
    "millrace_ingest_connections_rejected_total": {("TransportStats", "refused"), ("ZeromqStats", "refused")},
    "millrace_zmq_connections_rejected_total": {("ZeromqStats", "refused")},
    "millrace_worker_wait_seconds_total": {("LaneStats", "wait")},
    "millrace_worker_oldest_batch_seconds": {("LaneStats", "oldest")},
}
WRITTEN_BY = {"websocket": r"session\w*|stream_server|waiting_place|conversation", "zmq": r"zeromq_\w+|\w*peer\w*"}


def sources():
    """{path: text} of the product, without comments, and with only the functions of each stats.h."""
    texts = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.*")):
            if path.suffix in (".h", ".cpp", ".cu"):
                texts[path.relative_to(ROOT)] = re.sub(r"//.*", "", path.read_text())
    return texts


def counters(texts):
    """{(struct, counter): the enum of its label, or None}"""
    found, bases = {}, {}
    cell = r"(?:Counter|Gauge|Histogram|std::array<Histogram, \w+>|Labelled<\w+, (\w+)>)"
    for path, text in texts.items():
        if not path.name.endswith("stats.h") or path.parts[0] == "base":
            continue
        for struct, base, body in re.findall(r"^struct (\w+)(?: : (\w+))? \{(.*?)^\};", text, re.DOTALL | re.MULTILINE):
            bases[struct] = base
            for enum, names in re.findall(rf"^  {cell} (\w[^;]*);", body, re.MULTILINE):
                for name in re.findall(r"(\w+)(?:\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})?(?:, |$)", names):
                    found[struct, name] = enum or None
    for struct, base in bases.items():
        found |= {(struct, name): enum for (of, name), enum in found.items() if of == base}
    return found


def families():
    """{family: its (struct, counter) pairs}, as the exporter reads them."""
    found = {}
    for path in (ROOT / "monitoring").glob("collect*.cpp"):
        parts = re.split(r'begin_\w+\(\s*"(\w+)"', path.read_text())
        for name, code in zip(parts[1::2], parts[2::2]):
            code = code.split("\nvoid ")[0]
            pairs = set(re.findall(r"&(\w+Stats)::(\w+)", code))
            for struct, variables in re.findall(r"const (\w+Stats)&(?: \w+)?\) -> (.*?);\s*\}", code, re.DOTALL):
                pairs |= {(struct, name) for name in re.findall(r"stats\.(\w+)", variables)}
            found[name] = HELPED.get(name, pairs)
    return found


def documented():
    """{family: {label: [values]}}"""
    page = (ROOT / "docs" / "metrics.md").read_text()
    return {name: {key: values.split("/") for key, values in re.findall(r"(\w+)=([\w/]+)", labels)}
            for name, labels in re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|", page, re.MULTILINE)}


class Written(unittest.TestCase):
    def setUp(self):
        self.texts = sources()
        self.counters = counters(self.texts)
        self.documented = documented()

    def writes(self, counter, files=".*"):
        """The text between the brackets, or "", of each place where this counter is written."""
        verb = rf"\b{counter}(?:\[([^\[\]]+)\])?\.(?:add|set|observe)\("
        found = []
        for path, text in self.texts.items():
            if path.name.endswith("stats.h"):
                found += re.findall(rf"(?<=[ ;]){verb}", text)
            elif re.fullmatch(files, path.stem):
                found += re.findall(rf"stats\w*(?:\(\))?(?:\[[^\[\]]+\])?(?:\.\w+(?:\[[^\[\]]+\])?)*(?:\.|->){verb}", text)
                found += re.findall(rf"stats_?\.{counter}()\)", text)  # given to a function that writes it
        return found

    def values(self, counter, enum):
        """The values of a label that are written, by the names that they have in the code."""
        everywhere = "\n".join(self.texts.values())
        written = set()
        for index in self.writes(counter):
            if f"static_cast<{enum}>" in index:
                return set(self.names(enum))  # a loop over all of them
            literal = re.findall(rf"\b{enum}::(\w+)", index)
            written |= set(literal or re.findall(rf"(?<!\w){enum}::(\w+)", everywhere))
        return written

    def test_each_counter_that_the_document_names_is_written(self):
        self.assertGreater(len(self.counters), 60)
        known = families()
        for family in self.documented:
            if ELSEWHERE.fullmatch(family):
                continue
            with self.subTest(family):
                self.assertTrue(known[family], "the exporter reads no counter for it")
                for struct, counter in known[family]:
                    self.assertIn((struct, counter), self.counters)
                    self.assertTrue(self.writes(counter), f"nothing writes {struct}::{counter}")

    def test_each_value_of_a_label_is_written(self):
        for family, pairs in families().items():
            labels = {name: enum for name in pairs if (enum := self.counters[name])}
            allowed = {value for values in self.documented[family].values() for value in values}
            for (_, counter), enum in labels.items():
                names = self.names(enum)
                with self.subTest(family):
                    unwritten = set(names) - self.values(counter, enum)
                    self.assertEqual({names[value] for value in unwritten} & allowed, set())

    def names(self, enum):
        """{value in the code: value of the label}"""
        for text in self.texts.values():
            if body := re.search(rf"enum class {enum} : \S+ \{{(.*?)\}};", text, re.DOTALL):
                values = re.findall(r"\w+", body[1])
                return dict(zip(values, values))
        raise AssertionError(f"no enum {enum}")

    def test_counters_of_both_transports_are_written_by_both(self):
        for family, pairs in families().items():
            for struct, counter in pairs:
                for transport in self.documented[family].get("transport", []) if struct == "TransportStats" else []:
                    with self.subTest(family, transport=transport):
                        self.assertTrue(self.writes(counter, WRITTEN_BY[transport]))


if __name__ == "__main__":
    unittest.main()
