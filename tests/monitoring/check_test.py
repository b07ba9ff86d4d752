# SPDX-License-Identifier: Apache-2.0
"""monitoring/check finds faults of dashboards and expressions. Runs in the environment that it makes."""
import copy
import pathlib
import re
import sys
import unittest

MONITORING = pathlib.Path(__file__).resolve().parents[2] / "monitoring"
sys.path[:0] = [str(MONITORING / "checks"), str(MONITORING / "grafana")]
import expressions  # noqa: E402
import form  # noqa: E402
import names  # noqa: E402
import under_load  # noqa: E402
from families import families  # noqa: E402
from expressions import Expression  # noqa: E402


class Form(unittest.TestCase):
    def setUp(self):
        self.board = copy.deepcopy(expressions.boards()["pipeline"])
        self.panel = next(expressions.panels(self.board))
        self.target = self.panel["targets"][0]
        self.assertEqual(list(form.of_board(self.board)), [])

    def variable(self, name):
        return next(variable for variable in self.board["templating"]["list"] if variable["name"] == name)

    def finds(self, *rules):
        """Checks that exactly these rules are broken."""
        found = [re.search(r"[a-z-]+-(?:rule|dashboard)", fault)[0] for fault in form.of_board(self.board)]
        self.assertEqual(sorted(found), sorted(rules))

    def test_a_panel_without_description_unit_or_query_is_found(self):
        self.panel["description"] = ""
        self.panel["fieldConfig"]["defaults"]["unit"] = "parsecs"
        self.panel["targets"] = []
        self.finds("panel-title-description-rule", "panel-units-rule", "panel-no-targets-rule")

    def test_another_data_source_than_the_variable_is_found(self):
        self.panel["datasource"] = {"type": "prometheus", "uid": "prometheus"}
        self.variable("datasource")["query"] = "loki"
        self.finds("panel-datasource-rule", "template-datasource-rule")

    def test_variables_that_are_missing_or_not_reloaded_are_found(self):
        self.variable("job")["name"] = "jobs"
        self.variable("instance")["allValue"] = ".*"
        self.variable("pipeline")["refresh"] = 1
        self.finds("template-job-rule", "template-instance-rule", "template-on-time-change-reload-rule")

    def test_a_variable_that_does_not_list_its_own_label_is_found(self):
        self.variable("job")["query"]["query"] = "label_values(millrace_build_info, instance)"
        self.finds("template-label-promql-rule")

    def test_a_dashboard_without_panels_is_found(self):
        self.board["panels"] = []
        self.assertEqual(list(form.of_board(self.board)), ["there are no panels"])

    def test_each_stage_has_a_row_of_panels_with_a_heat_map_of_its_wait(self):
        heats, row = {}, None
        for panel in self.board["panels"]:
            row = panel["title"] if panel["type"] == "row" else row
            if panel["type"] == "heatmap":
                heats.setdefault(row, []).append(panel["targets"][0]["expr"])
        stages = families()["millrace_queue_wait_seconds"].labels["stage"]
        self.assertEqual(len(stages), 6)
        for stage in stages:
            found = heats[f"Stage {stage}"]
            self.assertTrue(any(f'millrace_queue_wait_seconds_bucket{{job=~"$job",instance=~"$instance",pipeline=~"$pipeline",stage="{stage}"}}'
                                in expr for expr in found), found)

    def test_a_selector_without_job_or_instance_is_found(self):
        self.target["expr"] = 'sum(millrace_streams{instance=~"$instance"})'
        self.finds("target-job-rule")

    def test_a_fixed_range_is_found(self):
        self.target["expr"] = self.target["expr"].replace("$__rate_interval", "5m")
        self.finds("target-rate-interval-rule")

    def test_a_counter_that_is_not_rated_is_found(self):
        selector = 'millrace_batches_total{job=~"$job",instance=~"$instance"}'
        for text in (f"sum({selector})", f"max_over_time({selector}[1m])", f"histogram_quantile(0.9, {selector})"):
            self.target["expr"] = text
            self.finds("target-counter-agg-rule")

    def test_an_expression_that_does_not_parse_is_found(self):
        self.target["expr"] = "sum by (le"
        self.finds("target-promql-rule")

    def test_a_dashboard_that_can_be_edited_is_found(self):
        self.board["editable"] = True
        self.finds("uneditable-dashboard")

    def test_a_runbook_that_does_not_exist_is_found(self):
        self.panel["description"] = "[Runbook](${runbooks}/MillraceAsleep.md)"
        self.assertEqual(list(form.of_board(self.board)), ["there is no docs/runbooks/MillraceAsleep.md"])

    def test_a_key_that_the_builders_do_not_know_is_found(self):
        self.assertEqual(list(form.read_back(self.board)), [])
        self.panel["fieldConfig"]["defaults"]["units"] = "s"
        self.assertNotEqual(list(form.read_back(self.board)), [])


class Names(unittest.TestCase):
    def finds(self, text, *faults, legend=""):
        self.assertEqual(list(names.faults(Expression("a test", text, legend))), list(faults))

    def test_documented_families_and_labels_are_accepted(self):
        self.finds('sum by (stage, le) (rate(millrace_queue_wait_seconds_bucket{stage=~"chunk|batch",job=~"$job"}[1m]))', legend="{{stage}}")
        self.finds("instance_pipeline:millrace_batch_padding:ratio_rate5m{pipeline=\"a\"} > 0.5")

    def test_families_that_are_not_documented_are_found(self):
        self.finds("millrace_stream", "millrace_stream is not in docs/metrics.md")
        self.finds("millrace_queue_wait_seconds", "millrace_queue_wait_seconds is not in docs/metrics.md")  # a histogram
        self.finds("millrace_streams_bucket", "millrace_streams_bucket is not in docs/metrics.md")

    def test_labels_and_values_that_are_not_documented_are_found(self):
        self.finds('millrace_streams{stage="chunk"}', "millrace_streams has no label stage")
        self.finds('millrace_queue_items{stage="copies"}', "millrace_queue_items has no stage=copies")
        self.finds('millrace_queue_items{stage=~"batch|copies"}', "millrace_queue_items has no stage=copies")
        self.finds("sum by (stage) (millrace_streams)", "no series in it has the label stage")
        self.finds("millrace_streams / on (port) millrace_workers", "no series in it has the label port")
        self.finds("sum(millrace_streams)", "no series in it has the label stage", legend="{{stage}}")

    def test_selectors_are_found_at_any_place_in_an_expression(self):
        for text in ("topk(3, X)", "(X)", "-X", "X / 2", "2 * X", "rate(X[5m])", "max_over_time(X[1h:1m])", "X offset 5m"):
            self.finds(text.replace("X", "millrace_nothing"), "millrace_nothing is not in docs/metrics.md")

    def test_an_alert_without_a_firing_test_or_without_a_silent_test_is_found(self):
        cases = [test for test in expressions.alert_tests() if "MillraceDown" not in test["name"]]
        fires = {"alertname": "MillraceDown", "exp_alerts": [{}]}
        silent = {"alertname": "MillraceDown", "exp_alerts": []}
        for tests, found in (([fires, silent], []), ([silent], ["MillraceDown has no test in which it fires"]),
                             ([fires], ["MillraceDown has no test in which it does not fire"])):
            self.assertEqual(list(names.untested_alerts([*cases, {"alert_rule_test": tests}])), found)

    def test_expressions_of_boards_rules_and_documents_are_read(self):
        origins = {expression.origin.split(":")[0] for expression in expressions.everything()}
        self.assertLessEqual({*expressions.boards(), "rule MillraceDown", "docs/metrics.md",
                              "docs/runbooks/MillraceDown.md"}, origins)


class Answers:
    """A simulated Prometheus with these curves for every query, and these series for every selector."""

    def __init__(self, curves, series=({},)):
        self.found = series
        self.answered = curves

    def curves(self, *_):
        return self.answered

    def series(self, *_):
        return self.found


class UnderLoad(unittest.TestCase):
    QUERY = 'sum(rate(millrace_batches_total{job=~"$job",instance=~"$instance"}[$__rate_interval]))'

    def finds(self, curves, *faults, **more):
        span = under_load.Span(Answers(curves, **more), "127.0.0.1:9464", 0)
        self.assertEqual(list(under_load.wrong(span, self.QUERY)), list(faults))

    def test_a_number_at_any_time_is_accepted_even_0(self):
        self.finds([({}, [(1, float("nan")), (2, 0.0)])])

    def test_a_query_without_numbers_is_found(self):
        self.finds([], "no data")
        self.finds([({"a": "b"}, [(1, float("nan")), (2, float("inf"))])], "no number in {'a': 'b'}")

    def test_a_selector_without_series_is_found(self):
        self.finds([({}, [(1, 1.0)])], 'no series millrace_batches_total{instance=~"$instance",job=~"$job"}', series=())

    def test_variables_are_replaced_as_grafana_does(self):
        span = under_load.Span(Answers([]), "127.0.0.1:9464", 0)
        self.assertEqual(span.replaced(self.QUERY),
                         r'sum(rate(millrace_batches_total{job=~".+",instance=~"127\\.0\\.0\\.1:9464"}[4s]))')


if __name__ == "__main__":
    unittest.main()
