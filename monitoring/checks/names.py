# SPDX-License-Identifier: Apache-2.0
"""Every PromQL expression parses, and its selectors use families, labels and values that docs/metrics.md lists."""
import re

import promql_parser as promql

import expressions
from families import ROOT, family_of

OF_EVERY_TARGET = {"job", "instance"}
OTHERS = {"up": OF_EVERY_TARGET, "ALERTS": OF_EVERY_TARGET | {"alertname", "alertstate", "severity", "pipeline"}}
NUMBERS = {"$__rate_interval": "1m", "$__interval": "1m", "$__range": "1h"}
RECORDED = {rule["record"]: {"job", "instance"} | set(rule["record"].split(":")[0].split("_"))
            for rule in expressions.rules() if "record" in rule}


def parsed(text):
    for variable, value in NUMBERS.items():
        text = text.replace(variable, value)
    return promql.parse(text)


def nodes(tree):
    """The tree and all nodes below it."""
    yield tree
    below = [getattr(tree, name, None) for name in ("lhs", "rhs", "expr", "vector_selector", "param")]
    for child in below + list(getattr(tree, "args", [])):
        if child is not None:
            yield from nodes(child)


def selectors(tree):
    return [node for node in nodes(tree) if isinstance(node, promql.VectorSelector)]


def labels_of(series):
    """{label: its values; empty if any value is allowed} of a series, or None if the series does not exist."""
    if series in OTHERS or series in RECORDED:
        return {label: set() for label in OTHERS.get(series) or RECORDED[series]}
    name, family = family_of(series)
    if name is None:
        return None
    more = OF_EVERY_TARGET | ({"le"} if series == name + "_bucket" else set())
    return {**family.labels, **{label: set() for label in more}}


def wrong_matchers(selector, labels):
    for matcher in selector.matchers.matchers:
        if matcher.name not in labels:
            yield f"{selector.name} has no label {matcher.name}"
        elif labels[matcher.name] and not matcher.value.startswith("$"):
            several = matcher.op in (promql.MatchOp.Re, promql.MatchOp.NotRe)
            for value in matcher.value.split("|") if several else [matcher.value]:
                if value not in labels[matcher.name]:
                    yield f"{selector.name} has no {matcher.name}={value}"


def grouped(tree):
    """The labels that aggregations and matchings name."""
    for node in nodes(tree):
        modifier = getattr(node, "modifier", None)
        for part in (modifier, getattr(modifier, "matching", None)):
            labels = getattr(part, "labels", None)
            yield from labels if isinstance(labels, list) else []


def faults(expression):
    """The faults of an expression, as sentences."""
    try:
        tree = parsed(expression.text)
    except ValueError as error:
        yield f"does not parse: {error}"
        return
    known = set()
    for selector in selectors(tree):
        labels = labels_of(selector.name)
        if labels is None:
            yield f"{selector.name} is not in docs/metrics.md"
            continue
        known |= set(labels)
        yield from wrong_matchers(selector, labels)
    for label in [*grouped(tree), *re.findall(r"\{\{(\w+)\}\}", expression.legend)]:
        if label not in known:
            yield f"no series in it has the label {label}"


def runbooks():
    """Faults of the links to runbooks, and of their list."""
    folder = ROOT / "docs" / "runbooks"
    listed = re.findall(r"^\| \[(\w+)\]\(\1\.md\)", (folder / "README.md").read_text(), re.MULTILINE)
    alerts = [rule for rule in expressions.rules() if "alert" in rule]
    for rule in alerts:
        if rule["annotations"]["runbook_url"] != f"{{{{ $externalURL }}}}/user/{rule['alert']}.md":
            yield f"{rule['alert']}: runbook_url is {rule['annotations']['runbook_url']}"
        if not (folder / f"{rule['alert']}.md").is_file():
            yield f"{rule['alert']}: there is no docs/runbooks/{rule['alert']}.md"
    for name in {rule["alert"] for rule in alerts} ^ set(listed):
        yield f"docs/runbooks/README.md and the alerts differ in {name}"


def untested_alerts(tests):
    """Alerts that have no test in which they fire, or none in which they do not."""
    cases = [case for test in tests for case in test.get("alert_rule_test", [])]
    for alert in (rule["alert"] for rule in expressions.rules() if "alert" in rule):
        fired = [bool(case["exp_alerts"]) for case in cases if case["alertname"] == alert]
        if True not in fired or False not in fired:
            yield f"{alert} has no test in which it {'does not fire' if True in fired else 'fires'}"


def check():
    """(subject, its faults), for each check."""
    for expression in expressions.everything():
        yield f"{expression.origin}: {expression.text}", list(faults(expression))
    yield "runbooks", list(runbooks())
    yield "tests of the alerts", list(untested_alerts(expressions.alert_tests()))
