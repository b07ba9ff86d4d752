#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the package on simulated devices: links the extension that pip has built again, with the simulation before the
real runtime.

  tests/python/link_simulated.py BUILD PACKAGE OBJECT...

BUILD is the folder in which pip has built. PACKAGE, a folder for PYTHONPATH, gets the package. The objects are those of
the simulation.
"""
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

PYTHON_FILES = Path(__file__).resolve().parents[2] / "python" / "millrace"


def link_command(build):
    """The command with which Ninja links the extension."""
    extension, = (path.relative_to(build) for path in (build / "python").glob("_core*.so"))
    commands = subprocess.run(["ninja", "-C", build, "-t", "commands", "-s", extension], check=True, capture_output=True, text=True)
    command, = (part for part in commands.stdout.splitlines()[-1].split(" && ") if f" -o {extension} " in part)
    return shlex.split(command)


def main():
    build, package, objects = Path(sys.argv[1]), Path(sys.argv[2]) / "millrace", sys.argv[3:]
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir(parents=True)
    for path in PYTHON_FILES.iterdir():
        if path.name != "__pycache__":
            (package / path.name).symlink_to(path)
    command = link_command(build)
    output = command.index("-o") + 1
    extension = package / Path(command[output]).name
    subprocess.run([*command[:output], extension, *objects, *command[output + 1:]], cwd=build, check=True)


if __name__ == "__main__":
    main()
