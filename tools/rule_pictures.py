#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of docs/rules.md: rule_pictures.py MILLRACE [FOLDER]

The configuration of a picture is the block of TOML above it. The audio is an utterance of LibriVox, from Debian's
package pocketsphinx-testdata. FOLDER is docs/pictures by default.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SPEECH = "/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-0870.wav"
PICTURE = re.compile(r"```toml\n(?P<configuration>.*?)```\n\n!\[[^]]*\]\(pictures/(?P<name>rule_\w+\.svg)\)", re.DOTALL)


def pictures():
    """The name and the configuration of each picture."""
    for found in PICTURE.finditer((ROOT / "docs/rules.md").read_text()):
        # The block directly above the picture: the pattern may begin at an earlier one.
        yield found["name"], found["configuration"].rpartition("```toml\n")[2]


def make(millrace, folder):
    for name, configuration in pictures():
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(configuration)
            file.flush()
            subprocess.run([millrace, "chunk", SPEECH, "--name", "utterance", "--config", file.name, "--plot", str(Path(folder) / name)],
                           check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    make(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ROOT / "docs/pictures")
