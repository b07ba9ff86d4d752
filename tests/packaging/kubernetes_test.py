# SPDX-License-Identifier: Apache-2.0
"""deploy/kubernetes as a user changes it, rendered by kubectl kustomize and validated against the schemas of Kubernetes. The arguments: the
program, the oldest version of Kubernetes, and one that has each kind of object."""
import functools
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path

import kubernetes_validate
import yaml

PROGRAM, OLDEST, NEWEST = sys.argv[-3:]
del sys.argv[-3:]
ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
MONITORING = ROOT / "monitoring"
sys.path.insert(0, str(ROOT / "tests" / "support"))
import printed_programs  # noqa: E402

COMPONENTS = re.findall(r"^  # - (\S+)$", (FOLDER / "kustomization.yaml").read_text(), re.MULTILINE)
BASE = ["ConfigMap", "Deployment", "Namespace", "NetworkPolicy", "PodDisruptionBudget", "Service"]
WITHOUT_SCHEMA = ("PodMonitor", "PrometheusRule")


def setUpModule():
    version = json.loads(subprocess.run(["kubectl", "version", "--client", "--output=json"], check=True, capture_output=True).stdout)
    if int(version["clientVersion"]["minor"].rstrip("+")) < 27:
        raise unittest.SkipTest(f"kubectl {version['clientVersion']['gitVersion']} is too old for components: 1.27 or newer is needed")


def with_lines(changes):
    """The objects of a copy of the repository's files in which each key of `changes`, a part of a file's line, is its value. The configuration has two files."""
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root, "deploy", "kubernetes")
        shutil.copytree(FOLDER, folder)
        shutil.copytree(MONITORING, Path(root, "monitoring"))
        for before, after in changes.items():
            files = [each for each in folder.rglob("*.*") if before in each.read_text()]
            assert len(files) == (2 if all(each.suffix == ".toml" for each in files) else 1), before
            for file in files:
                text = file.read_text()
                assert text.count(before) == 1, before
                file.write_text(text.replace(before, after))
        rendered = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True)
    if rendered.returncode or rendered.stderr:  # a deprecated field is a warning
        raise AssertionError(rendered.stderr)
    return list(yaml.safe_load_all(rendered.stdout))


@functools.cache
def objects(*components):
    """The objects of the base and these components."""
    return with_lines({f"# - {each}\n": f"- {each}\n" for each in components})


def one(kind, rendered):
    (found,) = [each for each in rendered if each["kind"] == kind]
    return found


def pod_of(rendered):
    (controller,) = [each for each in rendered if each["kind"] in ("Deployment", "StatefulSet")]
    return controller["spec"]["template"]["spec"]


def containers_of(rendered):
    """The service and the worker."""
    pod = pod_of(rendered)
    (service,), (worker,) = pod["containers"], pod["initContainers"]
    return service, worker


def configuration_of(rendered):
    (text,) = [each["data"]["millrace.toml"] for each in rendered if each["kind"] == "ConfigMap" and "millrace.toml" in each["data"]]
    return text


class Schemas(unittest.TestCase):
    def assert_valid(self, rendered, *versions):
        for each in rendered:
            for version in versions if each["kind"] not in WITHOUT_SCHEMA else ():
                with self.subTest(each["kind"], name=each["metadata"]["name"], version=version):
                    kubernetes_validate.validate(each, version, strict=True)

    def test_the_base_is_valid_in_every_supported_version(self):
        self.assertEqual(sorted(each["kind"] for each in objects()), BASE)
        self.assert_valid(objects(), OLDEST, NEWEST)

    def test_each_component_is_valid_and_so_are_all_together(self):
        self.assertEqual(len(COMPONENTS), 7)
        for components in [*([each] for each in COMPONENTS), COMPONENTS]:
            with self.subTest(components):
                shared = "components/shared-gpu" in components
                self.assert_valid(objects(*components), NEWEST, *([] if shared else [OLDEST]))
                self.assertEqual({each["metadata"].get("namespace") for each in objects(*components)} - {None}, {"millrace"})

    def test_every_component_is_listed(self):
        self.assertEqual({*COMPONENTS} - {"../../monitoring"}, {f"components/{each.name}" for each in FOLDER.glob("components/*")})

    def test_a_wrong_key_is_no_valid_object(self):
        wrong = {**one("Service", objects()), "spec": {"port": []}}
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(wrong, NEWEST, strict=True)


class Base(unittest.TestCase):
    def setUp(self):
        self.service, self.worker = containers_of(objects())
        self.configuration = tomllib.loads(configuration_of(objects()))

    def test_the_command_of_the_documents_applies_this_folder(self):
        *command, folder = printed_programs.programs()["deploy_kubernetes"].text.split()
        self.assertEqual((command, ROOT / folder), (["kubectl", "apply", "-k"], FOLDER))

    def test_with_two_lines_changed_a_users_own_worker_runs_with_the_defaults(self):
        (service, own) = re.findall(r"^  - {name: (?:millrace|worker), newName: (.*)}", (FOLDER / "kustomization.yaml").read_text(), re.MULTILINE)
        for line in (service, own):
            self.assertIn(f"newName: {line}}}", (ROOT / "docs" / "deploy.md").read_text())
        changed = with_lines({service: "hub.example/millrace, newTag: a1", own: "hub.example/ours, newTag: b2"})
        service, worker = containers_of(changed)
        self.assertEqual((service["image"], worker["image"]), ("hub.example/millrace:a1", "hub.example/ours:b2"))
        self.assertFalse({"command", "args", "lifecycle"} & {*worker})
        self.assertNotIn("limits", worker["resources"])
        (pipeline,) = tomllib.loads(configuration_of(changed))["pipeline"]
        self.assertEqual(pipeline, {"name": "default", "rate": 16000, "chunk": {"size": "100ms"}, "batch": {"rows": 16, "max_wait": "2ms"}})

    def test_the_image_of_the_service_has_the_version_of_the_program(self):
        version = subprocess.run([PROGRAM, "--version"], check=True, capture_output=True, text=True).stdout.split()[-1]
        self.assertEqual(self.service["image"].rpartition(":")[2], version)

    def test_the_probes_ask_the_admin_listener(self):
        ports = {port["name"]: port["containerPort"] for port in self.service["ports"]}
        listen = self.configuration["listen"]
        self.assertEqual(ports, {key: int(listen[key].rpartition(":")[2]) for key in ("websocket", "zeromq", "admin")})
        probes = {name: (self.service[name]["httpGet"], self.service[name]["periodSeconds"], self.service[name]["failureThreshold"])
                  for name in ("startupProbe", "livenessProbe", "readinessProbe")}
        live, ready = {"path": "/livez", "port": "admin"}, {"path": "/readyz", "port": "admin"}
        self.assertEqual(probes, {"startupProbe": (live, 2, 30), "livenessProbe": (live, 10, 3), "readinessProbe": (ready, 2, 1)})

    def test_the_worker_is_a_sidecar_which_ends_after_the_service_has_drained(self):
        """Kubernetes ends such a sidecar last. A probe or a hook of it would need a program in the user's image."""
        self.assertEqual(self.worker["restartPolicy"], "Always")
        self.assertFalse({"lifecycle", "startupProbe", "readinessProbe", "livenessProbe"} & {*self.worker})
        drain, linger = (int(self.configuration["limits"][key].rstrip("s")) for key in ("drain", "linger"))
        self.assertEqual(linger, 3)
        self.assertLessEqual(drain + 10, pod_of(objects())["terminationGracePeriodSeconds"])

    def test_service_and_worker_run_as_one_user_without_capabilities_and_share_the_socket(self):
        security = pod_of(objects())["securityContext"]
        self.assertEqual((security["runAsNonRoot"], security["runAsUser"], security["seccompProfile"]),
                         (True, 10001, {"type": "RuntimeDefault"}))
        for each in (self.service, self.worker):
            self.assertEqual(each["securityContext"], {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                                       "capabilities": {"drop": ["ALL"]}})
            self.assertIn({"name": "socket", "mountPath": "/run/millrace"}, each["volumeMounts"])
        self.assertIn({"name": "tmp", "mountPath": "/tmp"}, self.worker["volumeMounts"])
        self.assertEqual({each["name"]: each["value"] for each in self.worker["env"]},
                         {"MILLRACE_WORKERS": self.configuration["listen"]["workers"], "HOME": "/tmp", "USER": "worker"})

    def test_pods_without_a_worker_do_not_block_the_drain_of_a_node(self):
        self.assertEqual(one("PodDisruptionBudget", objects())["spec"]["unhealthyPodEvictionPolicy"], "AlwaysAllow")

    def test_the_network_policy_opens_the_ports_of_the_service_and_no_way_out(self):
        policy = one("NetworkPolicy", objects())["spec"]
        ports = {port["containerPort"] for port in self.service["ports"]}
        self.assertEqual({port["port"] for rule in policy["ingress"] for port in rule["ports"]}, ports)
        self.assertEqual((policy["egress"], policy["podSelector"]), ([], {"matchLabels": {"app.kubernetes.io/name": "millrace"}}))


class Components(unittest.TestCase):
    def assert_good(self, text):
        checked = subprocess.run([PROGRAM, "check-config", "/dev/stdin"], input=text, capture_output=True, text=True)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_each_configuration_passes_its_check(self):
        for components in ([], ["components/moonshine"]):
            self.assert_good(configuration_of(objects(*components)))

    def test_moonshine_changes_command_and_pipeline_only(self):
        moonshine = objects("components/moonshine")
        usual, changed = (tomllib.loads(configuration_of(each)) for each in (objects(), moonshine))
        self.assertEqual({**usual, "pipeline": None}, {**changed, "pipeline": None})
        self.assertIn("/usr/lib/moonshine/worker.py", containers_of(moonshine)[1]["command"])

    def test_a_gpu_is_the_workers_alone_unless_both_containers_name_one_claim(self):
        for components in (["components/gpu"], ["components/gpu", "components/recording"]):
            service, worker = containers_of(objects(*components))
            self.assertEqual(worker["resources"]["limits"], {"nvidia.com/gpu": 1})
            self.assertEqual(service["resources"], containers_of(objects())[0]["resources"])
        shared = objects("components/shared-gpu")
        self.assertEqual([each["resources"]["claims"] for each in containers_of(shared)], [[{"name": "gpu"}]] * 2)
        self.assertEqual(pod_of(shared)["resourceClaims"],
                         [{"name": "gpu", "resourceClaimTemplateName": one("ResourceClaimTemplate", shared)["metadata"]["name"]}])

    def test_an_update_frees_a_gpu_before_a_new_pod_needs_it(self):
        for component in ("components/gpu", "components/shared-gpu"):
            self.assertEqual(one("Deployment", objects(component))["spec"]["strategy"], {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}})
            self.assertNotIn("strategy", one("StatefulSet", objects(component, "components/recording"))["spec"])

    def test_with_recording_each_pod_has_a_volume_at_the_directory_of_the_configuration(self):
        lines = {"# - components/recording\n": "- components/recording\n", "# record = true": "record = true",
                 "# [recording]": "[recording]", "# directory =": "directory ="}
        recorded = with_lines(lines)
        for rendered in (recorded, with_lines({**lines, "# - components/moonshine\n": "- components/moonshine\n"})):
            text = configuration_of(rendered)
            self.assert_good(text)
            configuration = tomllib.loads(text)
            self.assertTrue(configuration["pipeline"][0]["record"])
            (mount,) = [each for each in containers_of(rendered)[0]["volumeMounts"] if each["name"] == "recordings"]
            self.assertEqual(str(Path(configuration["recording"]["directory"]).parent), mount["mountPath"])
        pods = one("StatefulSet", recorded)["spec"]
        self.assertEqual([each["metadata"]["name"] for each in pods["volumeClaimTemplates"]], ["recordings"])
        (headless,) = [each for each in recorded if each["kind"] == "Service" and each["metadata"]["name"] == pods["serviceName"]]
        self.assertEqual((headless["spec"]["clusterIP"], headless["spec"]["selector"]), ("None", pods["selector"]["matchLabels"]))
        self.assertEqual(one("PodDisruptionBudget", recorded)["spec"]["selector"], pods["selector"])

    def test_with_tls_the_files_of_the_configuration_are_secrets_that_only_the_service_can_read(self):
        lines = {"# - components/tls\n": "- components/tls\n", "# [tls] ": "[tls] ", "# certificate =": "certificate =", "# key =": "key =",
                 "# [access]": "[access]", "# tokens =": "tokens ="}
        for rendered in (with_lines(lines), with_lines({**lines, "# - components/moonshine\n": "- components/moonshine\n"})):
            configuration, pod = tomllib.loads(configuration_of(rendered)), pod_of(rendered)
            mounts = {each["mountPath"]: each["name"] for each in containers_of(rendered)[0]["volumeMounts"]}
            secrets = {each["name"]: each["secret"] for each in pod["volumes"] if "secret" in each}
            for path, name in ((configuration["tls"]["certificate"], "millrace-tls"), (configuration["tls"]["key"], "millrace-tls"),
                               (configuration["access"]["tokens"], "millrace-tokens")):
                secret = secrets[mounts[str(Path(path).parent)]]
                self.assertEqual((secret["secretName"], secret["defaultMode"], pod["securityContext"]["fsGroup"]), (name, 0o440, 10001))
            self.assertFalse([mount for mount in containers_of(rendered)[1]["volumeMounts"] if mount["name"] in secrets])

    def test_with_tls_the_load_balancer_leads_to_the_port_that_speaks_it(self):
        rendered = objects("components/tls")
        (public,) = [each["spec"] for each in rendered if each["kind"] == "Service" and each["spec"].get("type") == "LoadBalancer"]
        self.assertEqual([port["targetPort"] for port in public["ports"]], ["websocket"])
        self.assertEqual(public["selector"], one("Deployment", rendered)["spec"]["selector"]["matchLabels"])
        (opened,) = [each["spec"]["ingress"] for each in rendered if each["kind"] == "NetworkPolicy" and each["metadata"]["name"] == "millrace-public"]
        self.assertEqual(opened, [{"ports": [{"protocol": "TCP", "port": 8080}]}])

    def test_the_ingress_leads_to_the_path_of_streams_and_outlasts_them(self):
        rendered = objects("components/ingress")
        ingress = one("Ingress", rendered)
        timeouts = [value for key, value in ingress["metadata"]["annotations"].items() if key.endswith("-timeout")]
        self.assertEqual(timeouts, ["18000"] * 2)
        (rule,), (tls,) = ingress["spec"]["rules"], ingress["spec"]["tls"]
        (path,) = rule["http"]["paths"]
        self.assertEqual((path["path"], path["pathType"], tls["hosts"]), ("/v1/stream", "Exact", [rule["host"]]))
        backend, service = path["backend"]["service"], one("Service", rendered)
        self.assertEqual(backend["name"], service["metadata"]["name"])
        self.assertIn(backend["port"]["name"], [port["name"] for port in service["spec"]["ports"]])


class Monitoring(unittest.TestCase):
    def setUp(self):
        self.objects = objects("../../monitoring")

    def test_prometheus_scrapes_the_admin_port_of_each_pod_as_the_job_millrace(self):
        monitor = one("PodMonitor", self.objects)["spec"]
        pods = one("Deployment", self.objects)["spec"]["template"]
        self.assertEqual(monitor["selector"]["matchLabels"], pods["metadata"]["labels"])
        self.assertEqual(pods["metadata"]["labels"][monitor["jobLabel"]], "millrace")
        (endpoint,) = monitor["podMetricsEndpoints"]
        self.assertIn(endpoint["port"], [port["name"] for port in containers_of(self.objects)[0]["ports"]])

    def test_annotations_and_a_pod_monitor_are_not_combined(self):
        annotations = one("Deployment", objects())["spec"]["template"]["metadata"]["annotations"]
        self.assertEqual(annotations, {"prometheus.io/scrape": "true", "prometheus.io/port": "9464"})
        for rendered, kind in ((self.objects, "Deployment"), (objects("components/recording", "../../monitoring"), "StatefulSet")):
            self.assertFalse(one(kind, rendered)["spec"]["template"]["metadata"].get("annotations"))

    def test_the_rules_are_those_of_prometheus(self):
        rules = one("PrometheusRule", self.objects)["spec"]
        wanted = [group for path in sorted(MONITORING.glob("prometheus/rules/*.yml")) for group in yaml.safe_load(path.read_text())["groups"]]
        self.assertEqual(rules, {"groups": wanted})
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            yaml.safe_dump(rules, file)
            subprocess.run(["promtool", "check", "rules", file.name], check=True, capture_output=True)

    def test_grafana_finds_every_dashboard(self):
        boards = [each for each in self.objects if each["metadata"].get("labels", {}).get("grafana_dashboard") == "1"]
        found = {name: text for each in boards for name, text in each["data"].items()}
        self.assertEqual(found, {path.name: path.read_text() for path in MONITORING.glob("grafana/dashboards/*.json")})
        for each in boards:  # `kubectl apply` keeps a copy in an annotation
            self.assertLess(len(json.dumps(each)), 262144)


if __name__ == "__main__":
    unittest.main()
