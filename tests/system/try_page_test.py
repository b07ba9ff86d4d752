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
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.sound = write_wav(folder.name, tone(500, RATE, 2 * RATE, 9000))
        self.serving = self.service(extra="try_page = true\n")
        self.worker = self.tap(self.serving)
        self.browser = Browser(self.sound)
        self.addCleanup(self.browser.close)

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
                self.assertIn('"closed"', await page.until("state.textContent.includes('connection closed: 1000') && state.textContent"))
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
                    await page.until("state.textContent.includes('connection closed: 1000')")
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
                await page.until("state.textContent.includes('connection closed: 1012')")
                self.assertFalse(await page.value("listen.disabled || file.disabled"))
                self.faultless(page)

        run(use())


if __name__ == "__main__":
    unittest.main()
