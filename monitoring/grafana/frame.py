# SPDX-License-Identifier: Apache-2.0
"""Variables, annotations and links of all dashboards."""
import itertools

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as models

from panels import DATASOURCE, query

RUNBOOKS = "http://127.0.0.1:9090/user"  # where Prometheus of docker/compose.yaml serves docs/runbooks
ALL = models.VariableOption(selected=True, text="All", value="$__all")


class Annotation(dashboard.AnnotationQuery):
    """Adds the fields of Prometheus' annotations that the builders do not have."""

    class Model(models.AnnotationQuery):
        more = {}

        def to_json(self):
            return {**super().to_json(), **self.more}

    def __init__(self, name, expr, color, **more):
        super().__init__()
        self._internal = self.Model()
        self._internal.more = more
        self.name(name).expr(query(expr)).icon_color(color).datasource(DATASOURCE).enable(True)


class Constant(dashboard.ConstantVariable):
    """A variable that is not shown."""

    def build(self):
        variable = super().build()
        variable.hide = models.VariableHide.HIDE_VARIABLE
        return variable


def annotations():
    yield Annotation("Starts", "millrace_build_info{@} * on (job, instance) group_left () process_start_time_seconds{@} * 1000",
                     "blue", useValueForTime=True, titleFormat="{{instance}} started",
                     textFormat="version {{version}}, revision {{revision}}", step="5s")
    yield Annotation("Alerts", 'ALERTS{@,alertname=~"Millrace.*",alertstate="firing"}', "red",
                     titleFormat="{{alertname}}", textFormat="{{instance}} {{pipeline}}", step="15s")


def labels_of(name, label, series):
    """A variable with the values of a label."""
    return (dashboard.QueryVariable(name).label(label).datasource(DATASOURCE)
            .query({"query": f"label_values({series}, {name})", "refId": name})
            .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(models.VariableSort.ALPHABETICAL_ASC)
            .multi(True).include_all(True).all_value(".+").current(ALL))


def variables(pipeline):
    yield dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus")
    yield labels_of("job", "Job", "millrace_build_info")
    yield labels_of("instance", "Instance", 'millrace_build_info{job=~"$job"}')
    chosen = labels_of("pipeline", "Pipeline", 'millrace_streams{job=~"$job",instance=~"$instance"}')
    yield chosen if pipeline else chosen.hide(models.VariableHide.HIDE_VARIABLE)  # links pass its value on
    yield Constant("runbooks").value(RUNBOOKS)


def made(name, title, description, rows, pipeline=True):
    """Builds a dashboard of `rows`, pairs (title, panels). Panels are placed side by side until 24 columns are full."""
    board = (dashboard.Dashboard(f"Millrace: {title}").uid(f"millrace-{name}").description(description).tags(["millrace"])
             .readonly().timezone("browser").time("now-1h", "now").refresh("10s")
             .tooltip(models.DashboardCursorSync.CROSSHAIR))
    board.link(dashboard.DashboardLink("Millrace").type(models.DashboardLinkType.DASHBOARDS).tags(["millrace"])
               .as_dropdown(False).include_vars(True).keep_time(True))
    for variable in variables(pipeline):
        board.with_variable(variable)
    for annotation in annotations():
        board.annotation(annotation)
    ids = itertools.count(1)
    for row, panels in rows:
        if row:
            board.with_row(dashboard.Row(row).id(next(ids)))
        for panel in panels:
            board.with_panel(panel.id(next(ids)))
    return board.build()
