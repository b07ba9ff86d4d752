# SPDX-License-Identifier: Apache-2.0
"""Makes the panels of the dashboards.

A query is PromQL with two abbreviations. In `family{@,more="labels"}`, `@` stands for matchers of the dashboard's variables: of
those for which the family has a label. `[@]` is `[$__rate_interval]`."""
import pathlib
import re
import sys

from grafana_foundation_sdk.builders import common, dashboard, heatmap, prometheus, stat, table, timeseries
from grafana_foundation_sdk.models import common as shapes
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "checks"))
from families import family_of  # noqa: E402

DATASOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
GREEN, YELLOW, RED = "green", "yellow", "red"


def query(text):
    """Expands the abbreviations to PromQL."""
    def matchers(match):
        _, family = family_of(match[1])
        if family is None and match[1] != "ALERTS":
            raise ValueError(f"docs/metrics.md does not list {match[1]}")
        pipeline = ["pipeline"] if family and "pipeline" in family.labels else []
        return match[1] + "{" + ",".join(f'{name}=~"${name}"' for name in ["job", "instance"] + pipeline)

    return re.sub(r"(\w+)\{@", matchers, text).replace("[@]", "[$__rate_interval]")


def target(expr, legend="", ref="A"):
    return prometheus.Dataquery().expr(query(expr)).legend_format(legend).ref_id(ref).range().datasource(DATASOURCE)


def placed(panel, title, unit, description, width, height=7):
    return (panel.title(title).description(description).unit(unit).datasource(DATASOURCE)
            .span(width).height(height))


def steps(limits):
    """Thresholds. `limits` is {lowest value: color}; below all of them the color is green."""
    colors = [models.Threshold(value=None, color=GREEN)]
    colors += [models.Threshold(value=value, color=color) for value, color in sorted(limits.items())]
    return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(colors)


def lines(title, unit, description, *queries, width=8, stacked=False, limits=None, most=None):
    """Curves. A query is (PromQL, legend). `limits` are drawn as lines."""
    panel = placed(timeseries.Panel(), title, unit, description, width)
    for number, (expr, legend) in enumerate(queries):
        panel.with_target(target(expr, legend, chr(ord("A") + number)))
    panel.fill_opacity(30 if stacked else 8).show_points(shapes.VisibilityMode.NEVER).min(0)
    panel.legend(common.VizLegendOptions().display_mode(shapes.LegendDisplayMode.LIST)
                 .placement(shapes.LegendPlacement.BOTTOM).show_legend(True))
    panel.tooltip(common.VizTooltipOptions().mode(shapes.TooltipDisplayMode.MULTI).sort(shapes.SortOrder.DESCENDING))
    if stacked:
        panel.stacking(common.StackingConfig().mode(shapes.StackingMode.NORMAL))
    if most is not None:
        panel.max(most)
    if limits:
        panel.thresholds(steps(limits))
        panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(shapes.GraphThresholdsStyleMode.LINE))
    return panel


def heat(title, unit, description, buckets, width=12):
    """The distribution of a histogram over time. `buckets` is a series without labels, or with {@,…}."""
    selector = buckets if "{" in buckets else buckets + "{@}"
    expr = f"sum by (le) (increase({selector}[@]))"
    panel = placed(heatmap.Panel(), title, unit, description, width)
    panel.with_target(target(expr, "{{le}}").format(PromQueryFormat.HEATMAP))
    panel.calculate(False).cell_gap(0)
    panel.scale_distribution(common.ScaleDistributionConfig().type(shapes.ScaleDistribution.LINEAR))
    panel.color(heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Oranges").steps(64))
    return panel.y_axis(heatmap.YAxisConfig().unit(unit))


def number(title, unit, description, expr, legend="", width=3, limits=None, texts=None):
    """One large number, colored by `limits`. `texts` are {value: (text, color)}."""
    panel = placed(stat.Panel(), title, unit, description, width, height=4)
    panel.with_target(target(expr, legend))
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    panel.thresholds(steps(limits or {}))
    if limits is None:
        panel.color_mode(shapes.BigValueColorMode.NONE)
    if texts:
        panel.mappings([models.ValueMap(options={value: models.ValueMappingResult(text=text, color=color)
                                                 for value, (text, color) in texts.items()})])
    return panel


def named(title, description, expr, legend, width=3):
    """Shows the labels of a series in place of its value."""
    return number(title, "none", description, expr, legend, width).text_mode(shapes.BigValueTextMode.NAME)


def rows_of(title, description, expr, link, width=12):
    """A table of the current series. `link` is the (title, url) of each row."""
    panel = placed(table.Panel(), title, "none", description, width, height=6).inspect(False)
    panel.with_target(prometheus.Dataquery().expr(query(expr)).ref_id("A").instant()
                      .format(PromQueryFormat.TABLE).datasource(DATASOURCE))
    panel.data_links([dashboard.DashboardLink(link[0]).url(link[1]).target_blank(True)])
    hidden = {name: True for name in ("Time", "Value", "Value #A", "__name__", "alertstate", "job")}
    return panel.with_transformation(models.DataTransformerConfig(id_val="organize", options={"excludeByName": hidden}))


def quantiles(title, histogram, description, labels="", at=(0.5, 0.95, 0.99), by="", unit="s", width=6, limits=None):
    """Percentiles of a histogram over time. `by` is a label to keep."""
    kept = f"{by}, le" if by else "le"
    legend = "{{%s}} " % by if by else ""
    return lines(title, unit, description,
                 *((f"histogram_quantile({q}, sum by ({kept}) (rate({histogram}_bucket{{@{labels}}}[@])))",
                    f"{legend}p{q * 100:g}") for q in at), width=width, limits=limits)


def rates(title, family, label, description, unit="cps", width=8):
    """The rate of a counter, by a label."""
    return lines(title, unit, description, (f"sum by ({label}) (rate({family}{{@}}[@]))", f"{{{{{label}}}}}"), width=width)


def totals(title, unit, gauge, label, description, width=8, stacked=False):
    """A gauge, by a label."""
    return lines(title, unit, description, (f"sum by ({label}) ({gauge}{{@}})", f"{{{{{label}}}}}"), width=width, stacked=stacked)
