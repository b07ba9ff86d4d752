# SPDX-License-Identifier: Apache-2.0
"""The live page of the admin listener, in a browser: its numbers are those of /metrics, it loads little, and it shows that
the service stops."""
import asyncio
import contextlib
import json
import re
import unittest
import urllib.parse

from browser import Browser, Page, PatientPort
from harness import SystemTest, run, samples

WIDE, NARROW = (1280, 900), (390, 844)
PIPELINES = """
[[pipeline]]
name = "asr"
chunk = { size = 1600 }
batch = { rows = 4, max_wait = "5ms" }
[[pipeline]]
name = "vad"
chunk = { size = 512 }
[[pipeline]]
name = "mt"
"""
# Keeps each scrape of /metrics by the page. After `last` scrapes, the page gets no more answers, so that it shows the
# figures of the scrapes that were kept.
RECORD = """
globalThis.scrapes = [];
globalThis.last = Infinity;
const ask = fetch;
globalThis.fetch = async (path, ...options) => {
  if (path !== "metrics") return ask(path, ...options);
  if (scrapes.length >= last) {
    globalThis.frozen = true;
    return new Promise(() => {});
  }
  const answer = await ask(path, ...options);
  scrapes.push({ text: await answer.clone().text(), time: Number(answer.headers.get("Millrace-Collected")) });
  return answer;
};
"""
SHOWN = "Object.fromEntries([...document.querySelectorAll('[data-figure]')].map((e) => [e.dataset.figure, e.textContent]))"
METRICS = "import('./metrics.js').then(({ Scrape, scrapesOf, increase, rate, restarted, buckets, quantile }) => %s)"


class Samples:
    """The samples of one scrape, for PromQL in Python."""

    def __init__(self, scrape):
        self.time, self.lines = scrape["time"], []
        for line in scrape["text"].splitlines():
            if match := re.match(r"(\w+)(?:\{(.*)\})? (\S+)", line):
                self.lines.append((match[1], dict(re.findall(r'(\w+)="([^"]*)"', match[2] or "")), float(match[3])))

    def sum(self, name, **labels):
        return sum(value for family, have, value in self.lines
                   if family == name and labels.items() <= have.items())

    def buckets(self, name, **labels):
        return {float(have["le"]): value for family, have, value in self.lines
                if family == name + "_bucket" and labels.items() <= have.items()}


def quantile(part, counts):
    """histogram_quantile() of Prometheus."""
    bounds = sorted(counts)
    if counts[bounds[-1]] == 0:
        return None
    rank = part * counts[bounds[-1]]
    at = next(i for i, bound in enumerate(bounds) if counts[bound] >= rank)
    if at == len(bounds) - 1:
        return bounds[-2]
    low, below = (bounds[at - 1], counts[bounds[at - 1]]) if at else (0, 0)
    return low + (bounds[at] - low) * (rank - below) / (counts[bounds[at]] - below)


def figures(scrapes, pipeline):
    """The figures of the last 10 s that the page must show of a pipeline, by docs/admin.md."""
    new = scrapes[-1]
    old = next((one for one in reversed(scrapes) if one.time <= new.time - 10), scrapes[0])

    def grown(name, **labels):
        return new.sum(name, pipeline=pipeline, **labels) - old.sum(name, pipeline=pipeline, **labels)

    def rate(name, **labels):
        return grown(name, **labels) / (new.time - old.time)

    def milliseconds(part, name, **labels):
        before = old.buckets(name, pipeline=pipeline, **labels)
        value = quantile(part, {bound: count - before[bound]
                                for bound, count in new.buckets(name, pipeline=pipeline, **labels).items()})
        return None if value is None else 1000 * value

    shown = {"streams": new.sum("millrace_streams", pipeline=pipeline),
             "workers": new.sum("millrace_workers", pipeline=pipeline),
             "free": new.sum("millrace_slots", pipeline=pipeline, state="free"),
             "signal": rate("millrace_ingest_audio_seconds_total"),
             "rows": grown("millrace_batch_rows_sum") / grown("millrace_batch_rows_count"),
             "padding": 100 * grown("millrace_batch_frames_padded_total") / grown("millrace_batch_frames_total")}
    for part in (0.5, 0.99):
        shown[f"latency:{part}"] = milliseconds(part, "millrace_result_latency_seconds")
        for stage in ("chunk", "batch", "copy", "handover", "compute", "result"):
            shown[f"millrace_queue_wait_seconds_count:{stage}:{part}"] = \
                milliseconds(part, "millrace_queue_wait_seconds", stage=stage)
    for trigger in ("full", "complete", "deadline", "drain"):
        shown[f"millrace_batches_total:{trigger}"] = rate("millrace_batches_total", trigger=trigger)
    for reason in ("start", "client", "endpoint", "gap", "overflow", "worker_lost"):
        shown[f"millrace_stream_resets_total:{reason}"] = rate("millrace_stream_resets_total", reason=reason)
    return shown


class LivePage(SystemTest):
    def browser(self):
        return Browser.of_class(type(self))

    def page(self, browser, service, size=WIDE, script=None):
        admin = PatientPort(service.admin_port)
        self.addCleanup(admin.close)
        return Page(browser, f"http://127.0.0.1:{admin.port}/", size, script)

    @contextlib.asynccontextmanager
    async def load(self, service, *pipelines):
        """Streams in real time, with a reset, a gap and a flush now and then, until the end of the block."""
        async def stream(pipeline, packet):
            async with service.connect(pipeline=pipeline) as connection:
                reading = asyncio.ensure_future(self.read(connection))
                for number in range(10**9):
                    await connection.send(samples(0, packet))
                    if number % 10 == 9:
                        await connection.send(('{"type":"reset"}', '{"type":"flush"}', '{"type":"gap","frames":99}')[number // 10 % 3])
                    await asyncio.sleep(packet / 16000)
                await reading

        tasks = [asyncio.ensure_future(stream(name, 700 + 150 * i)) for name in pipelines for i in range(6)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    @staticmethod
    async def read(connection):
        async for _ in connection:
            pass

    def faultless(self, page, late="status of 503"):
        """Checks that there is no error on the console, and no request to another origin. `late` is a pattern of the errors of
        a list for which a thread of the service, or the browser, was too busy: the page asks again."""
        def is_late(error):
            return re.search("/streams|/workers", error.get("url", "")) and re.search(late, error["text"])

        self.assertEqual([error for error in page.errors() if not is_late(error)], [])
        origins = {urllib.parse.urlsplit(url).netloc for url in page.requested()}
        self.assertEqual(origins, {urllib.parse.urlsplit(page.url).netloc})

    def assert_shown(self, shown, expected):
        self.assertEqual(shown.keys(), expected.keys())
        for name, value in expected.items():
            if value is None:
                self.assertEqual(shown[name], "–", name)
                continue
            text = shown[name].replace("\u2009", "")
            digit = 10.0 ** -len(text.partition(".")[2])
            self.assertAlmostEqual(float(text), value, delta=0.5001 * digit, msg=name)


class Numbers(LivePage):
    def test_the_numbers_shown_are_those_of_metrics(self):
        service = self.service(PIPELINES)
        for pipeline in ("asr", "vad"):
            self.tap(service, pipeline)

        async def watch():
            async with self.load(service, "asr", "vad"), self.page(self.browser(), service, script=RECORD) as page:
                await page.until("scrapes.length > 4")
                await page.value("last = scrapes.length + 8")
                await page.until("globalThis.frozen")
                distinct = {one["time"]: Samples(one) for one in await page.value("scrapes")}
                scrapes = list(distinct.values())
                self.assertGreater(scrapes[-1].sum("millrace_stream_resets_total", reason="client"), 0)
                self.assertGreater(scrapes[-1].time - scrapes[0].time, 10)
                self.assert_shown(await page.value(SHOWN), figures(scrapes, "asr"))
                await page.value("document.querySelectorAll('#pipelines button')[1].click()")
                self.assert_shown(await page.value(SHOWN), figures(scrapes, "vad"))
                self.faultless(page)

        run(watch())

    def test_quantiles_and_rates_are_those_of_prometheus(self):
        service = self.service()
        cases = {
            # The examples of Prometheus' own tests of histogram_quantile.
            "quantile(0.5, [[0.1, 1], [0.2, 3], [1, 4], [Infinity, 4]])": 0.15,
            "quantile(1, [[0.1, 1], [0.2, 3], [Infinity, 3]])": 0.2,
            "quantile(0, [[0.1, 1], [0.2, 3], [Infinity, 3]])": 0,
            "quantile(0.99, [[0.1, 1], [0.2, 3], [Infinity, 9]])": 0.2,
            "quantile(0.5, [[0.1, 0], [0.2, 4], [Infinity, 4]])": 0.15,
            "quantile(0.5, [[0.1, 0], [Infinity, 0]])": None,
            "quantile(0.5, [])": None,
            "rate(new Scrape('a 7', 12), new Scrape('a 1', 9), 'a')": 2,
            "increase(new Scrape('a{x=\"1\"} 7\\na{x=\"2\"} 5', 2), new Scrape('a{x=\"1\"} 4', 1), 'a')": 8,
            "increase(new Scrape('a 7', 2), new Scrape('a 4', 1), 'b')": None,
            "buckets(new Scrape('h_bucket{le=\"+Inf\"} 5\\nh_bucket{le=\"0.5\"} 3', 2), new Scrape('h_bucket{le=\"0.5\"} 1', 1), 'h')"
            "[0]": [0.5, 2],
            "new Scrape('# TYPE a gauge\\na{x=\"q\\\\\"{} 1\",y=\"n\\\\\\\\\"} 1e-05\\n', 0).samples('a', { x: 'q\"{} 1' })[0]":
                {"labels": {"x": 'q"{} 1', "y": "n\\"}, "value": 1e-05},
            "scrapesOf({ times: [1, 2], series: { 'a{x=\"1\"}': [4, 7], b: 0 } }).map((one) => [one.time, one.sum('a'), one.sum('b')])":
                [[1, 4, 0], [2, 7, 0]],
            "restarted(new Scrape('process_start_time_seconds 5', 2), new Scrape('process_start_time_seconds 4', 1))": True,
            "restarted(new Scrape('process_start_time_seconds 5', 2), new Scrape('process_start_time_seconds 5', 1))": False,
        }

        async def compute():
            async with self.page(self.browser(), service) as page:
                for expression, expected in cases.items():
                    with self.subTest(expression):
                        value = await page.value(METRICS % expression)
                        if isinstance(expected, float):
                            self.assertAlmostEqual(value, expected)
                        else:
                            self.assertEqual(value, expected)

        run(compute())


class Contents(LivePage):
    def test_the_page_fits_a_phone_shows_lists_and_loads_little(self):
        service = self.service(PIPELINES)
        self.tap(service, "asr")

        async def watch():
            async with self.load(service, "asr"), self.page(self.browser(), service, NARROW) as page:
                await page.until("document.querySelectorAll('#streams tbody tr').length === 6")
                await page.until("document.querySelectorAll('#log tbody tr').length > 0")
                await page.until("document.querySelectorAll('.plot canvas').length > 0")
                self.assertEqual(await page.value("document.documentElement.scrollWidth"), NARROW[0])
                self.assertEqual(await page.value("state.textContent"), "not ready")
                self.assertEqual(await page.value("[...reasons.children].slice(0, 2).map((one) => one.textContent)"),
                                 ["pipeline vad has no worker", "pipeline mt has no worker"])
                self.faultless(page)
                self.assert_small(page)

        run(watch())

    def assert_small(self, page):
        """Checks that the page loads at most 250 kB besides the history, and at most 150 kB for each reading of the data."""
        urls = {one["requestId"]: urllib.parse.urlsplit(one["request"]["url"]).path
                for one in page.reported("Network.requestWillBeSent")}
        sizes = {}
        for one in page.reported("Network.loadingFinished"):
            sizes.setdefault(urls[one["requestId"]], []).append(one["encodedDataLength"])
        data = [sizes.pop(path) for path in ("/metrics", "/status", "/workers", "/streams", "/log")]
        del sizes["/history"]  # again if the machine was too busy for 10 s
        self.assertLess(sum(map(sum, sizes.values())), 250_000)
        self.assertLess(sum(map(max, data)), 150_000)
        self.assertTrue(all(len(times) == 1 for times in sizes.values()), sizes)

    def test_the_colours_of_the_page_follow_the_scheme_of_the_device(self):
        service = self.service()

        async def watch():
            async with self.page(self.browser(), service) as page:
                self.assertGreater(await page.brightness(), 200)
                await page.window(*WIDE, dark=True)
                self.assertLess(await page.brightness(), 55)

        run(watch())

    def test_files_are_sent_again_only_when_they_have_changed(self):
        service = self.service()
        status, page = service.get("/")
        self.assertEqual((status, page[:15]), (200, "<!doctype html>"))
        self.assertIn("Permission is hereby granted", service.get("/dygraphs-license.txt")[1])

        async def twice():
            async with self.page(self.browser(), service) as page:
                tags = await page.value("""fetch("live.js").then((answer) => [...answer.headers])""")
                self.assertEqual(dict(tags)["content-security-policy"], "default-src 'self'")
                asked = f"fetch('live.js', {{ headers: {{ 'If-None-Match': '{dict(tags)['etag']}' }}, cache: 'no-store' }})"
                self.assertEqual(await page.value(asked + ".then((answer) => answer.status)"), 304)

        run(twice())

    def test_several_open_pages_do_not_keep_probes_out(self):
        service = self.service(PIPELINES)
        browser = self.browser()

        async def watch():
            async with contextlib.AsyncExitStack() as pages:
                for _ in range(4):  # at the port of the service itself, which they may keep busy
                    page = await pages.enter_async_context(
                        Page(browser, f"http://127.0.0.1:{service.admin_port}/", WIDE, script=RECORD))
                for count in range(2, 5):
                    await page.until(f"scrapes.length > {count}")
                    self.assertEqual(service.get("/livez")[0], 200)
                self.faultless(page, late="status of 503|ERR_CONNECTION_RESET")

        run(watch())


class Stops(LivePage):
    def test_the_page_shows_that_the_service_stops_is_gone_and_is_back(self):
        service = self.service()
        tap = self.tap(service)

        async def watch():
            async with self.page(self.browser(), service, script=RECORD) as page:
                await page.until("state.textContent === 'ready'")
                await page.until("scrapes.length > 1")
                async with service.connect() as connection:
                    tap.process.send_signal(19)  # SIGSTOP: its unanswered row keeps the stream open, and the service running
                    await connection.send(samples(0, 1600))
                    self.assertEqual(json.loads(await connection.recv())["type"], "ready")
                    service.process.terminate()
                    await page.until("state.textContent === 'stopping'")
                    self.assertIn("the service is stopping", await page.value("reasons.textContent"))
                    self.faultless(page)
                    tap.process.send_signal(18)
                await page.until("state.textContent.startsWith('no answer since')")
                service.wait()
                service.again()
                self.tap(service)
                await page.until("state.textContent === 'ready'")
                await page.value("last = scrapes.length + 2")
                await page.until("globalThis.frozen")
                self.assertFalse([text for text in (await page.value(SHOWN)).values() if text.startswith("-")],
                                 "differences from the counters of the previous process")

        run(watch())


if __name__ == "__main__":
    unittest.main()
