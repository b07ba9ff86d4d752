# SPDX-License-Identifier: Apache-2.0
"""Checks under load that every query of every panel returns numbers, every selector matches a series, and the rules evaluate."""
import contextlib
import math
import os
import re
import sys
import time

import expressions
import names
import pictures
from families import ROOT

LOAD = 12  # seconds of load after the last worker was lost; $__rate_interval is 4


def import_load(build):
    """Imports load and prometheus_server. tests/system takes the paths of the programs from the environment."""
    os.environ["MILLRACE"] = str(build / "service" / "millrace")
    os.environ["MILLRACE_SIMULATED"] = str(build / "tests" / "support" / "simulated_cuda" / "millrace_simulated")
    sys.path.insert(0, str(ROOT / "tests" / "system"))
    import load
    import prometheus_server
    return load, prometheus_server


class Span:
    """The time that a dashboard shows, and its variables."""

    def __init__(self, prometheus, instance, begin):
        self.prometheus, self.begin, self.end = prometheus, begin, time.time()
        # Grafana replaces variables in queries of Prometheus in this way: the value of *All*, or a value with escaped dots.
        self.values = {"$job": ".+", "$pipeline": ".+", "$instance": re.escape(instance).replace("\\", "\\\\"),
                       "$__rate_interval": "4s", "$__interval": "1s", "$__range": f"{int(self.end - begin)}s"}

    def replaced(self, text):
        for name, value in self.values.items():
            text = text.replace(name, value)
        return text

    def curves(self, text):
        return self.prometheus.curves(self.replaced(text), self.begin, self.end)


def numbers(points):
    return [value for _, value in points if math.isfinite(value)]


def without_series(span, text):
    """Selectors that match no series."""
    for selector in names.selectors(names.parsed(text)):
        series = selector.prettify().split(" offset ")[0]  # the list of series has no offset
        if not span.prometheus.series(span.replaced(series), span.begin, span.end):
            yield f"no series {series}"


def wrong(span, text):
    """Faults of the results of a panel's query, as sentences."""
    try:
        curves = span.curves(text)
    except ValueError as error:
        yield str(error)
        return
    if not curves:
        yield "no data"
    for labels, points in curves:
        if not numbers(points):
            yield f"no number in {labels}"
    yield from without_series(span, text)


def of_board(span, name, board):
    for expression in expressions.of_board(name, board):
        if not expression.origin.endswith("annotation Alerts"):  # an alert fires only on the service of *overview*
            yield f"{expression.origin}: {expression.text}", list(wrong(span, expression.text))


def of_rules(prometheus, begin):
    """Checks that rules evaluate, selectors match, recording rules have samples, and the runbook of each alert is served."""
    span = Span(prometheus, "", begin)
    evaluated = [rule for group in prometheus.api("rules")["groups"] for rule in group["rules"]]
    for rule in evaluated:
        faults = [] if rule["health"] == "ok" else [rule.get("lastError", rule["health"])]
        faults += without_series(span, rule["query"])
        if rule["type"] == "recording" and not prometheus.api("query", query=rule["name"])["result"]:
            faults.append("has recorded no sample")
        if rule["type"] == "alerting" and prometheus.get(f"/user/{rule['name']}.md")[0] != 200:
            faults.append("Prometheus does not serve its runbook")
        yield f"rule {rule['name']}", faults
    missing = {rule.get("alert") or rule["record"] for rule in expressions.rules()} - {rule["name"] for rule in evaluated}
    yield "all rules are loaded", sorted(missing)


def check(build="build/release"):
    """(subject, its faults), for each check."""
    build = (ROOT / build).resolve()
    load, server = import_load(build)
    with contextlib.ExitStack() as running:
        host, device = load.Load(running), load.DeviceLoad(running)
        instances = [f"127.0.0.1:{each.service.admin_port}" for each in (host, device)]
        prometheus = server.Prometheus(instances)
        running.callback(prometheus.close)
        begin = time.time() + 5
        host.lose_workers(running)
        time.sleep(LOAD)
        for name, board in expressions.boards().items():
            span = Span(prometheus, instances[name == "gpu"], begin)
            yield from of_board(span, name, board)
            pictures.draw(board, span, build / "monitoring" / "dashboards" / f"{name}.png")
        yield from of_rules(prometheus, begin)
