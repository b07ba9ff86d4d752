# SPDX-License-Identifier: Apache-2.0
"""One utterance in the formats of browsers and telephones, recognized over each transport."""
import array
import json
import os
import re
import struct
import subprocess
import tempfile
import unittest

import client_wire as wire
import speech_formats as speech
from browser import Browser, Page
from harness import MILLRACE, PATIENCE, Process, SystemTest, await_decoder, read_all, run
from zeromq_client import Peer

WORKER, DIRECT = os.environ["POCKETSPHINX_WORKER"], os.environ["POCKETSPHINX_DIRECT"]
MODEL = "/usr/share/pocketsphinx/model/en-us"
FOLDER = "/usr/share/pocketsphinx/test/data/librivox/"
UTTERANCE, OTHER, CALL = (f"sense_and_sensibility_01_austen_64kb-{number}" for number in ("0880", "0870", "0920"))


def narrow_model(folder, sentences):
    """A model with the acoustics of Debian's and the words of these sentences only. The acoustics are those of 16 kHz: with all
    words of English, the decoder recognizes nothing in the half of the spectrum that a telephone has."""
    os.mkdir(folder)
    for name in ("en-us", "cmudict-en-us.dict"):
        os.symlink(os.path.join(MODEL, name), os.path.join(folder, name))
    with open(os.path.join(folder, "en-us.lm.bin"), "w") as file:
        file.write(speech.language_model(sentences))
    return folder


def mulaw_wav(path, payload):
    with open(path, "wb") as file:
        file.write(b"RIFF" + struct.pack("<I", 50 + len(payload)) + b"WAVEfmt " +
                   struct.pack("<IHHIIHHH", 18, 7, 1, 8000, 8000, 1, 8, 0) + b"fact" + struct.pack("<II", 4, len(payload)) +
                   b"data" + struct.pack("<I", len(payload)) + payload)
    return path


def word_errors(text, reference):
    """The least number of words that must be inserted, removed or replaced."""
    words, row = reference.split(), [*range(len(reference.split()) + 1)]
    for i, word in enumerate(text.split(), 1):
        above, row = row, [i]
        for j, expected in enumerate(words, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (word != expected)))
    return row[-1]


class Formats(SystemTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.speech, other, cls.call = (speech.read_wav(f"{FOLDER}{name}.wav") for name in (UTTERANCE, OTHER, CALL))
        line = subprocess.run([DIRECT, f"{FOLDER}{UTTERANCE}.wav"], check=True, capture_output=True, timeout=4 * PATIENCE).stdout
        cls.reference = json.loads(line)["text"]
        with open(FOLDER + "transcription") as file:
            texts = {name: text for text, name in re.findall(r"<s> (.*) </s> \((.*)\)", file.read())}
        cls.said = texts[CALL]
        cls.narrow_model = narrow_model(os.path.join(folder, "model"), texts.values())

        left, right = (speech.upsampled(one, 3) for one in (other[:len(cls.speech)], cls.speech))
        cls.stereo = array.array("h", (value for pair in zip(left, right) for value in pair))
        cls.stereo_file = speech.write_wav(os.path.join(folder, "stereo.wav"), cls.stereo, 48000, 2)
        cls.telephone = bytes(map(speech.mulaw, speech.halved(cls.call)))
        cls.telephone_file = mulaw_wav(os.path.join(folder, "telephone.wav"), cls.telephone)
        cls.packets = speech.opus_packets(cls.speech, 16000)

    def decode(self, model=MODEL, extra=""):
        """Starts a service with a decoder."""
        self.served = self.service(extra=extra)
        decoder = Process(WORKER, "--url", self.served.workers, "--warm", "1", "--model", model)
        self.addCleanup(decoder.kill)
        await_decoder(decoder)

    def over_websocket(self, messages, **parameters):
        async def stream():
            async with self.served.connect(**parameters) as connection:
                for message in messages:
                    await connection.send(message)
                await connection.send('{"type":"end"}')
                return await read_all(connection)

        received, code = run(stream())
        self.assertEqual(code, 1000)
        return received

    def over_zeromq(self, messages, **parameters):
        with Peer(self.served.zeromq_port) as peer:
            stream = peer.open(**parameters)
            self.assertIsNone(stream.refusal)
            for message in messages:
                if parameters["format"] == "opus":
                    self.assertEqual(stream.frame, 0)
                    stream.credit()
                    peer.send(wire.frames(stream.number, stream.position, message))
                    peer.credit[stream.number] -= 1
                    stream.position += 1
                else:
                    stream.send(message)
            stream.command(wire.end)
            return stream.rest()

    def final(self, received, frames):
        """The transcript, after a check that nothing of the audio was lost or added."""
        self.assertEqual({message["type"] for message in received} - {"ready", "result", "closed"}, set())
        self.assertEqual(received[-1]["frames"], frames)
        data = [message["data"] for message in received if message["type"] == "result"][-1]
        return (json.loads(data) if isinstance(data, (str, bytes)) else data)["text"]

    def assert_recognized(self, text, reference, most):
        """`most`: wrong words."""
        self.assertLessEqual(word_errors(text, reference), most, f"{text!r} instead of {reference!r}")

    def assert_over_both(self, messages, frames, reference, most, **parameters):
        for transport in (self.over_websocket, self.over_zeromq):
            with self.subTest(transport.__name__):
                text = self.final(transport(messages, **parameters), frames)
                self.assert_recognized(text, reference, most)

    def test_one_speaker_of_a_stereo_call_at_48_khz(self):
        self.decode()
        frames = self.stereo.tobytes()
        messages = [frames[at:at + 19200] for at in range(0, len(frames), 19200)]
        self.assert_over_both(messages, len(self.speech), self.reference, 0, format="s16le", rate=48000, channels=2, channel="1")

    def test_a_telephone_call_in_mulaw_at_8_khz(self):
        self.decode(self.narrow_model)
        messages = [self.telephone[at:at + 160] for at in range(0, len(self.telephone), 160)]
        self.assert_over_both(messages, len(self.call), self.said, 2, format="mulaw", rate=8000)

    def test_packets_of_opus(self):
        self.decode()
        self.assert_over_both(self.packets, 320 * len(self.packets), self.reference, 1, format="opus")

    def test_the_command_streams_files_of_each_format(self):
        stereo, whole = (self.stereo_file, "--channel", "1"), len(self.speech)
        with_opus = -(-(whole + 104) // 320) * 320  # whole packets, with the delay of the encoder
        for model, reference, arguments, frames, most in (
                (MODEL, self.reference, stereo, whole, 0), (MODEL, self.reference, (*stereo, "--opus"), with_opus, 1),
                (self.narrow_model, self.said, (self.telephone_file,), len(self.call), 2)):
            self.decode(model)
            for url in (f"ws://127.0.0.1:{self.served.port}", f"tcp://127.0.0.1:{self.served.zeromq_port}"):
                with self.subTest(arguments, url=url):
                    ended = subprocess.run([MILLRACE, "stream", "--json", "--url", url, *arguments], check=True,
                                           capture_output=True, timeout=4 * PATIENCE)
                    text = self.final([json.loads(line) for line in ended.stdout.splitlines()], frames)
                    self.assert_recognized(text, reference, most)

    def test_a_file_in_a_browser_at_the_rate_of_the_browser(self):
        self.decode(extra="try_page = true\n")
        browser = Browser()
        self.addCleanup(browser.close)

        async def choose(selecting):
            async with Page(browser, f"http://127.0.0.1:{self.served.port}/") as page:
                await page.value("channel.value = '1'")
                await page.value(selecting)
                await page.choose("file", self.stereo_file)
                await page.until("state.textContent.includes('has ended')")
                self.assertEqual(await page.value("transcript.querySelectorAll('p, .growing:empty').length"), 2)  # one segment, and final
                return await page.value("transcript.textContent")

        for selecting, most in (("null", 0), ("document.getElementById('opus').checked = true", 1)):
            with self.subTest(selecting):
                self.assert_recognized(run(choose(selecting)), self.reference, most)


if __name__ == "__main__":
    unittest.main()
