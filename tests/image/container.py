# SPDX-License-Identifier: Apache-2.0
"""Containers of images that buildah has built, started by Debian's runc as an engine starts them with
--read-only, --cap-drop ALL, no-new-privileges and the default seccomp profile. They share the test's
network namespace."""
import contextlib
import itertools
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "system"))
from harness import Process, Service, wait_for  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SECCOMP = "/usr/share/containers/seccomp.json"  # from the package of buildah
NUMBERS = itertools.count()
USER = 10001
SOCKET = "/run/millrace"
DESCRIPTORS = min(65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1])  # the machine's limit cannot be exceeded


def with_network(*command):
    """This command in the machine's network."""
    return ["nsenter", f"--net={os.environ['NETWORK']}", *command]


def buildah(*arguments):
    done = subprocess.run(with_network("buildah", *arguments), capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"buildah {' '.join(arguments)}: {done.stderr}{done.stdout[-2000:]}")
    return done.stdout.strip()


def debian_with_python(suite):
    """The tag of an image: this release of Debian with Python, venv and NumPy, without -dev packages. It comes from the package
    sources with which scripts/python_headers has fetched the headers."""
    tag = f"localhost/debian-{suite}-with-python"
    if subprocess.run(["buildah", "inspect", "--type", "image", tag], capture_output=True).returncode:
        source = (ROOT / "build" / "python_headers" / "sources.list").read_text().strip().replace("trixie", suite)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(with_network("mmdebstrap", "--quiet", "--variant=minbase", "--dpkgopt=force-unsafe-io",
                                        "--include=python3,python3-numpy,python3-venv", suite, f"{folder}/base.tar", source),
                           check=True)
            container = buildah("from", "scratch")
            buildah("add", "--quiet", container, f"{folder}/base.tar", "/")
            buildah("commit", "--quiet", "--rm", container, tag)
    return tag


class Image:
    """An image with its root file system mounted, to be used by several containers."""

    def __init__(self, tag):
        self.settings = json.loads(buildah("inspect", "--type", "image", tag))["Docker"]["config"]
        self._container = buildah("from", "--pull-never", tag)
        self.root = buildah("mount", self._container)

    def close(self):
        buildah("rm", self._container)


def seccomp():
    """The default profile, for a container without capabilities."""
    with open(SECCOMP) as file:
        profile = json.load(file)
    arch = {"x86_64": ("amd64", "SCMP_ARCH_X86_64"), "aarch64": ("arm64", "SCMP_ARCH_AARCH64")}[platform.machine()]

    def applies(rule):
        with_, without = rule.get("includes") or {}, rule.get("excludes") or {}
        return (not with_.get("caps") and arch[0] in with_.get("arches", [arch[0]])
                and arch[0] not in without.get("arches", []))

    rules = [{key: rule[key] for key in ("names", "action", "args", "errnoRet") if rule.get(key) is not None}
             for rule in profile["syscalls"] if applies(rule)]
    return {"defaultAction": profile["defaultAction"], "defaultErrnoRet": 1, "architectures": [arch[1]], "syscalls": rules}


def mount(kind, target, *options, source=None):
    return {"destination": target, "type": kind, "source": source or kind, "options": list(options)}


def specification(image, arguments, volume, descriptors, memory, environment):
    safe = ("nosuid", "noexec", "nodev")
    settings = image.settings
    mounts = [mount("proc", "/proc"), mount("tmpfs", "/dev", "nosuid", "mode=755"), mount("tmpfs", "/dev/shm", *safe),
              mount("sysfs", "/sys", *safe, "ro"), mount("cgroup", "/sys/fs/cgroup", *safe, "ro")]
    if volume:
        mounts.append(mount("bind", SOCKET, "rbind", "rw", source=volume))
    user, group = map(int, settings["User"].split(":"))
    return {
        "ociVersion": "1.0.2",
        "process": {"args": [*settings["Entrypoint"], *(arguments or settings["Cmd"])], "cwd": "/",
                    "env": [*settings["Env"], *environment], "user": {"uid": user, "gid": group},
                    "capabilities": {}, "noNewPrivileges": True,
                    "rlimits": [{"type": "RLIMIT_NOFILE", "soft": min(1024, descriptors), "hard": descriptors}]},
        "root": {"path": image.root, "readonly": True},
        "mounts": mounts,
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")], "seccomp": seccomp(),
                  "resources": {"memory": {"limit": memory}} if memory else {}}}


class Container(Process):
    """Runs the image's entry point, with the image's or these arguments."""

    def __init__(self, image, *arguments, volume=None, descriptors=DESCRIPTORS, memory=None, environment=(), entrypoint=None):
        self.name = f"millrace-test-{os.getpid()}-{next(NUMBERS)}"
        self._bundle = tempfile.TemporaryDirectory()
        settings = specification(image, arguments, volume, descriptors, memory, environment)
        if entrypoint:
            settings["process"]["args"] = [entrypoint, *arguments]
        with open(f"{self._bundle.name}/config.json", "w") as file:
            json.dump(settings, file)
        Process.__init__(self, "runc", "run", "--bundle", self._bundle.name, self.name)

    def pid(self):
        """The id of its first process on the host."""
        return json.loads(subprocess.run(["runc", "state", self.name], check=True, capture_output=True).stdout)["pid"]

    def exec(self, *command):
        return subprocess.run(["runc", "exec", self.name, *command], capture_output=True, text=True)

    def kill(self):
        subprocess.run(["runc", "kill", self.name, "KILL"], capture_output=True)
        Process.kill(self)
        subprocess.run(["runc", "delete", "--force", self.name], capture_output=True)
        with contextlib.suppress(FileNotFoundError):
            self._bundle.cleanup()


class ServiceContainer(Container, Service):
    """The service on the ports of the image's configuration."""
    port, admin_port, zeromq_port = 8080, 9464, 5555

    def __init__(self, image, volume, *arguments, **limits):
        Container.__init__(self, image, *arguments, volume=volume, **limits)
        self.await_ready(self._listening, "the service to listen")

    def close(self):
        Container.kill(self)


def volume(owner=USER, mode=0o700):
    """A folder for the workers' socket."""
    folder = tempfile.TemporaryDirectory()
    os.chown(folder.name, owner, owner)
    os.chmod(folder.name, mode)
    return folder


def wait_ready(service):
    wait_for(lambda: service.get("/readyz")[0] == 200, "a worker to attach")
