# SPDX-License-Identifier: Apache-2.0
"""docker/compose.yaml, as Debian's docker-compose reads it: its containers are restricted, and its names, ports,
paths and scrape targets are those of the configuration."""
import json
import re
import shlex
import subprocess
import sys
import tomllib
import unittest
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
PROFILES = ("demo", "observability", "gpu")
sys.path.insert(0, str(ROOT / "tests" / "support"))
import printed_programs  # noqa: E402


def read(*arguments):
    """compose.yaml with everything that it refers to, as docker-compose prints it."""
    printed = subprocess.run(["docker-compose", "--file", DOCKER / "compose.yaml", *arguments, "config"],
                             check=True, capture_output=True, text=True)
    return yaml.safe_load(printed.stdout)


SUBCOMMANDS = ("up", "stop", "start", "kill", "logs", "ps")


def printed_commands():
    """(options, service or None) of each `docker compose` in documents."""
    for document in printed_programs.documents():
        for command in re.findall(r"^docker compose (.*)$|`docker compose (-f [^`]*)`", document.read_text(), re.MULTILINE):
            words = shlex.split("".join(command))
            place = next(i for i, word in enumerate(words) if word in SUBCOMMANDS)
            yield words[:place], words[-1] if words[-1] not in SUBCOMMANDS else None


def yaml_file(path):
    return yaml.safe_load((ROOT / path).read_text())


def listeners(path):
    """(port, socket) of a configuration."""
    listen = tomllib.loads(path.read_text())["listen"]
    ports = [int(listen[key].rpartition(":")[2]) for key in ("websocket", "zeromq", "admin")]
    return ports, listen["workers"]


class Compose(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.services = read()["services"]

    def published(self, name):
        return [re.fullmatch(r"127\.0\.0\.1:(\d+):(\d+)/tcp", port).groups() for port in self.services[name]["ports"]]

    def target_of(self, name, source):
        """The path at which a container mounts this path of the repository."""
        for volume in self.services[name]["volumes"]:
            path, target = volume.split(":")[:2]
            if Path(path) == ROOT / source:
                return target
        raise AssertionError(f"{name} does not mount {source}")

    def test_docker_compose_accepts_each_profile(self):
        for profile in PROFILES:
            with self.subTest(profile):
                read("--profile", profile)
        read("--file", DOCKER / "compose.gpu.yaml", "--profile", "gpu")
        read("--file", DOCKER / "compose.tls.yaml", "--profile", "demo")

    def test_docker_compose_accepts_each_command_of_the_documents(self):
        commands = list(printed_commands())
        self.assertGreater(len(commands), 6)
        for options, service in commands:
            with self.subTest(" ".join(options)):
                subprocess.run(["docker-compose", *options, "config", "--quiet"], cwd=ROOT, check=True)
                self.assertIn(service, (None, *self.services))

    def test_each_service_except_one_is_in_a_profile(self):
        self.assertEqual({name: service.get("profiles") for name, service in self.services.items()},
                         {"millrace": None, "decoder": ["demo"], "speech": ["demo"], "prometheus": ["observability"],
                          "grafana": ["observability"], "worker": ["gpu"]})

    def test_each_container_is_restricted(self):
        for name, service in self.services.items():
            with self.subTest(name):
                self.assertEqual((service["read_only"], service["cap_drop"], service["security_opt"]),
                                 (True, ["ALL"], ["no-new-privileges:true"]))
                self.assertEqual((service["ulimits"]["nofile"], service["ulimits"]["core"]), ({"soft": 65536, "hard": 65536}, 0))
                self.assertIn("mem_limit", service)
                self.assertIn("/tmp", service["tmpfs"])
                for port in service.get("ports", []):
                    self.assertRegex(port, r"^127\.0\.0\.1:")

    def test_each_of_our_images_is_built_once_and_never_pulled(self):
        ours = {name: service for name, service in self.services.items() if service["image"].startswith("millrace")}
        self.assertEqual({service["pull_policy"] for service in ours.values()}, {"never"})
        self.assertEqual(sorted(service["image"] for service in ours.values() if "build" in service),
                         sorted({service["image"] for service in ours.values()}))
        self.assertFalse([name for name, service in self.services.items() if name not in ours and "build" in service])

    def test_the_decoder_is_stopped_at_the_same_time_as_the_service(self):
        """Compose stops a container before those on which it depends. The decoder answers until the drain ends."""
        decoder, service = self.services["decoder"], self.services["millrace"]
        self.assertNotIn("depends_on", decoder)
        self.assertEqual(decoder["stop_grace_period"], service["stop_grace_period"])

    def test_the_service_of_both_dockerfiles_is_the_same(self):
        first, second = (re.search(r"^FROM \S+ AS service\n(.*?)^FROM", (DOCKER / name).read_text(), re.MULTILINE | re.DOTALL)[1]
                         for name in ("Dockerfile", "Dockerfile.cuda"))
        self.assertEqual(first, second)

    def test_each_mounted_path_is_in_the_repository(self):
        for name, service in self.services.items():
            for volume in service.get("volumes", []):
                source = volume.split(":")[0]
                with self.subTest(name, source=source):
                    self.assertTrue(source in ("socket", "metrics") or Path(source).exists())

    def test_published_and_exposed_ports_are_those_of_the_configurations(self):
        ports, _ = listeners(DOCKER / "compose.toml")
        self.assertEqual(self.published("millrace"), [(str(port), str(port)) for port in ports])
        self.assertEqual(listeners(DOCKER / "millrace.toml")[0], ports)
        exposed = re.search(r"^EXPOSE (.*)$", (DOCKER / "Dockerfile").read_text(), re.MULTILINE)[1]
        self.assertEqual([int(port) for port in exposed.split()], ports)
        self.assertIn("ws://millrace:8080", " ".join(self.services["speech"]["command"]))

    def test_the_workers_socket_is_on_the_volume_that_workers_mount(self):
        for path in ("compose.toml", "millrace.toml", "../deploy/kubernetes/base/millrace.toml"):
            self.assertEqual(listeners(DOCKER / path)[1], "unix:/run/millrace/private/workers.sock")
        self.assertIn("unix:/run/millrace/private/workers.sock", self.services["decoder"]["entrypoint"])
        self.assertIn("MILLRACE_WORKERS=unix:/run/millrace/private/workers.sock",
                      (DOCKER / "Dockerfile.cuda").read_text())
        for name in ("millrace", "decoder", "worker"):
            self.assertIn("socket:/run/millrace:rw", self.services[name]["volumes"])

    def test_the_pipeline_of_the_decoder_is_that_of_the_example(self):
        wanted = tomllib.loads((ROOT / "examples" / "moonshine" / "millrace.toml").read_text())["pipeline"]
        for path in ("compose.toml", "../deploy/kubernetes/components/moonshine/millrace.toml"):
            self.assertEqual(tomllib.loads((DOCKER / path).read_text())["pipeline"], wanted)

    def test_the_service_reads_the_mounted_configuration(self):
        self.assertEqual(self.target_of("millrace", "docker/compose.toml"), "/etc/millrace/millrace.toml")

    def test_with_tls_only_the_port_that_speaks_it_is_published_to_other_machines(self):
        services = read("--file", DOCKER / "compose.tls.yaml", "--profile", "demo")["services"]
        configuration = tomllib.loads((DOCKER / "compose.tls.toml").read_text())
        added = yaml_file("docker/compose.tls.yaml")["services"]
        self.assertEqual({name: service["ports"] for name, service in added.items() if "ports" in service},
                         {"millrace": [f"8443:{configuration['listen']['websocket'].rpartition(':')[2]}"]})
        self.assertNotIn("plain", configuration["listen"])
        mounted = {volume.split(":")[1]: Path(volume.split(":")[0]) for volume in services["millrace"]["volumes"]}
        self.assertEqual(mounted["/etc/millrace/millrace.toml"], DOCKER / "compose.tls.toml")
        self.assertEqual(mounted["/etc/millrace-tls"], DOCKER / "tls")
        self.assertIn(f"wss://millrace:8080 --ca {configuration['tls']['certificate']}", services["speech"]["command"][0])

    def test_the_service_with_tls_is_that_of_the_demo_otherwise(self):
        plain, tls = (tomllib.loads((DOCKER / name).read_text()) for name in ("compose.toml", "compose.tls.toml"))
        self.assertEqual(plain["pipeline"], tls["pipeline"])
        self.assertEqual({plain["listen"][key] for key in ("websocket", "admin", "workers")}, {tls["listen"][key] for key in ("websocket", "admin", "workers")})

    def test_prometheus_scrapes_the_service_under_its_name(self):
        folder = self.target_of("prometheus", "monitoring/prometheus")
        self.assertIn(f"--config.file={folder}/prometheus.yml", self.services["prometheus"]["command"])
        admin = listeners(DOCKER / "compose.toml")[0][2]
        (scraped,) = yaml_file("monitoring/prometheus/prometheus.yml")["scrape_configs"]
        self.assertEqual(scraped["static_configs"], [{"targets": [f"millrace:{admin}"]}])

    def test_alerts_link_to_runbooks_that_prometheus_serves(self):
        command = self.services["prometheus"]["command"]
        self.assertIn(f"--web.user-assets={self.target_of('prometheus', 'docs/runbooks')}", command)
        ((port, _),) = self.published("prometheus")
        self.assertIn(f"--web.external-url=http://127.0.0.1:{port}", command)
        boards = list(ROOT.glob("monitoring/grafana/dashboards/*.json"))
        self.assertEqual(len(boards), 7)
        for board in boards:
            variables = {one["name"]: one.get("query") for one in json.loads(board.read_text())["templating"]["list"]}
            self.assertEqual(variables["runbooks"], f"http://127.0.0.1:{port}/user", board.name)

    def test_grafana_reads_the_dashboards_and_queries_that_prometheus(self):
        provisioning = "monitoring/grafana/provisioning"
        self.assertEqual(self.target_of("grafana", provisioning), "/etc/grafana/provisioning")
        (provider,) = yaml_file(f"{provisioning}/dashboards/millrace.yml")["providers"]
        dashboards = self.target_of("grafana", "monitoring/grafana/dashboards")
        self.assertEqual(provider["options"]["path"], dashboards)
        (source,) = yaml_file(f"{provisioning}/datasources/prometheus.yml")["datasources"]
        self.assertEqual(source["url"], f"http://prometheus:{self.published('prometheus')[0][1]}")
        home = self.services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
        self.assertTrue((ROOT / "monitoring/grafana/dashboards" / Path(home).relative_to(dashboards)).exists())

    def test_grafana_has_the_version_of_the_builders(self):
        wanted = re.search(r"^grafana-foundation-sdk==\d+!([\d.]+)$", (ROOT / "monitoring/requirements.txt").read_text(), re.MULTILINE)[1]
        self.assertEqual(self.services["grafana"]["image"], f"grafana/grafana:{wanted}")

    def test_a_worker_on_a_gpu_shares_the_namespaces_of_the_service(self):
        worker = self.services["worker"]
        self.assertEqual((worker["ipc"], worker["pid"], self.services["millrace"]["ipc"]),
                         ("service:millrace", "service:millrace", "shareable"))

    def test_the_worker_on_a_gpu_is_the_program_of_the_documents(self):
        text = (DOCKER / "worker.py").read_text()
        self.assertTrue(text.endswith("\n" + printed_programs.programs()["worker_torch"].text))


if __name__ == "__main__":
    unittest.main()
