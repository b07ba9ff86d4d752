# SPDX-License-Identifier: Apache-2.0
"""The JavaScript client, examples/browser/, in a browser: what its page sends and shows."""
import array
import cmath
import hashlib
import math
import os
import tempfile
import unittest
import urllib.parse
import wave

from browser import Browser, Page, Pages
from harness import SystemTest, run, sample, samples
from raw_worker import Honest, RawWorker

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "browser")
RATE, PACKET = 16000, 1600
# Keeps the microphone that the page is given in `device`.
KEEP_DEVICE = """{
    const ask = MediaDevices.prototype.getUserMedia;
    MediaDevices.prototype.getUserMedia = async function (what) {
        return globalThis.device = await ask.call(this, what);
    };
    null;
}"""
# Gives a line for each result, the oldest first.
RESULTS = """[...results.rows].reverse().map(({ cells: [time, , result] }) => `${time.textContent}  ${result.textContent}`)"""
# Keeps the address of each connection in `urls`, and of the last one the last message without a result, less its number, and
# the close code.
KEEP_CONNECTIONS = """{
    const Real = WebSocket;
    Object.assign(globalThis, { urls: [], last: null, code: null });
    globalThis.WebSocket = class extends Real {
        constructor(url, protocol) {
            super(url, protocol);
            urls.push(url);
            this.addEventListener("message", ({ data }) => {
                const { n, ...message } = JSON.parse(data);
                if (!["result", "ack"].includes(message.type)) last = message;
            });
            this.addEventListener("close", (closed) => ({ code } = closed));
        }
    };
}"""
RELEASED = "device.getTracks().every((track) => track.readyState === 'ended')"


class Listener(Honest):
    """A worker that keeps the values of the bodies that it receives."""

    def __init__(self, service):
        self.received = bytearray()
        super().__init__(RawWorker(service.workers).attached().beat())

    def _work(self, answer):
        self.link.socket.settimeout(None)
        while (batch := self.link.batch()) is not None:
            self.rows += batch.framed + batch.marks
            for i, row in enumerate(batch.framed):
                self.received += self.link.row(batch, i)[:2 * row.size]
            self.link.answer(batch, answer)

    def values(self):
        return array.array("h", bytes(self.received))


def write_wav(folder, frames, rate=RATE, channels=1):
    path = os.path.join(folder, "sound.wav")
    with wave.open(path, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(frames)
    return path


def tone(frequency, rate, count, *loudness):
    """Frames of a tone, with a channel for each amplitude in `loudness`."""
    return array.array("h", (round(one * math.sin(2 * math.pi * frequency * i / rate))
                             for i in range(count) for one in loudness)).tobytes()


def amplitude(values, frequency):
    """The amplitude of a frequency in s16 values at RATE."""
    turn = -2j * math.pi * frequency / RATE
    return abs(sum(value * cmath.exp(turn * i) for i, value in enumerate(values))) * 2 / len(values)


class BrowserTest(SystemTest):
    def setUp(self):
        self.pages = Pages(PAGE)
        self.addCleanup(self.pages.close)

    def service(self, pipelines="[[pipeline]]\nchunk = { size = 1600 }\n", extra="", descriptors=None):
        return super().service(pipelines, f'origins = ["{self.pages.url.rstrip("/")}"]\n' + extra, descriptors)

    def browser(self, recording=None):
        if not recording:
            return Browser.of_class(type(self))
        browser = Browser(recording)
        self.addCleanup(browser.close)
        return browser

    def page(self, browser, service, **parameters):
        return Page(browser, self.pages.url + "?url=" + service.url(**parameters), script=KEEP_CONNECTIONS)

    def own_rate(self, browser):
        """The rate at which the browser records and decodes."""
        async def ask():
            async with Page(browser, self.pages.url) as page:
                return int(await page.value("new AudioContext().sampleRate"))

        return run(ask())

    def unconverted(self, rate):
        """A service whose pipeline has this rate."""
        return self.service(f'[[pipeline]]\nrate = {rate}\nchunk = {{ size = "100ms" }}\n')

    def listener(self, service):
        listener = Listener(service)
        self.addCleanup(listener.close)
        return listener

    async def ended(self, page):
        """The last message of the stream, if any, and the code of its close."""
        return await page.until("code && !listen.disabled && state.textContent && [last, code]")


class Files(BrowserTest):
    """Not run with sanitizers: the page does the same with a file for every build of the service."""

    def chosen(self, service, browser, sound, selecting="null"):
        """Evaluates `selecting` in the page and chooses a file. Returns the values of ended(), and the lines of results."""
        async def choose():
            async with self.page(browser, service) as page:
                await page.value(selecting)
                await page.choose("file", sound)
                return *await self.ended(page), await page.value(RESULTS)

        return run(choose())

    def test_a_file_arrives_value_by_value_and_its_results_are_shown(self):
        browser = self.browser()
        rate = self.own_rate(browser)
        service, count = self.unconverted(rate), rate // 4
        listener = self.listener(service)
        frames = [*map(sample, range(count - 2)), 32767, -32768]
        sound = write_wav(browser.folder.name, array.array("h", frames).tobytes(), rate)
        self.assertEqual(self.chosen(service, browser, sound),
                         ({"type": "closed", "frames": count, "chunks": 3}, 1000,
                          ["0.00–0.10 s  1", "0.10–0.20 s  1", "0.20–0.25 s  1"]))
        self.assertEqual(len(listener.values()), count)
        self.assertLessEqual({received - value for received, value in zip(listener.values(), frames)}, {0, 1},
                             "in a browser 1.0 may be 32767; in the page's format it is 32768")

    def test_a_file_of_two_channels_at_the_browsers_own_rate_becomes_mono_at_16_khz(self):
        browser = self.browser()
        sound = write_wav(browser.folder.name, tone(1000, 48000, 48000, 12000, 4000), 48000, 2)
        for selecting, expected in (("null", 8000), ("channel.value = '1'", 4000), ("document.getElementById('opus').checked = true", 8000)):
            with self.subTest(selecting):
                service = self.service()
                listener = self.listener(service)
                closed, code, _ = self.chosen(service, browser, sound, selecting)
                values = listener.values()
                self.assertEqual((closed["frames"], code), (len(values), 1000))
                self.assertAlmostEqual(len(values), 16000, delta=400)
                self.assertAlmostEqual(amplitude(values[4 * PACKET:5 * PACKET], 1000), expected, delta=expected / 20)

    def test_the_fields_of_the_page_become_parameters_of_the_stream(self):
        service, browser = self.service(), self.browser()
        rate = str(self.own_rate(browser))
        plain = {"format": "s16le", "resume": "1", "rate": rate, "channels": "2", "channel": "mean"}

        async def queries():
            async with self.page(browser, service, pipeline="none") as page:
                for selecting in ("null", "chunk.value = '160ms'", "channel.value = '1'", "channel.value = 'all'",
                                  "document.getElementById('opus').checked = true"):
                    await page.value(f"code = null; {selecting}")
                    await page.choose("file", write_wav(browser.folder.name, samples(0, 4000), channels=2))
                    await self.ended(page)
                return [dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query)) for url in await page.value("urls")]

        chunk = {"pipeline": "none", "chunk": "160ms"}
        everything = {"format": "s16le", "resume": "1", "rate": rate, "channels": "2", **chunk}
        self.assertEqual(run(queries()), [{"pipeline": "none", **plain}, {**plain, **chunk}, {**everything, "channel": "1"}, everything,
                                          {**everything, "format": "opus", "rate": "48000"}])

    def test_a_file_waits_in_the_page_while_the_service_does_not_read(self):
        browser = self.browser()
        rate = self.own_rate(browser)
        service, frames = self.unconverted(rate), 200 * rate  # more than the buffers of sockets hold
        sound = write_wav(browser.folder.name, bytes(2 * frames), rate)

        async def choose():
            async with self.page(browser, service) as page:
                await page.value("""{
                    globalThis.most = 0;
                    const send = WebSocket.prototype.send;
                    WebSocket.prototype.send = function (message) {
                        send.call(this, message);
                        most = Math.max(most, this.bufferedAmount);
                    };
                }""")
                await page.choose("file", sound)
                await page.until("most > 192000")
                self.listener(service)
                return await self.ended(page), await page.value("most")

        ended, most = run(choose())
        self.assertEqual(ended, [{"type": "closed", "frames": frames, "chunks": 2000}, 1000])
        self.assertLessEqual(most, 192000 + 2 * rate // 10 + 100)  # 100: the headers of frames

    def refused(self, service, **parameters):
        """The status line of a stream that the service refuses."""
        browser = self.browser()

        async def choose():
            async with self.page(browser, service, **parameters) as page:
                await page.choose("file", write_wav(browser.folder.name, samples(0, 4000)))
                self.assertEqual(await self.ended(page), [None, 1006])
                return await page.value("state.textContent")

        return run(choose())

    def test_a_refused_stream_is_shown_with_the_reason_and_counted_once(self):
        service = self.service()
        self.assertEqual(self.refused(service, pipeline="none"),
                         "The service refused the stream: pipeline: there is no pipeline none; there are: default.")
        self.assertEqual(service.metric("millrace_ingest_connections_rejected_total", reason="parameter"), 1)
        self.assertEqual(service.metric("millrace_ingest_connections_rejected_total", reason="handshake"), 0)

    def test_a_page_that_may_not_open_streams_says_so(self):
        self.assertIn("its origin must be in [listen] origins", self.refused(SystemTest.service(self)))


class Tokens(BrowserTest):
    def test_a_page_of_another_origin_sends_the_token_of_its_field(self):
        browser, token = self.browser(), "abc-_9"
        with tempfile.NamedTemporaryFile("w") as tokens:
            tokens.write(hashlib.sha256(token.encode()).hexdigest() + " page\n")
            tokens.flush()
            service = self.service(extra=f'[access]\ntokens = "{tokens.name}"\n')
            self.tap(service)
        sound = write_wav(browser.folder.name, tone(500, RATE, RATE, 9000))

        async def use():
            async with self.page(browser, service) as page:
                await page.choose("file", sound)
                await page.until("!file.disabled && state.textContent.includes('refused the stream: a token is required')")
                self.assertTrue(await page.value("pipelines.hidden"))
                await page.value(f"token.value = '{token}'; token.dispatchEvent(new Event('change'))")
                await page.until("!pipelines.hidden")
                await page.choose("file", sound)
                self.assertEqual((await page.until("code === 1000 && last"))["type"], "closed")
                self.assertEqual(await page.value("[sessionStorage.token, localStorage.length, document.cookie]"), [token, 0, ""])
                self.assertEqual([url for url in await page.value("urls") if token in url], [])

        run(use())


class Microphone(BrowserTest):
    def microphone(self, service, stop):
        """Streams the microphone for a while, awaits stop(page), and returns the values of ended(). Checks that the page
        has released the microphone."""
        with tempfile.TemporaryDirectory() as folder:
            browser = self.browser(write_wav(folder, tone(1000, 48000, 48000, 8000), 48000))

            async def listen():
                async with self.page(browser, service) as page:
                    await page.value(KEEP_DEVICE)
                    await page.click("listen")
                    await page.until("results.rows.length > 15")
                    await stop(page)
                    ended = await self.ended(page)
                    await page.until(RELEASED)
                    self.assertFalse(await page.value("listen.disabled || file.disabled"))
                    return ended

            return run(listen())

    def test_a_microphone_is_streamed_until_it_is_stopped(self):
        service = self.service()
        listener = self.listener(service)
        closed, code = self.microphone(service, lambda page: page.click("stop"))
        values = listener.values()
        self.assertEqual((closed["type"], closed["frames"], code), ("closed", len(values), 1000))
        # The audio begins anywhere in the file, and may have interruptions on a busy machine.
        loudest = max(amplitude(values[at:at + PACKET], 1000) for at in range(0, 15 * PACKET, PACKET))
        self.assertAlmostEqual(loudest, 8000, delta=400)

    def test_audio_recorded_while_too_much_is_unsent_becomes_a_gap(self):
        service = self.service()
        listener = self.listener(service)

        async def hold_up_and_stop(page):
            await page.value("""{
                globalThis.refused = 0;
                const controller = ReadableStreamDefaultController.prototype;
                const { get } = Object.getOwnPropertyDescriptor(controller, "desiredSize");
                Object.defineProperty(controller, "desiredSize", { get() {
                    const size = get.call(this);
                    refused += size <= 0;
                    return size;
                } });
                globalThis.waiting = 1e9;
                Object.defineProperty(WebSocket.prototype, "bufferedAmount", { get: () => waiting });
                null;
            }""")
            await page.until("refused > 2")
            self.gap = await page.value("waiting = 0; refused")
            await page.until("results.rows.length > 40")
            await page.click("stop")

        closed, code = self.microphone(service, hold_up_and_stop)
        self.assertEqual((closed["frames"], code), (len(listener.values()), 1000))
        self.assertGreaterEqual(sum(row.gap for row in listener.rows), self.gap * PACKET - 1)  # rounded

    def test_the_microphone_stops_when_the_service_stops(self):
        service = self.service()
        self.listener(service)

        async def stop(_):
            service.process.terminate()

        closed, code = self.microphone(service, stop)
        self.assertEqual((closed["type"], code), ("closed", 1012))

    def test_a_microphone_is_released_if_recording_cannot_start(self):
        service, browser = self.service(), self.browser()

        async def listen():
            async with self.page(browser, service) as page:
                await page.value(KEEP_DEVICE)
                await page.value("AudioWorklet.prototype.addModule = () => Promise.reject('no module'); null")
                await page.click("listen")
                await page.until("state.textContent === 'no module'")
                await page.until(RELEASED)

        run(listen())


if __name__ == "__main__":
    unittest.main()
