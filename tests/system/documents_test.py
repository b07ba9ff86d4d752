# SPDX-License-Identifier: Apache-2.0
"""The programs in documents, run as they are printed, do what the documents promise. A program takes its settings (an
address, a file) from its arguments or environment."""
import array
import ast
import functools
import itertools
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

from harness import PATIENCE, Process, SystemTest, read_all, run, samples, wait_for
from speech_formats import opus_packets
from worker_faults import REMOTE

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import printed_programs as printed  # noqa: E402

PYTHON = os.environ["PYTHON"]  # has the packages millrace, zmq, and flatbuffers, which onnxruntime brings
COMPILED = Path(os.environ["PRINTED_PROGRAMS"])  # those in C++, built against the installed library
PROGRAMS = printed.programs()
TESTED = {"worker_graph", "client_flatbuffers_code", "telephone_client", "opus_client", "client_resume"}  # run without a decorator, or by clients/lost_lines_test
TESTED |= {f"deploy_{name}" for name in "demo tls demo_tls stop_decoder start_decoder gpu images gpu_images kubernetes package package_try worker".split()}  # by packaging, image, hardening_test
TESTED |= {"try_page", "try_page_elsewhere", "quickstart_recogniser", "in_process", "drawn_sizes", "worker_check"}  # by try_commands_test, installed_test, rules_test, examples
TESTED |= {"protocols_openai", "protocols_deepgram", "transcripts_segments", "transcripts_client", "models_worker", "models_test", "worker_onnx", "worker_messages", "worker_pending", "worker_hot_words"}  # by clients/openai_sdk_test, clients/deepgram_sdk_test, transcripts_test, models_test, guide_workers_test
TESTED |= {f"hardening_{name}" for name in "tunnel files certificate tls tokens tenants client resume public admin credentials renewal scan".split()} | {f"recording_{name}" for name in "ls export find replay rm python returnn lhotse".split()}  # by tunnel_test, hardening_test, recording_guide_test
TESTED |= {f"training_{name}" for name in "split convert targets loop labels chunks processes skip resume ddp server served object augment plan stats torch tf returnn".split()}  # the recipes: by recipes_test
TESTED |= {f"recipe_{name}" for name in "log_mel spec_augment noise accumulation iterator jax states mirrored lightning trainer".split()}


def runs(name):
    """Decorates a test. The test gets the command that runs this program."""
    def with_command(test):
        TESTED.add(name)

        @functools.wraps(test)
        def tested(self):
            test(self, command(PROGRAMS[name]))
        return tested
    return with_command


def command(program):
    return {"python": lambda: [PYTHON, "-c", program.text],
            "cpp": lambda: [str(COMPILED / program.name)],
            "sh": lambda: ["/bin/sh", "-euc", program.text, program.name]}[program.language]()


def s16(*runs_of_values):
    """The bytes of runs of equal s16 values: (value, count)."""
    return b"".join(array.array("h", [value] * count).tobytes() for value, count in runs_of_values)


class Programs(SystemTest):
    @classmethod
    def setUpClass(cls):
        """Makes the code that flatc generates from the schema, so that it can be imported."""
        super().setUpClass()
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        os.symlink(printed.ROOT / "schemas", Path(folder) / "schemas")
        subprocess.run(command(PROGRAMS["client_flatbuffers_code"]), cwd=folder, check=True)
        cls.enterClassContext(unittest.mock.patch.dict(os.environ, PYTHONPATH=folder))

    def started(self, *arguments, stdin=None, **environment):
        process = Process(*arguments, environment=environment, stdin=stdin)
        if stdin:
            self.addCleanup(process.process.stdin.close)
        self.addCleanup(process.kill)
        return process

    def worker(self, service, program, url=None):
        """Starts a worker, and waits until it is attached."""
        before = service.attached()
        worker = self.started(*program, MILLRACE_WORKERS=url or service.workers)
        wait_for(lambda: service.attached() > before or worker.process.poll() is not None, "the worker to attach")
        self.assertIsNone(worker.process.poll(), worker.errors)
        return worker

    def output(self, *arguments, given=b""):
        """The lines that a program prints until it ends with exit code 0."""
        ended = subprocess.run(arguments, input=given, capture_output=True, timeout=PATIENCE)
        self.assertEqual(ended.returncode, 0, ended.stderr.decode())
        return ended.stdout.decode().splitlines()

    def answers(self, service, frames):
        """The answers of a worker to the rows of a stream of these frames."""
        async def stream():
            async with service.connect() as connection:
                await connection.send(frames)
                await connection.send('{"type":"end"}')
                return (await read_all(connection))[0]

        return [message.get("data") for message in run(stream()) if message["type"] == "result"]

    def printed_by_client(self, *client, frames):
        """The lines that a client prints. It gets the first 0.1 s of the frames, and the rest after its first line."""
        process = Process(*client, stdin=subprocess.PIPE)
        self.addCleanup(process.kill)
        with process.process.stdin as stdin:
            stdin.buffer.write(frames[:3200])
            stdin.flush()
            wait_for(lambda: process.lines or process.process.poll() is not None, "a result of what was sent")
            stdin.buffer.write(frames[3200:])
        self.assertEqual(process.wait(), 0, process.errors)
        return process.lines

    def over(self, client, **urls):
        """A client streams 4000 frames, and prints the begin and the end of each answered row."""
        for transport, url in urls.items():
            with self.subTest(transport):
                lines = self.printed_by_client(*client, url, frames=samples(0, 4000))
                self.assertEqual([[float(word) for word in line.split()[:2]] for line in lines],
                                 [[0, 0.1], [0.1, 0.2], [0.2, 0.25]])

    def tapped(self):
        """A service with a tap as its worker."""
        service = self.service()
        self.tap(service)
        return service

    @runs("readme_client")
    def test_the_client_of_the_readme_gets_its_results(self, client):
        self.over(client, **self.tapped().addresses())

    def power_of_two_streams(self, worker):
        """A worker answers with the mean power of the stream so far, for two streams one after the other in one slot."""
        service = self.service()
        self.worker(service, worker)
        for _ in range(2):
            self.assertEqual(self.answers(service, s16((300, 1600), (-400, 1600), (0, 800))), [90000, 125000, 100000])

    @runs("client_websockets")
    def test_a_client_without_a_library_gets_its_results(self, client):
        self.over(client, websocket=f"ws://127.0.0.1:{self.tapped().port}")

    @runs("client_flatbuffers")
    def test_a_client_with_code_generated_by_flatc_gets_its_results(self, client):
        self.over(client, zeromq=self.tapped().addresses()["zeromq"])

    @runs("client_asyncio")
    def test_the_asyncio_client_gets_its_results_over_each_transport(self, client):
        self.over(client, **self.tapped().addresses())

    @runs("client_threads")
    def test_the_client_of_two_threads_gets_its_results_over_each_transport(self, client):
        self.over(client, **self.tapped().addresses())

    @runs("client_cpp")
    def test_the_client_in_cpp_gets_its_results_over_each_transport(self, client):
        self.over(client, **self.tapped().addresses())

    def test_the_clients_of_telephones_and_of_opus_print_results(self):
        packets = opus_packets([1000] * 2240, 16000)
        opus = b"".join(struct.pack(">H", len(packet)) + packet for packet in packets)
        path = Path(self.enterContext(tempfile.TemporaryDirectory())) / "audio"
        for name, content, end in (("telephone_client", b"\xff" * 1400, 0.175), ("opus_client", opus, 0.14)):
            path.write_bytes(content)
            for url in self.tapped().addresses().values():
                with self.subTest(name, url=url):
                    lines = self.output(*command(PROGRAMS[name]), url, path)
                    self.assertEqual([[float(word) for word in line.split()[:2]] for line in lines], [[0, 0.1], [0.1, end]])

    @runs("readme_worker")
    def test_the_worker_of_the_readme_answers_with_the_power_of_the_stream_so_far(self, worker):
        self.power_of_two_streams(worker)

    @runs("worker_python")
    def test_the_worker_in_python_answers_with_the_power_of_the_stream_so_far(self, worker):
        self.power_of_two_streams(worker)

    @runs("worker_cpp")
    def test_the_worker_in_cpp_answers_with_the_power_of_the_stream_so_far(self, worker):
        self.power_of_two_streams(worker)

    def test_the_workers_for_a_device_answer_the_same_on_the_host(self):
        for name in "worker_torch", "worker_graph":
            self.power_of_two_streams([*command(PROGRAMS[name]), "host"])

    @runs("worker_torch")
    def test_the_worker_for_a_device_leaves_at_sigterm(self, worker):
        service = self.service()
        left = self.worker(service, [*worker, "host"])
        self.answers(service, s16((300, 1600)))  # it is in its loop
        self.assertEqual(left.stop(signal.SIGTERM), 0)

    @runs("client_cpp")
    def test_the_client_in_cpp_prints_why_there_is_no_stream(self, client):
        for url in ("ws://127.0.0.1:1", "tcp://127.0.0.1:1", "http://127.0.0.1"):
            ended = subprocess.run([*client, url], input=b"", capture_output=True, timeout=PATIENCE)
            self.assertEqual((ended.returncode, ended.stderr.count(b"\n")), (1, 1), ended.stderr)

    @runs("worker_cpp")
    def test_the_worker_in_cpp_leaves_at_sigterm_and_prints_that_its_service_is_lost(self, worker):
        service = self.service()
        left = self.worker(service, worker)
        self.answers(service, s16((300, 1600)))  # it is in its loop
        self.assertEqual(left.stop(signal.SIGTERM), 0)
        lost = self.worker(service, worker)
        service.stop(signal.SIGKILL)
        self.assertEqual((lost.wait(), len(lost.errors)), (1, 1), lost.errors)

    def every_client(self, service):
        """The command of each client, to be run with this service."""
        for name in ("readme_client", "client_websockets", "client_asyncio", "client_threads", "client_cpp", "client_flatbuffers"):
            transport = "zeromq" if name == "client_flatbuffers" else "websocket"
            yield name, [*command(PROGRAMS[name]), service.addresses()[transport]]

    def test_every_client_ends_when_the_service_ends_its_stream_even_if_its_input_is_silent(self):
        service = self.service('[[pipeline]]\nchunk = { size = 1600 }\nworker_wait = "1s"\n')  # no worker comes
        started = [(name, self.started(*client, stdin=subprocess.PIPE)) for name, client in self.every_client(service)]
        for name, client in started:
            with self.subTest(name):
                self.assertEqual(client.wait(), 1, client.errors)
                self.assertTrue(any("no_worker" in line for line in client.errors), client.errors)
                self.assertNotIn("Traceback (most recent call last):", client.errors)

    def test_every_client_ends_at_the_first_ctrl_c(self):
        service = self.tapped()
        for name, client in self.every_client(service):
            with self.subTest(name):
                process = self.started(*client, stdin=subprocess.PIPE)
                process.process.stdin.buffer.write(samples(0, 1600))
                process.process.stdin.flush()
                wait_for(lambda: process.lines, "a result")
                self.assertNotEqual(process.stop(signal.SIGINT), 0)

    @runs("readme_client")
    def test_the_client_of_the_readme_prints_in_a_line_why_it_has_no_stream(self, client):
        for url in "ws://127.0.0.1:9", "tcp://127.0.0.1:9":
            ended = subprocess.run([*client, url], input=b"", capture_output=True, timeout=PATIENCE)
            self.assertRegex(b"%d: %b" % (ended.returncode, ended.stderr), rb"\A1: .*(Connection refused|no service listens there)\n\Z")

    def test_every_client_receives_the_same_from_every_worker_over_every_transport(self):
        spoken = s16((300, 1600), (-400, 1600), (0, 800))
        for worker, place in itertools.product(("worker_python", "worker_cpp"), ("workers", "workers_remote")):
            service = self.service(extra=REMOTE)
            self.worker(service, command(PROGRAMS[worker]), url=getattr(service, place))
            libraries = itertools.product(("client_asyncio", "client_threads", "client_cpp"), service.addresses().values())
            by_hand = (("client_websockets", f"ws://127.0.0.1:{service.port}"),
                       ("client_flatbuffers", service.addresses()["zeromq"]))
            for client, url in (*libraries, *by_hand):
                with self.subTest(worker=worker, place=place, client=client, url=url):
                    lines = self.printed_by_client(*command(PROGRAMS[client]), url, frames=spoken)
                    self.assertEqual([[float(word) for word in line.split()] for line in lines],
                                     [[0, 0.1, 90000], [0.1, 0.2, 125000], [0.2, 0.25, 100000]])

    def test_printed_sessions_of_the_interpreter_give_the_printed_output(self):
        sessions = [block.text for block in printed.blocks() if block.language == "pycon"]
        self.assertGreater(len(sessions), 0)
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("\n".join(sessions))
            file.flush()
            self.assertEqual(self.output(PYTHON, "-m", "doctest", file.name), [])


class PrintedCommands(SystemTest):
    """Runs printed commands with `millrace` on the PATH."""

    def run_program(self, program, *arguments, **environment):
        path = os.path.dirname(os.environ["MILLRACE"]) + os.pathsep + os.environ["PATH"]
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run([*program, *arguments], env={**os.environ, "PATH": path, **environment}, cwd=folder,
                                  capture_output=True, text=True, timeout=PATIENCE)


class Operations(PrintedCommands):
    """The programs of docs/operations.md."""

    @runs("operations_configuration")
    def test_the_printed_configuration_is_valid(self, program):
        done = self.run_program(program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn('notice = "10s"', done.stdout)

    @runs("operations_probes")
    def test_the_probes_report_whether_the_service_is_ready(self, program):
        service = self.service()
        admin = f"http://127.0.0.1:{service.admin_port}"
        def probe():
            done = self.run_program(program, ADMIN=admin)  # the port closes a connection whose request is late
            return not re.search("reset by peer|Broken pipe", done.stderr) and (done.returncode, done.stderr)

        self.assertEqual(wait_for(probe, "the answers"), (1, f"millrace healthcheck: {admin}/readyz: status 503\n"))
        self.tap(service)
        self.assertEqual(wait_for(probe, "the answers"), (0, ""))

    @runs("operations_reload")
    def test_the_signal_reloads_the_configuration(self, program):
        service = self.service()
        self.assertEqual(self.run_program(program, SERVICE=str(service.process.pid)).returncode, 0)
        wait_for(lambda: [line for line in service.errors if "configuration reloaded" in line], "the reload")

    @runs("operations_stop")
    def test_the_signal_stops_the_service(self, program):
        service = self.service()
        self.assertEqual(self.run_program(program, SERVICE=str(service.process.pid)).returncode, 0)
        self.assertEqual(service.wait(), 0)

    @runs("operations_log")
    def test_the_program_prints_the_last_warnings(self, program):
        service = self.service()
        tap = self.tap(service)
        tap.stop(signal.SIGKILL)
        admin = f"http://127.0.0.1:{service.admin_port}"
        wait_for(lambda: "warning worker lost disconnect" in self.run_program(program, admin).stdout, "the warning")


class Quickstart(PrintedCommands):
    """The programs of docs/quickstart.md."""

    @runs("quickstart_rows")
    def test_the_rows_are_those_printed_below_the_command(self, program):
        done = self.run_program(program)
        (expected,) = [after.text for block, after in itertools.pairwise(printed.blocks()) if block.name == "quickstart_rows"]
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", expected))

    @runs("quickstart_explain")
    def test_each_result_has_its_time_in_each_stage(self, program):
        service = self.service('[[pipeline]]\nchunk = { size = "320ms", left = "80ms", right = "80ms" }\n', extra="explain = true\n")
        self.tap(service)
        done = self.run_program(program, f"ws://127.0.0.1:{service.port}")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
        self.assertEqual([(float(begin), float(end)) for begin, end, _ in lines], [(0, 0.32), (0.32, 0.64), (0.64, 0.96), (0.96, 1)])
        for _, _, times in lines:
            self.assertEqual(list(ast.literal_eval(times)), ["chunk", "batch", "copy", "handover", "compute"])


class Documents(unittest.TestCase):
    def test_every_printed_program_has_a_test_and_every_test_its_program(self):
        self.assertEqual(TESTED, set(PROGRAMS))

    def test_no_document_prints_a_program_that_no_test_runs(self):
        for block in printed.blocks():
            with self.subTest(block.place):
                if block.role == "part of":
                    self.assertIn(block.text, PROGRAMS[block.name].text)
                elif block.role is None:
                    self.assertNotIn(block.language, ("python", "cpp"))


if __name__ == "__main__":
    unittest.main()
