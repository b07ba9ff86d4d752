# SPDX-License-Identifier: Apache-2.0
"""The live page of the admin listener, in a browser: it shows the time before it was opened, the workers, and faults with which
the service still accepts streams."""
import asyncio
import json
import pathlib
import re
import tempfile
import unittest

from harness import run, samples, wait_for
from live_page_test import NARROW, PIPELINES, RECORD, SHOWN, LivePage, Samples, figures

ALERTS = pathlib.Path(__file__).resolve().parents[2] / "monitoring/prometheus/rules/alerts.yml"
DRAWN = """
globalThis.drawn = [];
const draw = Dygraph.prototype.updateOptions;
Dygraph.prototype.updateOptions = function (options, ...more) {
  drawn.push(options.file?.length ?? 0);
  return draw.call(this, options, ...more);
};
document.dispatchEvent(new Event("visibilitychange"));
drawn
"""
# While `offline`, the page gets no answers. `read` has the paths of all requests.
OFFLINE = """
globalThis.read = [];
globalThis.offline = false;
const ask = fetch;
globalThis.fetch = async (path, ...options) => {
  read.push(path);
  if (offline) throw new Error("offline");
  return ask(path, ...options);
};
"""
HISTORIES = "read.filter((path) => path === 'history').length"
STATES = "[...document.querySelectorAll('#pipelines button')].map((one) => [one.textContent, one.firstChild.ariaLabel])"


def history(service):
    """The samples that the service has kept."""
    answer = json.loads(service.get("/history")[1])

    def text(i):
        return "\n".join(f"{name} {values[i] if isinstance(values, list) else values}" for name, values in answer["series"].items())

    return [Samples({"time": time, "text": text(i)}) for i, time in enumerate(answer["times"])]


async def await_history(service, count):
    await asyncio.to_thread(wait_for, lambda: len(history(service)) >= count, f"{count} samples", 0.5)


class History(LivePage):
    def test_a_page_that_is_opened_shows_what_was_before(self):
        service = self.service(PIPELINES)
        self.tap(service, "asr")

        async def watch():
            async with self.load(service, "asr"):
                await await_history(service, 4)
                async with self.page(self.browser(), service, script=RECORD.replace("Infinity", "1")) as page:
                    await page.until("globalThis.frozen")
                    last = Samples((await page.value("scrapes"))[0])
                    before = [one for one in history(service) if one.time < last.time]
                    self.assert_shown(await page.value(SHOWN), figures([*before, last], "asr"))
                    self.assertGreater(min(await page.value(DRAWN)), 3)
                    self.faultless(page)

        run(watch())

    def test_each_metric_that_a_figure_needs_is_kept(self):
        service = self.service()
        wait_for(lambda: history(service), "a sample", 0.1)
        names = {name for name, _, _ in history(service)[0].lines}
        for file in ("figures.js", "live.js", "metrics.js"):
            for name in re.findall(r'"((?:millrace|process)_\w+)"', service.get("/" + file)[1]):
                self.assertTrue(names & {name, name + "_bucket"}, f"{name} of {file}")

    def test_a_page_that_had_no_answers_for_a_while_fills_its_plots(self):
        service = self.service(PIPELINES)

        async def watch():
            async with self.page(self.browser(), service, script=OFFLINE) as page:
                await page.until("document.querySelectorAll('#cards output').length > 0")
                await page.value("offline = true")
                await page.until("state.textContent.startsWith('no answer since')")
                before = await page.value(HISTORIES)
                count = len(history(service)) + 3
                await await_history(service, count)
                await page.value("offline = false")
                await page.until("state.textContent === 'not ready'")
                self.assertGreater(await page.value(HISTORIES), before)
                self.assertGreaterEqual(min(await page.value(DRAWN)), count)

        run(watch())


class States(LivePage):
    def test_the_page_lists_the_workers_and_why_one_was_lost(self):
        service = self.service(PIPELINES)
        self.tap(service, "asr").kill()
        self.tap(service, "asr")

        async def watch():
            async with self.page(self.browser(), service, NARROW) as page:
                row = await page.until("[...document.querySelectorAll('#workers tbody tr')].map((row) => row.innerText).find((text) => text.includes('ago'))")
                self.assertRegex(row, r"^tap\s+0 of \d+\s+0\s+disconnect, .* ago$")
                self.assertEqual(await page.value("document.documentElement.scrollWidth"), NARROW[0])

        run(watch())

    def test_the_page_is_amber_while_recording_is_suspended_or_an_optional_worker_is_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            service = self.service(PIPELINES.replace('"asr"', '"asr"\nrecord = true').replace('"vad"', '"vad"\nrequired = false'),
                                   f'[recording]\ndirectory = "{folder}"\nmin_free = "1000TiB"\n')
            self.tap(service, "asr")
            mt = self.tap(service, "mt")

            async def watch():
                async with self.page(self.browser(), service) as page:
                    await page.until("state.className === 'state degraded'")
                    self.assertEqual(await page.value("[...reasons.children].map((one) => one.textContent)"),
                                     ["recording is suspended: the disk has too little space, or fails; /log has the reason", "pipeline vad has no worker"])
                    self.assertEqual(await page.value(STATES), [["●asr", "ready"], ["▲vad", "degraded"], ["●mt", "ready"]])
                    self.assertEqual(service.get("/readyz")[0], 200)
                    mt.process.kill()
                    await page.until("state.className === 'state unready'")
                    self.assertEqual((await page.value(STATES))[2], ["■mt", "not ready"])

            run(watch())

    def test_a_pipeline_is_amber_if_its_p99_of_five_minutes_is_above_the_alert(self):
        rule = re.search(r"p99_5m > ([\d.]+)", ALERTS.read_text())
        service = self.service()
        self.tap(service)
        counts = """import('./figures.js').then(({ late, latencies }) => import('./metrics.js').then(({ Scrape }) => {
          const scrape = (time, ...counts) => latencies(new Scrape(counts.map((count, i) =>
            `millrace_result_latency_seconds_bucket{pipeline="asr",le="${[%s, 1, "+Inf"][i]}"} ${count}`).join("\\n"), time));
          return [...late(scrape(300, %s), scrape(0, 9, 9, 9)).keys()];
        }))"""

        async def compute():
            async with self.page(self.browser(), service) as page:
                self.assertEqual(await page.value(counts % (rule[1], "108, 109, 109")), [])
                self.assertEqual(await page.value(counts % (rule[1], "107, 109, 109")), ["asr"])

        run(compute())

    def test_a_pipeline_whose_results_are_late_is_amber(self):
        service = self.service(PIPELINES)
        taps = [self.tap(service, pipeline) for pipeline in ("asr", "vad", "mt")]

        def is_late():
            return any(worker["oldest_batch_s"] > 0.31 for worker in service.listed("workers"))

        async def watch():
            async with self.page(self.browser(), service) as page, service.connect(pipeline="asr") as connection:
                await page.until("state.className === 'state ready'")
                taps[0].process.send_signal(19)  # SIGSTOP
                await connection.send(samples(0, 1600))
                await asyncio.to_thread(wait_for, is_late, "a late row")
                taps[0].process.send_signal(18)
                await page.until("state.className === 'state degraded'")
                self.assertIn("pipeline asr: the p99 of chunk to result in the last 5 min is", await page.value("reasons.textContent"))
                self.assertEqual(await page.value(STATES), [["▲asr", "degraded"], ["●vad", "ready"], ["●mt", "ready"]])

        run(watch())


if __name__ == "__main__":
    unittest.main()
