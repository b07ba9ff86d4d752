# SPDX-License-Identifier: Apache-2.0
"""The rules of Grafana's dashboard linter (https://github.com/grafana/dashboard-linter), which Debian and PyPI do not
have. Also checks that the JSON is what the builders write, and that their models read it back unchanged."""
import json
import re

import promql_parser as promql
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.dashboard import Dashboard

import build
import expressions
import names
from families import ROOT

register_default_plugins()
UNITS = {value for name, value in vars(units).items() if not name.startswith("_")}
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
OF_PROMETHEUS = ("step", "textFormat", "titleFormat", "useValueForTime")  # fields of annotations that no model has
VARIABLES = {"job": "Job", "instance": "Instance", "pipeline": "Pipeline"}


def of_variables(board):
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    source = variables.get("datasource", {})
    if (source.get("type"), source.get("query"), source.get("label")) != ("datasource", "prometheus", "Data source"):
        yield "template-datasource-rule: must have a variable datasource of type prometheus, labelled Data source"
    for name, label in VARIABLES.items():
        variable = variables.get(name)
        if variable is None:
            yield f"template-{name}-rule: must have a variable {name}"
            continue
        wanted = {"type": "query", "label": label, "multi": True, "includeAll": True, "allValue": ".+", "datasource": SOURCE}
        for key, value in wanted.items():
            if variable.get(key) != value:
                yield f"template-{name}-rule: {key} of the variable is {variable.get(key)}; must be {value}"
        if not expressions.of_variable(variable):
            yield f"template-label-promql-rule: the query of variable {name} must be label_values(SELECTOR, {name})"
        if variable.get("refresh") != 2:
            yield f"template-on-time-change-reload-rule: variable {name} must be read again when the time range changes"


def of_panel(panel):
    if not panel.get("title") or not panel.get("description"):
        yield "panel-title-description-rule: title or description is missing"
    if panel.get("datasource") != SOURCE:
        yield "panel-datasource-rule: the data source must be the variable datasource"
    defaults = panel.get("fieldConfig", {}).get("defaults", {})
    if defaults.get("unit") not in UNITS:
        yield f"panel-units-rule: {defaults.get('unit')} is not a unit of Grafana"
    if not panel.get("targets"):
        yield "panel-no-targets-rule: there is no query"
    for target in panel.get("targets", []):
        if target.get("datasource") != SOURCE:
            yield "target-datasource-rule: the data source must be the variable datasource"
        yield from of_target(target["expr"])


def of_target(text):
    try:
        tree = names.parsed(text)
    except ValueError as error:
        yield f"target-promql-rule: {error}"
        return
    for selector in names.selectors(tree):
        matchers = {(matcher.name, matcher.value) for matcher in selector.matchers.matchers
                    if matcher.op == promql.MatchOp.Re}
        for name in names.OF_EVERY_TARGET:
            if (name, f"${name}") not in matchers:
                yield f'target-{name}-rule: {selector.name} has no {name}=~"${name}"'
    for range_of in re.findall(r"\b(?:rate|irate|increase)\([^\[]*\[([^\]]*)\]", text):
        if range_of not in ("$__rate_interval", "1h"):  # 1h: named in the title of the panel
            yield f"target-rate-interval-rule: {range_of} must be $__rate_interval"
    yield from uncounted(tree)


def uncounted(tree, rated=False):
    """Counters that are used without rate() or increase(). `rated`: the tree is an argument of one of these."""
    if isinstance(tree, promql.VectorSelector):
        if re.search("_(total|bucket|sum|count)$", tree.name or "") and not rated:
            yield f"target-counter-agg-rule: {tree.name} must be in rate() or increase()"
        return
    rated = (isinstance(tree, promql.Call) and tree.func.name in ("rate", "irate", "increase")
             or isinstance(tree, promql.MatrixSelector) and rated)
    for name in ("lhs", "rhs", "expr", "vector_selector"):
        if getattr(tree, name, None) is not None:
            yield from uncounted(getattr(tree, name), rated)
    for argument in getattr(tree, "args", []):
        yield from uncounted(argument, rated)


def of_board(board):
    if board.get("editable"):
        yield "uneditable-dashboard: editable must be false"
    ids = [panel["id"] for panel in board["panels"]]
    if len(set(ids)) < len(ids):
        yield "two panels have the same id"
    yield from of_variables(board)
    if not list(expressions.panels(board)):
        yield "there are no panels"
    for panel in expressions.panels(board):
        yield from (f"{panel.get('title')}: {fault}" for fault in of_panel(panel))
    text = json.dumps(board)
    for name in re.findall(r"\$\{runbooks\}/(\w+)\.md", text):
        if not (ROOT / "docs" / "runbooks" / f"{name}.md").is_file():
            yield f"there is no docs/runbooks/{name}.md"


def read_back(board):
    """Faults if the builders' models do not have every key."""
    same = json.loads(json.dumps(Dashboard.from_json(json.loads(json.dumps(board))), cls=JSONEncoder))
    board = {**board, "annotations": {"list": [
        {key: value for key, value in annotation.items() if key not in OF_PROMETHEUS}
        for annotation in board["annotations"]["list"]]}}
    if same != board:
        yield "the builders' models do not read back the same JSON"


def check():
    """(subject, its faults), for each check."""
    boards = expressions.boards()
    yield "dashboards", [] if sorted(boards) == sorted(build.NAMES) else [f"the files are {sorted(boards)}"]
    yield "PrometheusRule: built again", [] if build.OBJECT.read_text() == build.rules() else ["differs: run monitoring/check write"]
    for name, board in boards.items():
        text = (expressions.BOARDS / f"{name}.json").read_text()
        yield f"{name}: built again", [] if text == build.text(name) else ["differs: run monitoring/check write"]
        yield f"{name}: read back", list(read_back(board))
        yield f"{name}: rules of the linter", list(of_board(board))
