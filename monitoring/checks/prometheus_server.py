# SPDX-License-Identifier: Apache-2.0
"""Runs Debian's Prometheus with the configuration and rules of this repository, and scrapes every second."""
import json
import os
import re
import tempfile
import urllib.error
import urllib.parse
import urllib.request

import yaml

from families import ROOT
from harness import PATIENCE, Process, wait_for

FOLDER = ROOT / "monitoring" / "prometheus"


def configuration(targets):
    """The configuration of the repository, with these targets and intervals of one second."""
    config = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    config["global"] = {name: "1s" for name in config["global"]}
    config["rule_files"] = [str(FOLDER / pattern) for pattern in config["rule_files"]]
    (scraped,) = config["scrape_configs"]
    scraped["static_configs"] = [{"targets": targets}]
    return yaml.safe_dump(config)


class Prometheus:
    def __init__(self, targets):
        self.folder = tempfile.TemporaryDirectory(prefix="prometheus-")
        config = os.path.join(self.folder.name, "prometheus.yml")
        with open(config, "w") as file:
            file.write(configuration(targets))
        self.process = Process(
            "prometheus", f"--config.file={config}", f"--storage.tsdb.path={self.folder.name}/series",
            "--web.listen-address=127.0.0.1:0", "--web.external-url=http://prometheus.example:9090",
            f"--web.user-assets={ROOT / 'docs' / 'runbooks'}", "--query.lookback-delta=5s")
        self.port = self.process.await_ready(self._port, "Prometheus to listen")
        wait_for(lambda: self.get("/-/ready")[0] == 200, "Prometheus to be ready")

    def _port(self):
        found = re.search(r'msg="Listening on" address=\S+:(\d+)', "\n".join(self.process.errors))
        return found and int(found[1])

    def close(self):
        self.process.kill()
        self.folder.cleanup()

    def get(self, path, **parameters):
        """(status, text)"""
        url = f"http://127.0.0.1:{self.port}{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def api(self, path, **parameters):
        """The data of an answer; ValueError if Prometheus refuses the query."""
        answer = json.loads(self.get("/api/v1/" + path, **parameters)[1])
        if answer["status"] != "success":
            raise ValueError(answer["error"])
        return answer["data"]

    def curves(self, expr, begin, end):
        """[(labels, [(time, value)])], as Grafana gets them for a panel."""
        found = self.api("query_range", query=expr, start=begin, end=end, step=1)["result"]
        return [(curve["metric"], [(time, float(value)) for time, value in curve["values"]]) for curve in found]

    def series(self, selector, begin, end):
        return self.api("series", **{"match[]": selector}, start=begin, end=end)
