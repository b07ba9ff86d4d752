# SPDX-License-Identifier: Apache-2.0
"""`millrace bench`: its frames arrive, and its figures are right. tests/load has the errors that it detects."""
import json
import signal
import subprocess
import unittest

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


class Bench(SystemTest):
    def run_bench(self, service, *arguments, transport="ws"):
        port = service.port if transport == "ws" else service.zeromq_port
        return bench("--url", f"{transport}://127.0.0.1:{port}", "--workers", service.workers,
                     "--server-pid", str(service.process.pid), *arguments)

    def test_a_run_is_checked_and_measured_at_both_ends_over_each_transport(self):
        service = self.service(PIPELINE.format(slots=20))
        for transport, threads in (("ws", "1"), ("tcp", "3")):
            with self.subTest(transport):
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

    def test_a_run_with_any_chunk_rule_is_whole(self):
        rules = ('preset = "wenet-16"', 'size = 20, step = 7, left = 7, right = 5, tail = "cover"',
                 'rule = "adaptive", size = 20, sizes = [10, 20, 40], left = 7, align = "packed"')
        service = self.service("".join(f'[[pipeline]]\nname = "{name}"\nrate = 100\ndim = 80\nslots = 10\nchunk = {{ {rule} }}\n'
                                       for name, rule in enumerate(rules)))
        for name, rule in enumerate(rules):
            with self.subTest(rule):
                code, (seen,), errors = self.run_bench(service, "--pipeline", str(name), "--streams", "10", "--worker", "answer",
                                                       "--packet", "50ms", "--warm-up", "100ms", "--duration", "1500ms")
                self.assertEqual((code, errors), (0, ""), seen)
                self.assertGreater(seen["worker"]["rows"], 10)

    def test_500_telephone_clients_with_packets_of_20_ms_lose_nothing(self):
        service = self.service(PIPELINE.format(slots=500))
        code, (seen,), errors = self.run_bench(service, "--streams", "500", "--packet", "20ms", "--format", "mulaw", "--rate", "8000",
                                               "--worker", "answer")
        self.assertEqual((code, errors, seen["whole"], seen["opened"]), (0, "", True, 500), seen)

    def test_clients_send_any_format_and_rate(self):
        service = self.service(PIPELINE.format(slots=10))
        for arguments in (("--format", "opus"), ("--format", "s24le", "--rate", "44100")):
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
        service = self.service(PIPELINE.format(slots=400))  # a stream that vanished keeps its slot for a while
        code, (seen,), errors = self.run_bench(service, "--streams", "20", "--worker", "answer", "--life", "200ms",
                                               "--aborts", "0.5", "--duration", "5s")
        self.assertEqual((code, errors), (0, ""), seen)
        self.assertGreater(seen["ended"], 20)
        self.assertGreater(seen["vanished"], 20)
        self.assertEqual(seen["opened"], seen["ended"] + seen["vanished"])
        self.assertGreater(seen["vanished_us"]["count"], 0)

    def test_streams_resume_after_cuts_and_each_frame_has_its_row_once(self):
        service = self.service(PIPELINE.format(slots=20))
        code, (seen,), errors = self.run_bench(service, "--streams", "20", "--worker", "answer", "--cut", "2/s", "--commit", "500ms",
                                               "--messages", "1", "--threads", "2", "--duration", "4s")
        self.assertEqual((code, errors, seen["whole"], seen["broken"]), (0, "", True, 0), seen)
        self.assertGreater(seen["cuts"], 80)  # 164 on average
        self.assertGreaterEqual(seen["resumed"], seen["cuts"] - 20)  # a cut may come before its stream is back
        self.assertEqual((seen["reopened"], seen["packets"]), (0, seen["worker"]["rows"]))
        for times in ("cut_to_resumed_us", "cut_to_result_us"):
            self.assertEqual(set(seen[times]), QUANTILES)
            self.assertGreater(seen[times]["count"], 80)

    def test_all_connections_can_be_cut_at_once(self):
        service = self.service(PIPELINE.format(slots=20))
        code, (seen,), errors = self.run_bench(service, "--streams", "20", "--worker", "answer", "--cut", "all@200ms")
        self.assertEqual((code, errors, seen["cuts"], seen["resumed"]), (0, "", 20, 20), seen)

    def test_a_run_with_streams_that_do_not_come_back_is_not_whole(self):
        service = self.service(PIPELINE.format(slots=4))
        running = Process(MILLRACE, "bench", "--json", "--url", f"ws://127.0.0.1:{service.port}", "--streams", "4",
                          "--cut", "all@1s", "--duration", "2s")
        self.addCleanup(running.kill)
        wait_for(lambda: len(service.streams()) == 4, "its streams to be open")
        service.kill()
        code, (seen,) = running.wait(), map(json.loads, running.lines)
        self.assertEqual((code, seen["broken"], seen["why"], seen["whole"]), (1, 4, "not resumed in time", False))

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
        service = self.service(PIPELINE.format(slots=1) + 'worker_wait = "1s"\n')
        code, lines, errors = bench("--url", f"ws://127.0.0.1:{service.port}", "--ramp", "1s", "--streams", "1")
        self.assertEqual(code, 1)
        self.assertIn("no result to measure", errors)

    def test_a_service_that_dies_during_a_run_ends_and_fails_the_run(self):
        service = self.service(PIPELINE.format(slots=4))
        running = Process(MILLRACE, "bench", "--json", "--url", f"ws://127.0.0.1:{service.port}", "--server-pid",
                          str(service.process.pid), "--streams", "4", "--duration", "6s")
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
                            (("--worker-device", "cuda:0"), "--worker-device: needs --worker"),
                            (("--cut", "often"), '--cut: "often" must be a rate such as 0.1/s, or all@5s'),
                            (("--cut", "1/s", "--url", "tcp://localhost:1"), "--cut, --resume: need --speak millrace and a ws://"),
                            (("--resume", "--speak", "openai"), "--cut, --resume: need --speak millrace and a ws://")):
            with self.subTest(wrong):
                code, _, errors = bench(*wrong)
                self.assertEqual(code, 1)
                self.assertIn(words, errors)


if __name__ == "__main__":
    unittest.main()
