#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the package into a virtual environment, as its users do. Repeats only the steps whose input has changed.

  tests/python/install.py FOLDER [--distributions]

FOLDER/venv has the package and what its tests need. --distributions: FOLDER/dist has the source distribution and the
wheel that was built from it.
"""
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "python"


def sources():
    """Every file that the package is made of."""
    with open(PACKAGE / "pyproject.toml", "rb") as file:
        included = tomllib.load(file)["tool"]["scikit-build"]["sdist"]["force-include"]
    for root in (PACKAGE, *(PACKAGE / path for path in included)):
        yield from [root] if root.is_file() else sorted(
            path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def digest(names, files):
    total = hashlib.sha256("\0".join(str(name) for name in names).encode())
    for path in files:
        total.update(path.read_bytes())
    return total.hexdigest()


def run(*command, **environment):
    print("+", *command, flush=True)
    subprocess.run(command, check=True, env={**os.environ, **environment})


def works_alone(wheel):
    """Checks that the wheel contains everything that it needs."""
    with tempfile.TemporaryDirectory(dir=wheel.parent) as environment:
        run(sys.executable, "-m", "venv", environment)
        python = Path(environment) / "bin" / "python"
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
        run(python, "-c", "import millrace; assert len(millrace.chunks({'size': 2}, [('frames', 2), ('end', 0)])) == 2")


def main():
    folder = Path(sys.argv[1])
    needed, alone = HERE / "requirements.txt", HERE / "requirements_alone.txt"
    moonshine = HERE.parents[1] / "examples" / "moonshine" / "requirements.txt"
    python = folder / "venv" / "bin" / "python"
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")

    def fresh_environment():
        shutil.rmtree(folder, ignore_errors=True)
        run(sys.executable, "-m", "venv", "--system-site-packages", folder / "venv")
        run(*pip, "--requirement", needed)
        run(*pip, "--no-deps", "--requirement", alone)
        run(*pip, "--require-hashes", "--no-deps", "--requirement", moonshine)

    def package():
        # The build folder is as deep in the tree as others, and nanobind is in this environment instead of a temporary one,
        # so that ccache has the objects.
        build = folder.parent / "python_package"
        run(*pip, "--force-reinstall", "--no-deps", "--no-build-isolation", "--config-settings", f"build-dir={build}", PACKAGE)

    def distributions():
        dist, unpacked = folder / "dist", folder / "unpacked"
        for old in (dist, unpacked):
            shutil.rmtree(old, ignore_errors=True)
        run(python, "-m", "build", "--sdist", "--outdir", dist, PACKAGE)
        source, = dist.glob("*.tar.gz")
        shutil.unpack_archive(source, unpacked)
        package, = unpacked.iterdir()
        # The sources in cpp/ and their build folder have the same relative paths as in the tree, so ccache finds the objects.
        run(python, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "--wheel-dir", dist,
            "--config-settings", f"build-dir={package / 'cpp' / 'build' / 'package'}", package, CCACHE_BASEDIR=str(package / "cpp"))
        works_alone(*dist.glob("*.whl"))
        shutil.rmtree(unpacked)

    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = open(folder.with_suffix(".lock"), "w")  # the tests of another preset may install it at the same time
    fcntl.flock(lock, fcntl.LOCK_EX)
    files = list(sources())
    compiler = [os.environ.get(name) for name in ("CXX", "CMAKE_ARGS")]
    how = [path for path in files if path.suffix in (".txt", ".cmake", ".toml")]
    steps = [(fresh_environment, digest([sys.version], [needed, alone, moonshine])), (package, digest([*files, *compiler], files))]
    if "--distributions" in sys.argv:
        steps.append((distributions, digest(files, how)))  # not repeated if only contents of sources differ
    for step, changes in steps:
        stamp = folder / step.__name__
        if not stamp.is_file() or stamp.read_text() != changes:
            step()
            stamp.write_text(changes)


if __name__ == "__main__":
    main()
