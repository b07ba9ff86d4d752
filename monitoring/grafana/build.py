#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the dashboards as JSON into dashboards/, where Grafana reads them, and the rules as an object of the Prometheus
operator. Run it by `monitoring/check write`."""
import importlib
import json
import pathlib
import textwrap

from grafana_foundation_sdk.cog.encoder import JSONEncoder

HERE = pathlib.Path(__file__).resolve().parent
OBJECT = HERE.parent / "kubernetes" / "prometheusrule.yaml"
NAMES = ("overview", "pipeline", "workers", "gpu", "ingest", "recording", "process")


def text(name):
    """Returns the JSON of a dashboard."""
    return json.dumps(importlib.import_module(name).board(), cls=JSONEncoder, indent=1, sort_keys=True) + "\n"


def rules():
    """Returns a PrometheusRule with all rules."""
    files = [path.read_text().partition("groups:\n")[2] for path in sorted(HERE.parent.glob("prometheus/rules/*.yml"))]
    return """# SPDX-License-Identifier: Apache-2.0
# Made from prometheus/rules by `monitoring/check write`.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: millrace
  labels: {release: kube-prometheus-stack}  # as in podmonitor.yaml
spec:
  groups:
""" + textwrap.indent("".join(files), "  ")


def main():
    for name in NAMES:
        (HERE / "dashboards" / f"{name}.json").write_text(text(name))
    OBJECT.write_text(rules())


if __name__ == "__main__":
    main()
