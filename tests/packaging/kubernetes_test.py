# SPDX-License-Identifier: Apache-2.0
"""deploy/kubernetes, rendered by kubectl kustomize and validated against the schemas of Kubernetes. The arguments: the
program, and the version of Kubernetes."""
import subprocess
import sys
import tomllib
import unittest
from pathlib import Path

import kubernetes_validate
import yaml

VERSION = sys.argv.pop()
PROGRAM = sys.argv.pop()
ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
sys.path.insert(0, str(ROOT / "tests" / "support"))
import printed_programs  # noqa: E402


class Kubernetes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        rendered = subprocess.run(["kubectl", "kustomize", FOLDER], check=True, capture_output=True, text=True).stdout
        cls.objects = {each["kind"]: each for each in yaml.safe_load_all(rendered)}
        cls.pod = cls.objects["Deployment"]["spec"]["template"]["spec"]
        cls.service, cls.worker = cls.pod["containers"]
        cls.configuration = tomllib.loads(cls.objects["ConfigMap"]["data"]["millrace.toml"])

    def test_each_object_obeys_its_schema(self):
        self.assertEqual(sorted(self.objects), ["ConfigMap", "Deployment", "Namespace", "NetworkPolicy", "PodDisruptionBudget", "Service"])
        for kind, each in self.objects.items():
            with self.subTest(kind):
                kubernetes_validate.validate(each, VERSION, strict=True)

    def test_the_command_of_the_documents_applies_this_folder(self):
        *command, folder = printed_programs.programs()["deploy_kubernetes"].text.split()
        self.assertEqual((command, ROOT / folder), (["kubectl", "apply", "-k"], FOLDER))

    def test_a_wrong_key_is_no_valid_object(self):
        wrong = {**self.objects["Service"], "spec": {"port": []}}
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(wrong, VERSION, strict=True)

    def test_the_configuration_passes_its_check(self):
        checked = subprocess.run([PROGRAM, "check-config", FOLDER / "millrace.toml"], capture_output=True, text=True)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_the_images_have_the_version_of_the_program(self):
        version = subprocess.run([PROGRAM, "--version"], check=True, capture_output=True, text=True).stdout.split()[-1]
        self.assertEqual({each["image"].rpartition(":")[2] for each in (self.service, self.worker)}, {version})

    def test_the_probes_ask_the_admin_listener(self):
        ports = {port["name"]: port["containerPort"] for port in self.service["ports"]}
        listen = self.configuration["listen"]
        self.assertEqual(ports, {key: int(listen[key].rpartition(":")[2]) for key in ("websocket", "zeromq", "admin")})
        probes = {name: (self.service[name]["httpGet"], self.service[name]["periodSeconds"], self.service[name]["failureThreshold"])
                  for name in ("startupProbe", "livenessProbe", "readinessProbe")}
        live, ready = {"path": "/livez", "port": "admin"}, {"path": "/readyz", "port": "admin"}
        self.assertEqual(probes, {"startupProbe": (live, 2, 30), "livenessProbe": (live, 10, 3), "readinessProbe": (ready, 2, 1)})

    def test_the_pod_outlives_the_drain_and_the_worker_outlives_the_service(self):
        drain, linger = (int(self.configuration["limits"][key].rstrip("s")) for key in ("drain", "linger"))
        self.assertEqual(linger, 3)
        self.assertLess(drain, self.pod["terminationGracePeriodSeconds"])
        shell = self.worker["lifecycle"]["preStop"]["exec"]["command"]
        waits = subprocess.run(["sh", "-n", *shell[1:]], capture_output=True, text=True)
        self.assertEqual((shell[0], waits.returncode, waits.stderr), ("/bin/sh", 0, ""))
        self.assertIn(self.configuration["listen"]["workers"].removeprefix("unix:"), shell[-1])

    def test_service_and_worker_run_as_one_user_without_capabilities_and_share_the_socket(self):
        security = self.pod["securityContext"]
        self.assertEqual((security["runAsNonRoot"], security["runAsUser"], security["seccompProfile"]),
                         (True, 10001, {"type": "RuntimeDefault"}))
        for each in (self.service, self.worker):
            self.assertEqual(each["securityContext"], {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                                       "capabilities": {"drop": ["ALL"]}})
            self.assertIn({"name": "socket", "mountPath": "/run/millrace"}, each["volumeMounts"])
        self.assertIn(self.configuration["listen"]["workers"], self.worker["command"])


if __name__ == "__main__":
    unittest.main()
