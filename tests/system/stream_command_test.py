# SPDX-License-Identifier: Apache-2.0
"""`millrace stream`: standard input as it comes, raw audio, channels, and error messages."""
import array
import json
import os
import shlex
import struct
import subprocess
import unittest
import wave

from harness import MILLRACE, PATIENCE, Process, Service, SystemTest, samples, wait_for

WITHOUT_SIZE = 0xffffffff  # as ffmpeg writes it into a pipe


def header(rate=16000, channels=1, kind=1, bits=16, size=WITHOUT_SIZE, between=b"LIST\x03\0\0\0abc\0"):
    frame = channels * bits // 8
    return (b"RIFF" + struct.pack("<I", 0xffffffff) + b"WAVEfmt " +
            struct.pack("<IHHIIHH", 16, kind, channels, rate, rate * frame, frame, bits) + between +
            b"data" + struct.pack("<I", size))


class StreamCommand(SystemTest):
    @classmethod
    def setUpClass(cls):
        cls.served = Service("[[pipeline]]\nchunk = { size = 1600 }\n")
        cls.addClassCleanup(cls.served.close)
        cls.addClassCleanup(cls.served.tap().kill)

    def streamed(self, *arguments, given=b""):
        ended = subprocess.run([MILLRACE, "stream", "--json", "--url", f"ws://127.0.0.1:{self.served.port}", *arguments],
                               input=given, capture_output=True, timeout=PATIENCE)
        return ended.returncode, ended.stderr.decode(), [json.loads(line) for line in ended.stdout.splitlines()]

    def frames(self, *arguments, given):
        """The number of frames that the service received."""
        code, errors, lines = self.streamed(*arguments, given=given)
        self.assertEqual((code, errors), (0, ""))
        return lines[-1]["frames"]

    def file(self, name, content=None, rate=16000, channels=1):
        path = os.path.join(self.served.folder.name, name)
        if content is None:
            with wave.open(path, "wb") as file:
                file.setparams((channels, 2, rate, 0, "NONE", ""))
                file.writeframes(samples(0, 1600 * channels))
        else:
            with open(path, "wb") as file:
                file.write(content)
        return path

    def test_standard_input_is_streamed_as_it_comes(self):
        for given, arguments in ((header(), ()), (b"", ("--format", "s16le", "--rate", "16000"))):
            live = Process(MILLRACE, "stream", "--json", "-", "--url", f"tcp://127.0.0.1:{self.served.zeromq_port}", *arguments,
                           stdin=subprocess.PIPE)
            self.addCleanup(live.kill)
            for second in range(2):
                live.process.stdin.buffer.write(given + samples(1600 * second, 1600))
                live.process.stdin.flush()
                given = b""
                wait_for(lambda: len(live.lines) == 2 + second, "the result of what has come")
            live.process.stdin.close()
            self.assertEqual(live.wait(), 0, live.errors)
            closed = json.loads(live.lines[-1])
            self.assertEqual((closed["file"], closed["type"], closed["frames"]), ("-", "closed", 3200))

    def test_audio_of_another_length_than_its_header_says_causes_a_notice(self):
        shorter, longer = header(size=4000) + samples(0, 1500), header(size=1000) + samples(0, 2000)
        for wav, frames, notice in ((shorter, 1500, "ends after 1500 of the 2000 frames in its header"), (longer, 2000, "has more audio than its header says")):
            for name, argument, given in (("standard input", "-", wav), (path := self.file("other.wav", wav), path, b"")):
                code, errors, lines = self.streamed(argument, given=given)
                self.assertEqual((code, lines[-1]["frames"]), (0, frames))
                self.assertIn(f"millrace stream: {name}: notice: {notice}", errors)

    def test_wav_headers_of_float_and_extensible_formats_are_accepted(self):
        floats = array.array("f", [0.5] * 100).tobytes()
        extensible = (header(kind=0xfffe)[:16] + struct.pack("<IHHIIHH", 40, 0xfffe, 1, 16000, 32000, 2, 16) +
                      struct.pack("<HHIH", 22, 16, 4, 1) + bytes(14) + b"data" + struct.pack("<I", 200))
        self.assertEqual(self.frames("-", given=header(kind=3, bits=32) + floats), 100)
        self.assertEqual(self.frames("-", given=extensible + samples(0, 100)), 100)

    def test_standard_input_is_named_if_it_is_another_container(self):
        for given, name in ((b"fLaC" + bytes(40), "is FLAC"), (b"OggS" + bytes(40), "is Ogg"), (bytes(4) + b"ftypisom", "is MP4"),
                            (b"RIFX" + header()[4:], "is RIFX")):
            with open(self.file("redirected", given), "rb") as file:
                redirected = subprocess.run([MILLRACE, "stream", "--json", "-", "--url", f"ws://127.0.0.1:{self.served.port}"], stdin=file,
                                            capture_output=True, timeout=PATIENCE)
            for errors in self.refused("-", given=given), redirected.stderr.decode():
                self.assertIn(name, errors)
                self.assertNotIn("--format", errors)

    def test_the_printed_command_is_one_for_a_shell(self):
        path = self.file("it's $(touch x) 10:30.m4a", b"no audio")
        errors = self.refused(path)
        command = errors.split("convert it: ")[1]
        self.assertEqual(shlex.split(command)[2], "file:" + path)  # a colon would end a protocol
        self.assertEqual(len(shlex.split(command)), 4)

    def test_the_name_of_a_file_need_not_be_utf_8(self):
        path = os.path.join(os.fsencode(self.served.folder.name), b"gr\xf6.wav")
        os.rename(self.file("umlaut.wav"), path)
        code, _, lines = self.streamed(os.fsdecode(path))
        self.assertEqual((code, os.fsencode(lines[-1]["file"])), (0, path))

    def test_the_warning_about_clamped_values_is_written_to_standard_error(self):
        path = self.file("undivided.raw", array.array("f", [3000.0] * 8000).tobytes())
        code, errors, lines = self.streamed("--format", "f32le", "--rate", "16000", path)
        clamped = "most values were clamped; f32 audio must be between -1 and 1"
        self.assertEqual((code, errors), (0, f"millrace stream: {path}: warning: {clamped}\n"))
        warnings = [line for line in lines if line["type"] == "warning"]
        self.assertEqual([(line["code"], line["message"]) for line in warnings], [("values", clamped)])

    def refused(self, *arguments, given=b""):
        code, errors, _ = self.streamed(*arguments, given=given)
        self.assertEqual((code, errors.count("\n")), (1, 1), errors)
        return errors.strip()

    def test_the_channels_of_a_file_are_averaged_with_a_notice_or_split(self):
        path = self.file("call.wav", rate=8000, channels=2)
        code, errors, lines = self.streamed(path)
        self.assertEqual((code, lines[-1]["frames"]), (0, 3200))
        self.assertEqual(errors, f"millrace stream: {path}: notice: the channels are averaged; --split makes a stream of each,"
                                 " --channel 0 selects one\n")
        code, errors, lines = self.streamed(path, "--split")
        self.assertEqual((code, errors), (0, ""))
        closed = [line for line in lines if line["type"] == "closed"]
        self.assertEqual(sorted((line["file"], line["channel"], line["frames"]) for line in closed), [(path, 0, 3200), (path, 1, 3200)])
        self.assertEqual(len({line["stream"] for line in closed}), 2)

    def test_streams_have_the_names_that_are_asked_for(self):
        one, two = self.file("a.1.wav"), self.file("b.wav", channels=2)
        for arguments, names in (((one, "--id", "kitchen"), {"kitchen"}), ((one, two, "--id", "call-{}"), {"call-a.1", "call-b"}),
                                 ((two, "--split", "--id", "{}"), {"b-0", "b-1"})):
            code, _, lines = self.streamed(*arguments)
            self.assertEqual((code, {line["stream"] for line in lines}), (0, names))
        for arguments in (one, two, "--id", "kitchen"), (one, "--repeat", "2", "--id", "{}"), (one, "--streams", "2", "--id", "{}"):
            self.assertIn("--id: two streams would have the name", self.refused(*arguments))
        self.assertRegex(self.refused(one, "--id", "no name"), r"refused as schema: .*\(id\)$")

    def test_a_chunk_size_is_requested(self):
        served = self.service('[[pipeline]]\nchunk = { size = "320ms", sizes = ["80ms", "160ms", "320ms"] }\n')
        self.tap(served)
        ended = subprocess.run([MILLRACE, "stream", "--json", "--url", f"tcp://127.0.0.1:{served.zeromq_port}", self.file("a.wav"), "--chunk", "80ms"],
                               capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        results = [line for line in map(json.loads, ended.stdout.splitlines()) if line["type"] == "result"]
        self.assertEqual((results[0]["begin"], results[0]["end"]), (0, 1280))

    def test_a_pipeline_of_two_channels_receives_both(self):
        served = self.service("[[pipeline]]\nchannels = 2\n")
        self.tap(served)
        ended = subprocess.run([MILLRACE, "stream", "--json", "--url", f"ws://127.0.0.1:{served.port}", self.file("both.wav", channels=2)],
                               capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertEqual(json.loads(ended.stdout.splitlines()[-1])["frames"], 1600)

    def test_unsupported_input_is_named_once_with_the_supported_formats(self):
        path = self.file("slow.wav", rate=7000)
        self.assertEqual(self.refused(path),
                         f"millrace stream: {path}: has 7000 Hz, 1 channel, s16le, refused as format: must be a whole number from 8000 to"
                         " 192000 (rate)")
        self.assertRegex(self.refused(self.file("stereo.wav", channels=2), "--channel", "2"),
                         r"has 16000 Hz, 2 channels, s16le, refused as schema: must be mean or a channel from 0 to 1.*\(channel\)$")
        self.assertRegex(self.refused(self.file("a.wav"), "--chunk", "33ms"), r"refused as schema: .*\(chunk\)$")
        path = self.file("text.wav", b"no audio" * 9)
        self.assertRegex(self.refused(path), f"cannot be read as audio: .*; convert it: ffmpeg -i '{path}' audio.wav$")
        path = self.file("9:30.wav", b"no audio" * 9)
        self.assertRegex(self.refused(path), f"convert it: ffmpeg -i 'file:{path}' audio.wav$")
        self.assertEqual(self.refused("/nowhere.wav"),
                         "millrace stream: /nowhere.wav: cannot be read as audio: No such file or directory")
        for given, words in ((b"", "is empty"), (b"no audio" * 9, "is not WAV; for raw audio give --format"),
                             (b"ID3\3" * 9, "is MP3, and standard input must be WAV: give the name of the file; convert it: ffmpeg -i INPUT"), (header()[:30], "ends within its WAV header"),
                             (header(bits=8), "with 8 bits at 16000 Hz, 1 channels; supported: PCM of 16 or 24 bits, 32-bit float, G.711;"
                                              " convert it: ffmpeg -i INPUT -c:a pcm_s16le -f wav -")):
            with self.subTest(words):
                self.assertRegex(self.refused("-", given=given), "^millrace stream: standard input: .*" + words)

    def test_invalid_arguments_are_named(self):
        for arguments, words in ((("-", "-"), "standard input can be streamed only once"), (("-", "--repeat", "2"), "standard input can be"),
                                 (("x", "--rate", "8000"), "--rate and --channels apply to raw audio"), (("x", "--format", "s16le"), "give --rate too"),
                                 (("x", "--repeat", "0"), "--repeat: Value 0 not in range 1 to 1000000"), (("x", "--format", "mp3"), "--format: .*s16le")):
            with self.subTest(arguments):
                self.assertRegex(self.refused(*arguments), words)
        for command in ("strem", "Serve"):
            ended = subprocess.run([MILLRACE, command], capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual((ended.returncode, ended.stderr), (1, f'millrace: there is no command "{command}"; see millrace --help\n'))

    def test_a_full_standard_output_is_an_error(self):
        with open("/dev/full", "w") as full:
            ended = subprocess.run([MILLRACE, "stream", "--json", self.file("a.wav"), "--url", f"ws://127.0.0.1:{self.served.port}"],
                                   stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("the results cannot be written", ended.stderr)


if __name__ == "__main__":
    unittest.main()
