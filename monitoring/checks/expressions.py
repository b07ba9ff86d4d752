# SPDX-License-Identifier: Apache-2.0
"""Every PromQL expression of the dashboards, the rules and the documents."""
import dataclasses
import json
import re

import yaml

from families import ROOT, families

BOARDS = ROOT / "monitoring" / "grafana" / "dashboards"
RULES = ROOT / "monitoring" / "prometheus" / "rules"
ALERT_TESTS = RULES.parent / "tests" / "alerts_test.yml"
SPANS = re.compile(r"```promql\n(.*?)```|(?<!`)`([^`\n]+)`(?!`)", re.DOTALL)


@dataclasses.dataclass
class Expression:
    origin: str  # shown in messages
    text: str
    legend: str = ""


def boards():
    """{name: JSON} of the dashboards in the repository."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(BOARDS.glob("*.json"))}


def panels(board):
    """All panels except rows."""
    for panel in board["panels"]:
        yield from panel.get("panels", [])
        if panel["type"] != "row":
            yield panel


def of_variable(variable):
    """The selector whose label a variable lists; None if its query is something else."""
    query = re.fullmatch(rf"label_values\((.*), {variable['name']}\)", variable["query"]["query"])
    return query and query[1]


def of_board(name, board):
    for panel in panels(board):
        for target in panel.get("targets", []):
            yield Expression(f"{name}: {panel['title']}", target["expr"], target.get("legendFormat", ""))
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield Expression(f"{name}: variable {variable['name']}", of_variable(variable))
    for annotation in board["annotations"]["list"]:
        yield Expression(f"{name}: annotation {annotation['name']}", annotation["expr"],
                         annotation["titleFormat"] + annotation["textFormat"])


def rules():
    """All rules, as they are in their files."""
    for path in sorted(RULES.glob("*.yml")):
        for group in yaml.safe_load(path.read_text())["groups"]:
            yield from group["rules"]


def alert_tests():
    """The tests that promtool runs."""
    return yaml.safe_load(ALERT_TESTS.read_text())["tests"]


def of_rules():
    for rule in rules():
        yield Expression(f"rule {rule.get('alert') or rule['record']}", rule["expr"])


def documents():
    """All documents except decisions, which are not updated."""
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "monitoring").rglob("*.md")]:
        if path.parent.name != "decisions":
            yield path


def of_documents():
    """Blocks of PromQL, and code spans that name a metric. Patterns like `process_*`, paths and calls are no PromQL."""
    for path in sorted(documents()):
        for block, span in SPANS.findall(path.read_text()):
            metric = re.search(r"(?<![/.\w])(millrace|process)_\w+(?!\w|\(|/[\w/]*(\.|$))", span) and not span.endswith("*")
            if (block or metric) and not (span in families() and families()[span].kind == "histogram"):
                yield Expression(str(path.relative_to(ROOT)), block or span)


def everything():
    for name, board in boards().items():
        yield from of_board(name, board)
    yield from of_rules()
    yield from of_documents()
