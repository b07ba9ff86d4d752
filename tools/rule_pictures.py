#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of docs/rules.md: rule_pictures.py MILLRACE [FOLDER]

The configuration of a picture is the block of TOML above it. The audio is two utterances of LibriVox, from Debian's
package pocketsphinx-testdata, with silence before and between them. FOLDER is docs/pictures by default.
"""
import re
import subprocess
import sys
import tempfile
import wave
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SPEECH = "/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-{}.wav"
SILENCE = bytes(2 * 12000)  # 750 ms at 16 kHz
PICTURE = re.compile(r"```toml\n(?P<configuration>.*?)```\n\n!\[[^]]*\]\(pictures/(?P<name>rule_\w+\.svg)\)", re.DOTALL)


def pictures():
    """The name and the configuration of each picture."""
    for found in PICTURE.finditer((ROOT / "docs/rules.md").read_text()):
        # The block directly above the picture: the match may begin at an earlier one.
        yield found["name"], found["configuration"].rpartition("```toml\n")[2]


def write_audio(path):
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(16000)
        for number in ("0880", "0930"):
            with wave.open(SPEECH.format(number)) as utterance:
                out.writeframes(SILENCE + utterance.readframes(utterance.getnframes()))


def make(millrace, folder):
    with tempfile.TemporaryDirectory() as temporary:
        audio, configuration = Path(temporary) / "audio.wav", Path(temporary) / "millrace.toml"
        write_audio(audio)
        for name, text in pictures():
            configuration.write_text(text)
            subprocess.run([millrace, "chunk", audio, "--name", "utterance", "--config", configuration, "--plot", Path(folder) / name],
                           check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    make(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ROOT / "docs/pictures")
