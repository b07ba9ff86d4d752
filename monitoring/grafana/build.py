#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the dashboards as JSON into dashboards/, where Grafana reads them. Run it by `monitoring/check write`."""
import importlib
import json
import pathlib

from grafana_foundation_sdk.cog.encoder import JSONEncoder

HERE = pathlib.Path(__file__).resolve().parent
NAMES = ("overview", "pipeline", "workers", "gpu", "ingest", "recording", "process")


def text(name):
    """Returns the JSON of a dashboard."""
    return json.dumps(importlib.import_module(name).board(), cls=JSONEncoder, indent=1, sort_keys=True) + "\n"


def main():
    for name in NAMES:
        (HERE / "dashboards" / f"{name}.json").write_text(text(name))


if __name__ == "__main__":
    main()
