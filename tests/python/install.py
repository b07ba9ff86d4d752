#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the package as its users do, into a fresh virtual environment; nothing, if it has not changed.

  tests/python/install.py FOLDER

FOLDER/venv has the package and what its tests need, FOLDER/dist the source distribution and the
wheel that was built from it.
"""
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "python"


def sources():
    """Every file that the package is made of, or that says what is installed."""
    with open(PACKAGE / "pyproject.toml", "rb") as file:
        included = tomllib.load(file)["tool"]["scikit-build"]["sdist"]["force-include"]
    yield from (HERE / "requirements.txt", HERE / "install.py")
    for root in (PACKAGE, *(PACKAGE / path for path in included)):
        yield from [root] if root.is_file() else sorted(
            path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def digest():
    total = hashlib.sha256(sys.version.encode())
    for path in sources():
        total.update(os.path.relpath(path, PACKAGE).encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def run(*command):
    print("+", *command, flush=True)
    subprocess.run(command, check=True)


def install(folder):
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "venv", "--system-site-packages", folder / "venv")
    python = folder / "venv" / "bin" / "python"
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "--requirement", HERE / "requirements.txt")
    run(*pip, "--no-deps", "silero-vad")  # it carries the model, and asks for another PyTorch
    run(*pip, PACKAGE)
    run(python, "-m", "build", "--outdir", folder / "dist", PACKAGE)


def main():
    folder = Path(sys.argv[1])
    stamp, wanted = folder / "installed", digest()
    if stamp.is_file() and stamp.read_text() == wanted:
        return print("as it was installed before")
    install(folder)
    stamp.write_text(wanted)


if __name__ == "__main__":
    main()
