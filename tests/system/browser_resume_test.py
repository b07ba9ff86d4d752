# SPDX-License-Identifier: Apache-2.0
"""The JavaScript client, examples/browser/, in a browser, over connections that are lost: its stream continues."""
import hashlib
import json
import tempfile
import unittest

import worker_wire as wire
from browser import Page
from browser_test import RATE, RESULTS, BrowserTest, tone, write_wav
from cutting_proxy import NEVER, WebSocketProxy
from harness import run, sample
from raw_client import RawClient
from raw_worker import Honest, RawWorker

ROW = 100  # frames
PIPELINE = f"[[pipeline]]\nchunk = {{ size = {ROW} }}\n"
# Runs a stream of `parts` with the function of client.js. A list of numbers is a packet of samples.
SESSION = """(async () => {
    const { stream } = await import("/client.js");
    const messages = [];
    const parts = %s.map((part) => (Array.isArray(part) ? Float32Array.from(part, (x) => x / 32768) : part));
    const audio = new ReadableStream({ start: (to) => {
        for (const part of parts) to.enqueue(part);
        to.close();
    } });
    const { code } = await stream(%s, { audio, ...%s }, (message) => messages.push(message instanceof Blob ? "bytes" : message));
    return { code, messages };
})()"""
# Opens a stream whose audio is enqueued into `source`. `ended` is its CloseEvent.
MANUAL = """(async () => {
    const { stream } = await import("/client.js");
    Object.assign(globalThis, { messages: [], source: null, ended: null });
    const audio = new ReadableStream({ start: (to) => (source = to) });
    stream(url.value, { audio, rate: 16000 }, (message) => messages.push(message)).then((end) => (ended = end));
})()"""


def packet(first, count):
    return [sample(position) for position in range(first, first + count)]


# Of each command, and packets whose ends are in rows.
PARTS = [packet(0, 150), {"type": "flush", "mark": 7}, packet(150, 50), {"type": "message", "data": 1}, {"type": "keepalive"},
         packet(200, 130), {"type": "set", "options": {"a": 2}}, {"type": "gap", "frames": 10}, packet(340, 77), {"type": "reset"},
         packet(417, 20)]


def without_place(message):
    """A message without what depends on time, on the batch or on the name of the stream."""
    if isinstance(message.get("data"), dict):
        message["data"] = {key: value for key, value in message["data"].items() if key not in ("stream", "slot", "batch")}
    return {key: value for key, value in message.items() if key != "ack"}


class BytesWorker(RawWorker):
    """Its answers are bytes."""

    def answer(self, batch, text=b"1", **times):
        self.send(wire.done(batch.id, [(wire.BYTES, text)] * len(batch.framed), [(wire.BYTES, text)] * len(batch.marks), **times))


class ResumeTest(BrowserTest):
    def cuts(self, service, *limits, **refused):
        cuts = WebSocketProxy(service.port, limits, **refused)
        self.addCleanup(cuts.close)
        return cuts

    def page_at(self, cuts, browser, script=None):
        return Page(browser, f"{self.pages.url}?url={cuts.url}", script=script)

    def session(self, cuts, parts=(), **parameters):
        """The close code of a stream, and its messages."""
        async def use():
            async with self.page_at(cuts, self.browser()) as page:
                ended = await page.value(SESSION % (json.dumps(parts or PARTS), json.dumps(cuts.url),
                                                    json.dumps({"rate": RATE, **parameters})))
                return ended["code"], ended["messages"]

        return run(use())


class Streams(ResumeTest):
    """Not run with sanitizers: the page does the same for every build of the service."""

    def kinds(self, messages):
        return [message["type"] for message in messages if message["type"] in ("ready", "resumed", "ack")]

    def test_no_frame_command_or_message_is_lost_or_repeated_wherever_connections_are_cut(self):
        service = self.service(PIPELINE)
        self.tap(service, "default", "--data", "crc32c")
        code, whole = self.session(self.cuts(service))
        self.assertEqual((code, self.kinds(whole)), (1000, ["ready"]))
        self.assertEqual([message["n"] for message in whole[1:]], [*range(len(whole) - 1)])
        for limits in ([(310, None), (1, None), (105, None), (450, None)], [(731, None), (None, 1), (None, 400)],
                       [(None, 700), (None, 900), (200, None)], [(1000, None)], [(None, 2000), (None, 700)]):
            with self.subTest(limits=limits):
                cuts = self.cuts(service, *limits)
                code, messages = self.session(cuts)
                self.assertEqual((code, next(cuts.limits, NEVER)), (1000, NEVER), "each connection was cut")
                kinds = self.kinds(messages)
                self.assertEqual((kinds[0], {*kinds[1:]}), ("ready", {"resumed"}))
                self.assertEqual({message["kept"] for message in messages if message["type"] == "resumed"}, {True})
                self.assertEqual([without_place(one) for one in messages if one["type"] not in ("ready", "resumed")],
                                 [without_place(one) for one in whole[1:]])

    def test_a_stream_with_results_in_bytes_continues_at_the_place_in_them(self):
        service = self.service(PIPELINE)
        worker = Honest(BytesWorker(service.workers).attached().beat())
        self.addCleanup(worker.close)
        cuts = self.cuts(service)

        async def use():
            async with self.page_at(cuts, self.browser()) as page:
                await page.value(MANUAL)
                await page.value("source.enqueue(new Float32Array(1000)); source.enqueue({ type: 'flush' })")
                await page.until("messages.filter((one) => one instanceof Blob).length === 11")
                cuts.cut()
                await page.until("messages.some(({ type }) => type === 'resumed')")
                await page.value("source.close()")
                self.assertEqual(await page.until("ended && [ended.code]"), [1000])
                return await page.value("messages.filter((one) => one instanceof Blob).length")

        self.assertEqual(run(use()), len(worker.rows))
        self.assertIn("&n=11&seq=11&from=1000&commands=1&begin=1000&skip=0&have=11&", cuts.targets[1])

    def test_a_request_that_arrives_twice_does_not_end_the_stream(self):
        service = self.service(PIPELINE)
        self.tap(service)
        cuts = self.cuts(service)
        without_acks = """{
            const { send } = WebSocket.prototype;
            WebSocket.prototype.send = function (message) {
                if (typeof message !== "string" || JSON.parse(message).type !== "ack") send.call(this, message);
            };
        }"""

        async def use():
            async with self.page_at(cuts, self.browser(), script=without_acks) as page:
                await page.value(MANUAL)
                await page.value("source.enqueue(new Float32Array(1000))")
                await page.until("messages.filter(({ type }) => type === 'result').length === 10")
                cuts.cut()
                await page.until("messages.some(({ type }) => type === 'resumed')")
                with RawClient(service.port, cuts.heads[-1]) as twin:
                    self.assertEqual(twin.head()[0], 101)
                    await page.until("messages.filter(({ type }) => type === 'resumed').length === 2")
                await page.value("source.close()")
                self.assertEqual(await page.until("ended && [ended.code]"), [1000])
                return await page.value("messages")

        messages = run(use())
        self.assertEqual({message["type"] for message in messages} - {"ack"}, {"ready", "result", "resumed", "closed"})

    def test_messages_are_acknowledged_also_if_no_further_ones_follow(self):
        service = self.service(PIPELINE)
        self.tap(service)
        keep_acks = """{
            globalThis.acks = [];
            const { send } = WebSocket.prototype;
            WebSocket.prototype.send = function (message) {
                send.call(this, message);
                if (typeof message === "string") acks.push(JSON.parse(message).n);
            };
        }"""

        async def use():
            async with self.page_at(self.cuts(service), self.browser(), script=keep_acks) as page:
                await page.value(MANUAL)
                await page.value("source.enqueue(new Float32Array(1000))")
                await page.until("acks.includes(10)")
                self.assertLess(await page.value("acks.length"), 10, "not each for itself")

        run(use())

    def test_a_file_in_opus_continues(self):
        service, browser = self.service(), self.browser()
        listener = self.listener(service)
        sound = write_wav(browser.folder.name, tone(1000, 48000, 3 * 48000, 9000), 48000)
        cuts = self.cuts(service, (2000, None), (1000, None), (None, 800))

        async def choose():
            async with self.page_at(cuts, browser) as page:
                await page.value("document.getElementById('opus').checked = true")
                await page.choose("file", sound)
                await page.until("state.textContent.includes('has ended')")
                return await page.value(RESULTS)

        lines = run(choose())
        self.assertEqual(next(cuts.limits, NEVER), NEVER, "each connection was cut")
        self.assertAlmostEqual(len(listener.values()), 3 * RATE, delta=400)
        self.assertEqual(len(lines), len(listener.rows))
        self.assertFalse([row for row in listener.rows if row.gap])

    def test_a_stream_that_the_service_has_lost_is_opened_anew_within_a_packet(self):
        browser = self.browser()
        key = tempfile.NamedTemporaryFile("w")  # only its owner may read it
        self.addCleanup(key.close)
        key.write("5a" * 32)
        key.flush()
        service = self.service(PIPELINE, f'[access]\nresume_key = "{key.name}"\n')
        self.tap(service)
        cuts = self.cuts(service)

        async def use():
            async with self.page_at(cuts, browser, script="performance.now = () => 1;") as page:  # no window ends
                await page.value(MANUAL)
                # After 15 s of a segment, its rows that are done are not computed again.
                await page.value("for (let i = 0; i < 9; ++i) source.enqueue(new Float32Array(30050))")
                await page.until("messages.filter(({ type }) => type === 'result').length === 2704")
                service.kill()
                service.again()
                self.tap(service)
                await page.until("messages.some(({ type }) => type === 'resumed')")
                await page.value("source.enqueue(new Float32Array(1000)); source.close()")
                await page.until("ended && [ended.code]")
                return await page.value("messages")

        messages = run(use())
        self.assertEqual([message["kept"] for message in messages if message["type"] == "resumed"], [False])
        results = [message for message in messages if message["type"] == "result"]
        rows = [(message["seq"], round(message["begin_s"] * RATE)) for message in results]
        self.assertEqual(rows[:2714], [(row, row * ROW) for row in range(2714)])
        self.assertEqual((messages[-1]["type"], round(results[-1]["end_s"] * RATE)), ("closed", 271450))
        self.assertIn("&seq=2704&from=270400&commands=0&begin=270400&skip=0&have=2704&", cuts.targets[-1])

    def test_an_older_service_gets_a_stream_that_is_not_continued(self):
        service = self.service(PIPELINE)
        self.tap(service)
        cuts = self.cuts(service, refused="resume")
        code, messages = self.session(cuts)
        self.assertEqual((code, messages[-1]["type"], "n" in messages[-1]), (1000, "closed", False))
        self.assertEqual(["resume=" in target for target in cuts.targets], [True, False])

    def test_both_kinds_of_tokens_continue_a_stream(self):
        token = "abc-_9"
        with tempfile.NamedTemporaryFile("w") as tokens:
            tokens.write(hashlib.sha256(token.encode()).hexdigest() + " page\n")
            tokens.flush()
            service = self.service(PIPELINE, f'[access]\ntokens = "{tokens.name}"\n')
            self.tap(service)
        cuts = self.cuts(service, (700, None))
        code, messages = self.session(cuts, token=token)
        self.assertEqual((code, messages[-1]["type"], len(cuts.targets)), (1000, "closed", 2))

    def test_a_stream_whose_service_stays_away_is_over_after_its_window(self):
        service, browser = self.service(), self.browser()
        self.tap(service)
        cuts = self.cuts(service)
        hasten = "{ const { now } = performance; performance.now = () => 20 * now.call(performance); }"

        async def use():
            async with self.page_at(cuts, browser, script=hasten) as page:
                await page.click("listen")
                await page.until("results.rows.length > 3")
                cuts.close()
                await page.until("!listen.disabled && state.textContent.includes('The connection was lost.')")

        run(use())

    def test_a_failure_of_the_audio_does_not_continue_the_stream(self):
        service, browser = self.service(PIPELINE), self.browser()
        self.tap(service)
        cuts = self.cuts(service)

        async def use():
            async with self.page_at(cuts, browser) as page:
                await page.value(MANUAL)
                await page.value("source.enqueue(new Float32Array(500))")
                await page.until("messages.some(({ type }) => type === 'result')")
                await page.value("source.error(new Error('no microphone'))")
                return await page.until("ended && [ended.code]")

        self.assertEqual((run(use()), len(cuts.targets)), ([4000], 1))


class Bookkeeping(ResumeTest):
    """resume.js alone."""

    def test_what_is_not_acknowledged_is_kept_and_the_rest_is_sent_again(self):
        browser = self.browser()

        async def use():
            async with Page(browser, self.pages.url) as page:
                return await page.value("""(async () => {
                    const { Progress } = await import("/resume.js");
                    const progress = new Progress();
                    const ready = { stream: "s", frame_bytes: 2, keep: 8, resume: "t", frames: 0, commands: 0 };
                    const readable = (messages) => messages.map((one) => (typeof one === "string" ? JSON.parse(one).type : [...one]));
                    const again = (frames, commands) => readable(progress.open({ ...ready, frames, commands }));
                    const ack = (...place) => progress.receive({ type: "result", seq: 1, n: progress.n, ack: place });
                    const out = [again(0, 0)];
                    progress.add(Uint8Array.of(0, 0, 1, 1, 2, 2, 3, 3));
                    progress.add({ type: "set", options: { a: 1, b: 1 } });
                    progress.add({ type: "set", options: { b: 2 } });
                    progress.add(Uint8Array.of(4, 4, 5, 5, 6, 6, 7, 7));
                    progress.add({ type: "gap", frames: 3 });
                    out.push(progress.full, again(3, 0), again(6, 1), again(8, 2), again(11, 3));
                    out.push(ack(1, 1, 1, 0, 0), progress.full, progress.parameters.set, again(1, 1));
                    out.push(ack(2, 8, 2, 8, 0), progress.parameters.set, again(8, 2), again(11, 3));
                    progress.add({ type: "set", options: { rejected: "x".repeat(4096) } });
                    out.push(ack(3, 11, 4, 11, 0), again(10, 4), again(11, 4), progress.receive({ type: "result", seq: 3, n: 1 }));
                    return [out, progress.parameters];
                })()""")

        out, parameters = run(use())
        rest = [[4, 4, 5, 5, 6, 6, 7, 7], "gap"]
        self.assertEqual(out[:6], [[], True, [[3, 3], "set", "set", *rest], ["set", [6, 6, 7, 7], "gap"], ["gap"], []])
        self.assertEqual(out[6:10], [True, False, '{"a":1,"b":1}', [[1, 1, 2, 2, 3, 3], "set", *rest]])
        self.assertEqual(out[10:14], [True, '{"a":1,"b":2}', ["gap"], []])
        self.assertEqual(out[14:], [True, [[0, 0]], [], False])
        self.assertEqual(parameters, {"id": "s", "n": 3, "seq": 3, "from": 11, "commands": 4, "begin": 11, "skip": 0, "have": 2,
                                      "flushed": 0, "set": '{"a":1,"b":2}'})


class Microphone(ResumeTest):
    def test_a_microphone_continues_and_the_page_says_so(self):
        service = self.service()
        listener = self.listener(service)
        cuts = self.cuts(service)
        folder = self.enterContext(tempfile.TemporaryDirectory())
        browser = self.browser(write_wav(folder, tone(1000, 48000, 48000, 8000), 48000))

        async def listen():
            async with self.page_at(cuts, browser) as page:
                await page.click("listen")
                for rows in (5, 10, 15):
                    await page.until(f"results.rows.length > {rows}")
                    cuts.cut()
                    await page.until(f"state.textContent.includes('The stream continues') && results.rows.length > {rows + 3}")
                await page.click("stop")
                closing = await page.until("state.textContent.includes('has ended') && state.textContent")
                return closing, await page.value(RESULTS)

        closing, lines = run(listen())
        rows = len(listener.rows)
        self.assertEqual(closing, f"The stream has ended: {rows} chunks, {len(listener.values())} frames.")
        self.assertEqual(len(lines), rows)
        begins = [float(line.split("–")[0]) for line in lines]
        self.assertEqual(begins, sorted(begins))
        self.assertEqual(len(cuts.targets), 4)


if __name__ == "__main__":
    unittest.main()
