# SPDX-License-Identifier: Apache-2.0
"""The try page, which the service serves: it streams a microphone or a file, and shows the results."""
import tempfile
import unittest
import urllib.parse

from browser import Browser, Page
from browser_test import RATE, tone, write_wav
from harness import SystemTest, run

STAGES = ["chunk", "batch", "copy", "handover", "compute"]


class TryPage(SystemTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.sound = write_wav(folder, tone(500, RATE, 2 * RATE, 9000))
        cls.browser = Browser(cls.sound)
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.serving = self.service(extra="try_page = true\n")
        self.worker = self.tap(self.serving)

    def page(self, size=(1100, 800)):
        return Page(self.browser, f"http://127.0.0.1:{self.serving.port}/", size)

    def faultless(self, page):
        self.assertEqual(page.errors(), [])
        hosts = {urllib.parse.urlsplit(url).netloc for url in page.requested()}
        self.assertEqual(hosts, {f"127.0.0.1:{self.serving.port}"})

    async def flags(self, page):
        """The flags of each result, the oldest first."""
        return await page.value("[...results.rows].reverse().map((row) => [...row.querySelectorAll('.flag')].map((e) => e.textContent))")

    def test_a_microphone_is_streamed_with_markers_and_the_time_of_each_stage(self):
        async def use():
            async with self.page() as page:
                await page.click("listen")
                for button, rows in (("flush", 5), ("reset", 10), ("gap", 15)):
                    await page.until(f"results.rows.length >= {rows}")
                    await page.click(button)
                await page.until("results.rows.length >= 25")
                await page.click("stop")
                self.assertRegex(await page.until("state.textContent.includes('has ended') && state.textContent"),
                                 r"^The stream has ended: \d+ chunks, \d+ frames\.$")
                flags = await self.flags(page)
                self.assertEqual(flags[0], ["START", "RESET", "SEGMENT"])
                self.assertEqual(flags[-1][-2:], ["LAST", "END"])
                self.assertEqual(sum("LAST" in one for one in flags), 4, "flush, reset, gap and end each end a segment")
                self.assertEqual(sum("GAP" in one for one in flags), 1)
                self.assertEqual(sum("RESET" in one for one in flags), 3)
                self.assertEqual(await page.value("[...stages.children].map((one) => one.textContent)"), STAGES)
                self.assert_times(await page.value("""[...results.rows].map((row) =>
                    [...[...row.querySelectorAll('small')].map((one) => one.textContent), row.cells[4].textContent,
                     row.querySelectorAll('.bar span').length])"""))
                self.assertGreater(await page.value("""(() => {
                    const { width, height } = wave;
                    const pixels = wave.getContext("2d").getImageData(0, 0, width, height).data;
                    return pixels.filter((value, at) => at % 4 === 3 && value > 0).length / (width * height);
                })()"""), 0.02, "the part of the canvas that is drawn on")
                self.faultless(page)

        run(use())

    def assert_times(self, rows):
        """Checks that each result has a time for each stage, and their sum."""
        for text, batch, total, parts in rows:
            self.assertRegex(batch, r"^batch \d+: \d+ rows?, (full|complete|deadline|drain); slot \d+$")
            times = dict(part.split() for part in text.removesuffix(" ms").split(" · "))
            self.assertEqual([*times], STAGES)
            self.assertEqual(parts, len(STAGES))
            total = float(total.removesuffix(" ms"))
            self.assertAlmostEqual(sum(map(float, times.values())), total, delta=0.03 + total / 100)  # rounded

    def test_the_page_fits_a_phone_and_a_file_is_answered_completely_each_time_it_is_chosen(self):
        async def use():
            async with self.page((390, 844)) as page:
                for _ in range(2):
                    await page.value("state.textContent = ''")
                    await page.choose("file", self.sound)
                    await page.until("state.textContent.includes('has ended')")
                    self.assertEqual(await page.value("results.rows.length"), 20 + 1)  # the row of the end has no frames
                self.assertEqual(await page.value("position.textContent"), "2.0 s")
                self.assertEqual(await page.value("document.documentElement.scrollWidth"), 390)
                self.faultless(page)

        run(use())

    def test_the_colours_of_the_page_follow_the_scheme_of_the_device(self):
        async def use():
            async with self.page() as page:
                self.assertGreater(await page.brightness(), 200)
                await page.window(1100, 800, dark=True)
                self.assertLess(await page.brightness(), 55)

        run(use())

    def test_the_page_shows_that_the_service_drains(self):
        async def use():
            async with self.page() as page:
                await page.click("listen")
                await page.until("results.rows.length >= 3")
                self.serving.process.terminate()
                await page.until("state.textContent.includes('closed with code 1012')")
                self.assertFalse(await page.value("listen.disabled || file.disabled"))
                self.faultless(page)

        run(use())

    def test_the_page_offers_the_pipelines_and_says_to_which_it_streams(self):
        self.serving = self.service("""
[[pipeline]]
name = "features"
dim = 3
chunk = { size = 10 }
[[pipeline]]
name = "short"
chunk = { size = "32ms" }
[[pipeline]]
name = "vad"
chunk = { size = "80ms", sizes = ["80ms", "160ms"] }
""", "try_page = true\n")
        self.tap(self.serving, "short")

        async def use():
            async with self.page() as page:
                await page.until("pipeline.value === 'short'")  # the first one that takes audio
                self.assertEqual(await page.value("[...pipeline.options].map((one) => [one.value, one.disabled])"),
                                 [["features", True], ["short", False], ["vad", False]])
                self.assertEqual(await page.value("new URL(url.value).searchParams.get('pipeline')"), "short")
                await page.click("listen")
                self.assertEqual(await page.until("state.textContent"),
                                 "Streaming to pipeline short: chunks of 32 ms at 16 kHz.")
                await page.click("stop")
                await page.value("pipeline.value = 'vad'; pipeline.dispatchEvent(new Event('change'))")
                self.assertEqual(await page.value("[new URL(url.value).searchParams.get('pipeline'), chunk.placeholder]"),
                                 ["vad", "80ms, 160ms"])
                self.faultless(page)

        run(use())

    # The columns of a waveform on which a border is drawn above the audio, and whether the first curve is drawn. The audio is one
    # second with a result for each chunk of 100 ms.
    PAINTED = """(async (chunk) => {
        const { Wave } = await import("/wave.js"), { Curves } = await import("/curves.js");
        const canvas = document.body.appendChild(document.createElement("canvas"));
        const curves = new Curves(document.body.appendChild(document.createElement("p")));
        const drawn = new Wave(canvas, curves);
        drawn.clear(1000, 1);
        drawn.add(new Float32Array(1000));
        for (let at = 0; at < 1; at += chunk) {
            const result = { begin_s: at, end_s: at + chunk, flags: [], data: { speech: at, energy: -20 } };
            curves.add(result);
            drawn.mark(result);
        }
        drawn.paint();
        const color = (x, y) => [...canvas.getContext("2d").getImageData(x, y, 1, 1).data];
        const columns = Array.from({ length: canvas.width }, (_, x) => x);
        const borders = columns.filter((x) => color(x, 24)[3] > 0).length;
        const curve = columns.some((x) => Array.from({ length: canvas.height - 42 }, (_, y) => color(x, 26 + y))
            .some(([red, , blue, alpha]) => alpha === 255 && red > blue + 100));
        return [borders, curve, curves.legend.textContent];
    })"""

    def test_borders_are_drawn_if_they_are_4_pixels_apart_and_numbers_are_curves(self):
        async def use():
            async with self.page((1100, 800)) as page:
                borders, curve, legend = await page.value(f"{self.PAINTED}(0.1)")
                self.assertGreaterEqual(borders, 9)
                self.assertEqual((curve, legend), (True, "speechenergyscale from -20 to 1"))
            async with self.page((390, 844)) as page:
                self.assertEqual((await page.value(f"{self.PAINTED}(0.1)"))[0], 0)

        run(use())


if __name__ == "__main__":
    unittest.main()
