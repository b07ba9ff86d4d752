# SPDX-License-Identifier: Apache-2.0
"""Draws a dashboard for developers without Grafana: its panels with the results of their queries."""
import math
import re

import matplotlib

import expressions

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

COLUMNS, UNIT = 24, 0.55  # inches per column; a row has half the height


def legend_of(labels, text):
    return re.sub(r"\{\{(\w+)\}\}", lambda match: labels.get(match[1], ""), text) or ",".join(labels.values())


def draw_lines(axes, found, begin):
    for labels, points, legend in found:
        axes.plot([at - begin for at, _ in points], [value if math.isfinite(value) else math.nan for _, value in points],
                  label=legend_of(labels, legend), linewidth=1)
    if found:
        axes.legend(fontsize=5, loc="upper left", framealpha=0.5)


def draw_heat(axes, found, begin):
    """Prometheus' buckets are cumulative, so a cell is the difference of two buckets."""
    buckets = sorted((float(labels["le"]), dict(points)) for labels, points, _ in found)
    times = sorted({at for _, points in buckets for at in points})
    cells, below = [], dict.fromkeys(times, 0.0)
    for _, points in buckets:
        cells.append([max(0.0, points.get(at, 0) - below[at]) for at in times])
        below = {at: points.get(at, 0) for at in times}
    axes.pcolormesh([at - begin for at in times], range(len(buckets)), cells, cmap="Oranges", shading="nearest")
    axes.set_yticks(range(len(buckets)), [f"{le:g}" for le, _ in buckets], fontsize=4)


def draw_text(axes, found, table):
    shown = [" ".join(labels.values()) if table else legend_of(labels, legend) if legend else f"{points[-1][1]:.4g}"
             for labels, points, legend in found if points]
    axes.text(0.5, 0.5, "\n".join(shown), ha="center", va="center", fontsize=6 if table else 9, wrap=True)
    axes.set_axis_off()


def draw(board, span, path):
    panels = list(expressions.panels(board))
    height = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels)
    figure = pyplot.figure(figsize=(COLUMNS * UNIT, height * UNIT / 2))
    for panel in panels:
        at = panel["gridPos"]
        axes = figure.add_axes(((at["x"] + 1) / COLUMNS, 1 - (at["y"] + at["h"] - 1) / height,
                                (at["w"] - 1.4) / COLUMNS, (at["h"] - 2.2) / height))
        axes.set_title(f"{panel['title']} [{panel['fieldConfig']['defaults']['unit']}]", fontsize=7)
        axes.tick_params(labelsize=5)
        found = [(*curve, target.get("legendFormat", "")) for target in panel["targets"] for curve in span.curves(target["expr"])]
        if panel["type"] == "timeseries":
            draw_lines(axes, found, span.begin)
        elif panel["type"] == "heatmap":
            draw_heat(axes, found, span.begin)
        else:
            draw_text(axes, found, panel["type"] == "table")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    pyplot.close(figure)
