# SPDX-License-Identifier: Apache-2.0
"""One utterance in the formats of browsers and telephones, recognized."""
import array
import json
import os
import re
import subprocess
import tempfile
import unittest

import client_wire as wire
import speech_formats as speech
from browser import Browser, Page
from harness import MILLRACE, PATIENCE, Process, Service, SystemTest, await_decoder, read_all, run
from zeromq_client import Peer

WORKER, DIRECT = os.environ["POCKETSPHINX_WORKER"], os.environ["POCKETSPHINX_DIRECT"]
MODEL = "/usr/share/pocketsphinx/model/en-us"
FOLDER = "/usr/share/pocketsphinx/test/data/librivox/"
TRY_PAGE = "try_page = true\n"
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
        cls.decoders = {}
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.speech, other, cls.call = (speech.read_wav(f"{FOLDER}{name}.wav") for name in (UTTERANCE, OTHER, CALL))
        line = subprocess.run([DIRECT, f"{FOLDER}{UTTERANCE}.wav"], check=True, capture_output=True, timeout=4 * PATIENCE).stdout
        cls.reference = json.loads(line)["text"]
        with open(FOLDER + "transcription") as file:
            texts = {name: text for text, name in re.findall(r"<s> (.*) </s> \((.*)\)", file.read())}
        cls.said = texts[CALL]
        cls.narrow_model = narrow_model(os.path.join(folder, "model"), texts.values())

        left = [value for value in other[:len(cls.speech)] for _ in range(3)]  # no stream takes this channel
        right = speech.upsampled(cls.speech, 3)
        cls.stereo = array.array("h", (value for pair in zip(left, right) for value in pair))
        cls.stereo_file = speech.write_wav(os.path.join(folder, "stereo.wav"), cls.stereo, 48000, 2)
        cls.telephone = bytes(map(speech.mulaw, speech.halved(cls.call)))
        cls.packets = speech.opus_packets(cls.speech, 16000)

    def decode(self, model=MODEL, extra=""):
        """A service with a decoder, the same one for all tests that need no other."""
        if (model, extra) not in self.decoders:
            service = Service('[[pipeline]]\nchunk = { size = 1600 }\n', extra)
            self.addClassCleanup(service.close)
            decoder = Process(WORKER, "--url", service.workers, "--warm", "1", "--model", model)
            self.addClassCleanup(decoder.kill)
            await_decoder(decoder)
            self.decoders[model, extra] = service
        self.served = self.decoders[model, extra]

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

    def test_one_speaker_of_a_stereo_call_at_48_khz(self):
        self.decode(extra=TRY_PAGE)
        frames = self.stereo.tobytes()
        messages = [frames[at:at + 19200] for at in range(0, len(frames), 19200)]
        received = self.over_websocket(messages, format="s16le", rate=48000, channels=2, channel="1")
        self.assert_recognized(self.final(received, len(self.speech)), self.reference, 0)

    def test_a_telephone_call_in_mulaw_at_8_khz(self):
        self.decode(self.narrow_model)
        messages = [self.telephone[at:at + 160] for at in range(0, len(self.telephone), 160)]
        received = self.over_zeromq(messages, format="mulaw", rate=8000)
        self.assert_recognized(self.final(received, len(self.call)), self.said, 2)

    def test_packets_of_opus(self):
        self.decode(extra=TRY_PAGE)
        received = self.over_zeromq(self.packets, format="opus")
        self.assert_recognized(self.final(received, 320 * len(self.packets)), self.reference, 1)

    def test_the_command_streams_a_file_as_opus(self):
        self.decode(extra=TRY_PAGE)
        ended = subprocess.run([MILLRACE, "stream", "--json", "--url", f"ws://127.0.0.1:{self.served.port}", self.stereo_file,
                                "--channel", "1", "--opus"], check=True, capture_output=True, timeout=4 * PATIENCE)
        frames = -(-(len(self.speech) + 104) // 320) * 320  # whole packets, with the delay of the encoder
        text = self.final([json.loads(line) for line in ended.stdout.splitlines()], frames)
        self.assert_recognized(text, self.reference, 1)

    def test_a_file_in_a_browser_at_the_rate_of_the_browser(self):
        self.decode(extra=TRY_PAGE)
        browser = Browser()
        self.addCleanup(browser.close)

        async def choose():
            async with Page(browser, f"http://127.0.0.1:{self.served.port}/") as page:
                await page.value("channel.value = '1'")
                await page.choose("file", self.stereo_file)
                await page.until("state.textContent.includes('has ended')")
                self.assertEqual(await page.value("transcript.querySelectorAll('p, .growing:empty').length"), 2)  # one segment, and final
                return await page.value("transcript.textContent")

        self.assert_recognized(run(choose()), self.reference, 0)


if __name__ == "__main__":
    unittest.main()
