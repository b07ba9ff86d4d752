# SPDX-License-Identifier: Apache-2.0
"""`millrace bench`: its frames arrive, its figures are right, and it detects the errors of a service."""
import asyncio
import http
import json
import os
import signal
import socket
import subprocess
import threading
import unittest
import wave

import websockets

from harness import MILLRACE, PATIENCE, Process, SystemTest, wait_for

SHORT = ("--warm-up", "100ms", "--duration", "500ms")
PIPELINE = '[[pipeline]]\nslots = {slots}\nchunk = {{ size = "100ms" }}\n'
QUANTILES = {"count", "p50", "p90", "p99", "p99.9", "max"}


def bench(*arguments):
    """Runs `millrace bench`: (exit code, its lines of JSON, its standard error)."""
    if "--duration" not in arguments:
        arguments = (*SHORT, *arguments)
    done = subprocess.run([MILLRACE, "bench", "--json", *arguments], capture_output=True, text=True,
                          timeout=4 * PATIENCE)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


class FakeService:
    """A WebSocket server in place of a service. `answers` gives the numbers of the results for a packet, and `closes` the
    frames of `closed`. With `status`, it refuses each upgrade."""

    def __init__(self, answers=lambda seq: [seq], closes=lambda frames: frames, status=None):
        self.answers, self.closes, self.status = answers, closes, status

    async def _serve(self, connection):
        seq = 0
        await connection.send('{"type":"ready","stream":"s","pipeline":"default","frames":0}')
        async for message in connection:
            if isinstance(message, str):
                await connection.send(json.dumps({"type": "closed", "frames": self.closes(seq * 1600),
                                                  "chunks": seq}))
                return
            for number in self.answers(seq):
                await connection.send(json.dumps({"type": "result", "seq": number, "begin": 1600 * number,
                                                  "end": 1600 * number + 1600, "flags": [], "data": 1}))
            seq += 1

    async def _refuse(self, *_):
        return (self.status, [], b"{}") if self.status else None

    def __enter__(self):
        self.loop = asyncio.new_event_loop()
        ready = threading.Event()

        async def serve():
            server = await websockets.serve(self._serve, "127.0.0.1", 0, process_request=self._refuse,
                                            subprotocols=["millrace.v1"])
            self.url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            self.over = asyncio.Event()
            ready.set()
            await self.over.wait()
            server.close()
            await server.wait_closed()

        self.thread = threading.Thread(target=self.loop.run_until_complete, args=(serve(),))
        self.thread.start()
        ready.wait(PATIENCE)
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.over.set)
        self.thread.join(PATIENCE)
        self.loop.close()


class Bench(SystemTest):
    def run_bench(self, service, *arguments, transport="ws"):
        port = service.port if transport == "ws" else service.zeromq_port
        return bench("--url", f"{transport}://127.0.0.1:{port}", "--workers", service.workers,
                     "--server-pid", str(service.process.pid), *arguments)

    def test_a_run_is_checked_and_measured_at_both_ends_over_each_transport(self):
        for transport in ("ws", "tcp"):
            for threads in ("1", "3"):
                with self.subTest(transport=transport, threads=threads):
                    service = self.service(PIPELINE.format(slots=20))
                    code, (seen,), errors = self.run_bench(
                        service, "--streams", "20", "--threads", threads, "--worker", "answer", transport=transport)
                    self.assertEqual((code, errors), (0, ""))
                    self.assertTrue(seen["whole"])
                    self.assertEqual((seen["opened"], seen["ended"]), (20, 20))
                    self.assertEqual(seen["packets"], seen["results"])
                    self.assertEqual(seen["packets"], seen["worker"]["rows"])
                    self.assertEqual((seen["unanswered_rows"], seen["wrong"]), (0, 0))
                    for times in ("lateness_us", "row_us", "result_us"):
                        self.assertEqual(set(seen[times]), QUANTILES)
                        self.assertGreater(seen[times]["count"], 80)  # at most 100
                    self.assertGreater(seen["server"]["cpu_us_per_packet"], 0)
                    self.assertGreater(seen["server"]["bytes"], 1 << 20)
                    self.assertGreater(seen["server"]["descriptors"], 10)

    def test_a_worker_that_answers_nothing_still_sees_every_row(self):
        service = self.service(PIPELINE.format(slots=10))
        code, (seen,), _ = self.run_bench(service, "--streams", "10", "--worker", "silent", "--phase", "step",
                                          "--jitter", "50ms")
        self.assertEqual(code, 0)
        self.assertEqual((seen["results"], seen["result_us"]), (0, None))
        self.assertEqual(seen["worker"]["rows"], seen["packets"])
        self.assertGreater(seen["burst_us"]["count"], 0)

    def test_features_and_rules_with_context_are_checked_by_value_too(self):
        service = self.service('[[pipeline]]\nrate = 100\ndim = 80\nslots = 10\n'
                               'chunk = { size = 10, left = 7, right = 3 }\n')
        code, (seen,), _ = self.run_bench(service, "--streams", "10", "--worker", "answer", "--packet", "50ms")
        self.assertEqual(code, 0)
        self.assertGreater(seen["worker"]["rows"], 0)

    def test_a_run_with_any_chunk_rule_is_whole(self):
        for chunk in ('preset = "returnn-100-75"', 'preset = "wenet-16"', 'preset = "nemo-70-13"',
                      'size = 20, step = 7, right = 5, tail = "cover"', 'size = 10, step = 25',
                      'size = 30, tail = "drop"',
                      'rule = "random", size = 20, sizes = [10, 20, 40], first = 25, left = 7, right = 5',
                      'rule = "random", size = 20, sizes = { from = 10, to = 40, step = 5 }, tail = "drop"',
                      'rule = "adaptive", size = 20, sizes = [10, 20, 40], left = 7, align = "packed"'):
            with self.subTest(chunk):
                service = self.service('[[pipeline]]\nrate = 100\ndim = 80\nslots = 10\n'
                                       f'chunk = {{ {chunk} }}\n')
                code, (seen,), errors = self.run_bench(service, "--streams", "10", "--worker", "answer",
                                                       "--packet", "50ms", "--duration", "2500ms")
                self.assertEqual((code, errors), (0, ""), seen)
                self.assertGreater(seen["worker"]["rows"], 10)

    def test_samples_that_the_worker_gets_as_floats_are_checked_too(self):
        service = self.service('[[pipeline]]\nslots = 4\ndtype = "f32"\nchunk = { size = 1600 }\n')
        code, (seen,), _ = self.run_bench(service, "--streams", "4", "--worker", "answer")
        self.assertEqual((code, seen["worker"]["damaged"]), (0, 0))

    def test_500_telephone_clients_with_packets_of_20_ms_lose_nothing(self):
        for transport in ("ws", "tcp"):
            with self.subTest(transport):
                service = self.service(PIPELINE.format(slots=500))
                code, (seen,), errors = self.run_bench(
                    service, "--streams", "500", "--packet", "20ms", "--format", "mulaw", "--rate", "8000",
                    "--worker", "answer", transport=transport)
                self.assertEqual((code, errors, seen["whole"]), (0, "", True), seen)
                self.assertEqual(seen["opened"], 500)

    def test_clients_send_any_format_and_rate(self):
        service = self.service(PIPELINE.format(slots=10))
        for arguments in (("--format", "opus"), ("--format", "s24le", "--rate", "44100"), ("--format", "f32le", "--rate", "48000"),
                          ("--format", "alaw", "--rate", "192000")):
            with self.subTest(arguments):
                code, (seen,), errors = self.run_bench(service, "--streams", "10", "--packet", "20ms", "--worker", "answer",
                                                       *arguments, transport="tcp")
                self.assertEqual((code, errors, seen["whole"]), (0, "", True), seen)
        code, _, errors = self.run_bench(service, "--format", "opus", "--worker", "answer")
        self.assertEqual((code, errors), (1, "millrace bench: opus: needs --packet 20ms, and a pipeline of one or two channels\n"))

    def test_without_its_own_worker_bench_is_told_the_rate_of_the_pipeline(self):
        service = self.service(PIPELINE.format(slots=10))
        self.tap(service)
        code, (seen,), errors = self.run_bench(service, "--streams", "10", "--packet", "20ms", "--rate", "8000",
                                               "--pipeline-rate", "16000")
        self.assertEqual((code, errors, seen["whole"]), (0, "", True), seen)

    def test_streams_that_end_and_streams_that_vanish_are_counted(self):
        service = self.service(PIPELINE.format(slots=40))
        code, (seen,), errors = self.run_bench(service, "--streams", "20", "--worker", "answer", "--life", "200ms",
                                               "--aborts", "0.5", "--duration", "2s")
        self.assertEqual((code, errors), (0, ""), seen)
        self.assertGreater(seen["ended"], 20)
        self.assertGreater(seen["vanished"], 20)
        self.assertEqual(seen["opened"], seen["ended"] + seen["vanished"])
        self.assertGreater(seen["vanished_us"]["count"], 0)

    def test_files_are_sent_as_they_are(self):
        path = os.path.join(self.folder(), "tone.wav")
        with wave.open(path, "wb") as file:
            file.setnchannels(1), file.setsampwidth(2), file.setframerate(16000)
            file.writeframes(bytes(range(256)) * 50)
        service = self.service(PIPELINE.format(slots=4))
        code, (seen,), errors = self.run_bench(service, path, "--streams", "4", "--worker", "answer")
        self.assertEqual((code, errors), (0, ""))
        self.assertGreater(seen["worker"]["rows"], 0)

    def folder(self):
        return self.service().folder.name

    def test_the_option_every_adds_figures_for_each_interval(self):
        service = self.service(PIPELINE.format(slots=4))
        code, (seen,), _ = self.run_bench(service, "--streams", "4", "--worker", "answer", "--every", "250ms")
        self.assertEqual((code, len(seen["windows"])), (0, 2))
        self.assertEqual(sum(window["row_us"]["count"] for window in seen["windows"]), seen["row_us"]["count"])
        for window in seen["windows"]:
            self.assertGreater(window["server_bytes"], 1 << 20)

    def test_a_ramp_ends_at_the_most_streams_that_the_service_carries(self):
        service = self.service(PIPELINE.format(slots=5))
        code, lines, _ = self.run_bench(service, "--streams", "1", "--worker", "answer", "--ramp", "20s")
        self.assertEqual((code, lines[-1]), (0, {"most_streams": 5}))
        self.assertEqual([line["streams"] for line in lines[:-1]], [1, 2, 4, 8, 6, 5])

    def test_a_ramp_without_a_worker_ends_with_an_error(self):
        code, lines, errors = bench("--url", f"ws://127.0.0.1:{self.service().port}", "--ramp", "1s", "--streams", "1")
        self.assertEqual(code, 1)
        self.assertIn("no result to measure", errors)

    def test_a_service_that_dies_during_a_run_ends_and_fails_the_run(self):
        service = self.service(PIPELINE.format(slots=4))
        running = Process(MILLRACE, "bench", "--json", "--url", f"ws://127.0.0.1:{service.port}", "--server-pid",
                          str(service.process.pid), "--streams", "4", "--duration", "20s")
        self.addCleanup(running.kill)
        wait_for(lambda: len(service.streams()) == 4, "its streams to be open")
        service.kill()
        code, (seen,) = running.wait(), map(json.loads, running.lines)
        self.assertEqual((code, seen["broken"], seen["server"]), (1, 4, None))

    def test_ctrl_c_ends_a_run_at_once_with_a_message(self):
        service = self.service(PIPELINE.format(slots=1))
        running = Process(MILLRACE, "bench", "--url", f"ws://127.0.0.1:{service.port}", "--streams", "1",
                          "--duration", "1h")
        self.addCleanup(running.kill)
        wait_for(service.streams, "its stream to be open")
        self.assertEqual(running.stop(signal.SIGINT), 130)
        self.assertEqual((running.lines, running.errors), ([], ["millrace bench: interrupted: the run in progress is not reported"]))

    def test_an_unknown_server_pid_is_named_in_the_error(self):
        code, _, errors = bench("--server-pid", "1073741823")
        self.assertEqual(code, 1)
        self.assertIn("1073741823", errors)

    def test_refused_streams_fail_the_run_and_are_counted_by_status(self):
        service = self.service(PIPELINE.format(slots=3))
        code, (seen,), _ = self.run_bench(service, "--streams", "8", "--worker", "answer")
        self.assertEqual((code, seen["opened"], seen["refused"]), (1, 3, {"503": 5}))

    def test_a_missing_service_is_named_in_the_error(self):
        for url, words in (("ws://127.0.0.1:1", "no stream was opened"), ("ws://missing.invalid", "missing.invalid:80: "),
                          ("tcp://missing.invalid", "missing.invalid:5555: ")):
            for how in ((), ("--ramp", "10ms")):
                with self.subTest(url=url, how=how):
                    code, _, errors = bench("--url", url, "--streams", "2", *how)
                    self.assertEqual(code, 1)
                    self.assertIn(words, errors)

    def test_a_device_that_does_not_exist_is_named_with_those_that_do(self):
        code, lines, errors = bench("--worker", "answer", "--worker-device", "cuda:99")
        self.assertEqual((code, lines), (1, []))
        self.assertRegex(errors, r'^millrace bench: no device "cuda:99" on this machine; available: host'
                                 r'(, cuda:\d)*( \((no driver for .*|no CUDA device|this build has no CUDA)\))?\n$')

    def test_an_invalid_argument_is_named_in_the_error(self):
        for wrong, words in ((("--packet", "soon"), "--packet"), (("--packet", "0.01ms"), "--packet: must be a whole number"),
                            (("--jitter", "200ms"), "--jitter"), (("--aborts", "0.5"), "--aborts"),
                            (("--url", "http://localhost"), "must be ws://"),
                            (("--worker-device", "cuda:0"), "--worker-device: needs --worker")):
            with self.subTest(wrong):
                code, _, errors = bench(*wrong)
                self.assertEqual(code, 1)
                self.assertIn(words, errors)


class BenchOfOthers(unittest.TestCase):
    """Runs with another service, some of which make errors that Millrace must not make."""

    def bench(self, fake, *more):
        with fake:
            code, lines, _ = bench("--url", fake.url, "--streams", "3", *more)
        return code, lines[0]

    def test_a_run_with_a_correct_service_is_whole(self):
        code, seen = self.bench(FakeService())
        self.assertEqual((code, seen["whole"], seen["wrong"]), (0, True, 0))  # answers of other workers are not checked
        self.assertEqual(seen["packets"], seen["results"])
        self.assertEqual(seen["unanswered_rows"], 0)

    def test_repeated_results_and_results_out_of_order_are_counted(self):
        for name, answers in (("twice", lambda seq: [seq, seq] if seq == 2 else [seq]),
                              ("late", lambda seq: {2: [], 3: [3, 2]}.get(seq, [seq]))):
            with self.subTest(name):
                code, seen = self.bench(FakeService(answers))
                self.assertEqual((code, seen["repeated"]), (1, 3))

    def test_missing_results_are_counted(self):
        code, seen = self.bench(FakeService(lambda seq: [seq] if seq != 2 else []))
        self.assertEqual((code, seen["unanswered_rows"]), (0, 3))

    def test_frames_missing_from_closed_are_counted_as_lost(self):
        code, seen = self.bench(FakeService(closes=lambda frames: frames - 10))
        self.assertEqual((code, seen["lost_frames"]), (1, 30))

    def test_a_service_that_accepts_and_never_answers_ends_the_run(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            code, _, errors = bench("--url", f"ws://127.0.0.1:{silent.getsockname()[1]}", "--streams", "3")
        self.assertEqual(code, 1)
        self.assertIn("no stream was opened", errors)

    def test_refusals_of_another_service_are_counted(self):
        with FakeService(status=http.HTTPStatus.SERVICE_UNAVAILABLE) as fake:
            code, (seen,), _ = bench("--url", fake.url, "--streams", "3")
        self.assertEqual((code, seen["refused"]), (1, {"503": 3}))


if __name__ == "__main__":
    unittest.main()
