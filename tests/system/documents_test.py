# SPDX-License-Identifier: Apache-2.0
"""The programs that documents print do what is said of them, run as they are printed; and links lead
somewhere. What a program is told (an address, a file) it takes from its arguments or environment."""
import array
import functools
import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

from harness import PATIENCE, Process, SystemTest, read_all, run, samples, wait_for
from worker_faults import REMOTE

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import printed_programs as printed  # noqa: E402

PYTHON = os.environ["PYTHON"]  # has the packages millrace, zmq, and flatbuffers, which onnxruntime brings
COMPILED = Path(os.environ["PRINTED_PROGRAMS"])  # those in C++, built against the installed library
PROGRAMS = printed.programs()
TESTED = {"client_flatbuffers_code"}  # before all others
# Run by tests/packaging and tests/image:
TESTED |= {"readme_compose", "deploy_demo", "deploy_stop_decoder", "deploy_start_decoder", "deploy_gpu", "deploy_images", "deploy_gpu_images",
           "deploy_kubernetes", "deploy_package", "deploy_package_try", "deploy_worker"}
TESTED |= {"try_page", "try_page_elsewhere", "in_process"}  # by try_commands_test, installed_test


def runs(name):
    """The test gets the command that runs this program."""
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
    """(value, count) … as bytes."""
    return b"".join(array.array("h", [value] * count).tobytes() for value, count in runs_of_values)


def doors(service):
    return {"websocket": f"ws://127.0.0.1:{service.port}", "zeromq": f"tcp://127.0.0.1:{service.zeromq_port}"}


def anchors(text):
    """Of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


class Programs(SystemTest):
    @classmethod
    def setUpClass(cls):
        """What flatc makes of the schema can be imported."""
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

    def worker(self, service, program, pipeline="default", url=None):
        """Starts it, and waits until it is attached."""
        worker = self.started(*program, MILLRACE_WORKERS=url or service.workers)
        wait_for(lambda: f"pipeline {pipeline} " not in service.get("/readyz")[1] or worker.process.poll() is not None,
                 "the worker to attach")
        self.assertIsNone(worker.process.poll(), worker.errors)
        return worker

    def output(self, *arguments, given=b""):
        """The lines that a program prints until it ends, which it does well."""
        ended = subprocess.run(arguments, input=given, capture_output=True, timeout=PATIENCE)
        self.assertEqual(ended.returncode, 0, ended.stderr.decode())
        return ended.stdout.decode().splitlines()

    def answers(self, service, frames):
        """What a worker says to the rows of a stream of these frames."""
        async def stream():
            async with service.connect() as connection:
                await connection.send(frames)
                await connection.send('{"type":"end"}')
                return (await read_all(connection))[0]

        return [message.get("data") for message in run(stream()) if message["type"] == "result"]

    def heard(self, *client, frames):
        """The lines that a client prints of what it is given, of the first 0.1 s before the rest comes."""
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
        """A client streams 4000 frames, and prints where the rows lie that were answered."""
        for door, url in urls.items():
            with self.subTest(door):
                lines = self.heard(*client, url, frames=samples(0, 4000))
                self.assertEqual([[float(word) for word in line.split()[:2]] for line in lines],
                                 [[0, 0.1], [0.1, 0.2], [0.2, 0.25]])

    def tapped(self):
        """A service whose worker answers with lines."""
        service = self.service()
        self.tap(service)
        return service

    @runs("readme_client")
    def test_the_client_of_the_readme_gets_its_results(self, client):
        self.over(client, websocket=self.tapped().url())

    def power_of_two_streams(self, worker):
        """The mean power of the stream so far, of two streams one after the other in one slot."""
        service = self.service()
        self.worker(service, worker)
        for _ in range(2):
            self.assertEqual(self.answers(service, s16((300, 1600), (-400, 1600), (0, 800))), [90000, 125000, 100000])

    @runs("client_websockets")
    def test_a_client_without_a_library_gets_its_results(self, client):
        self.over(client, websocket=f"ws://127.0.0.1:{self.tapped().port}")

    @runs("client_flatbuffers")
    def test_a_client_out_of_flatc_s_code_gets_its_results(self, client):
        self.over(client, zeromq=doors(self.tapped())["zeromq"])

    @runs("client_asyncio")
    def test_the_asyncio_client_gets_its_results_over_each_door(self, client):
        self.over(client, **doors(self.tapped()))

    @runs("client_threads")
    def test_the_client_of_two_threads_gets_its_results_over_each_door(self, client):
        self.over(client, **doors(self.tapped()))

    @runs("client_cpp")
    def test_the_client_in_cpp_gets_its_results_over_each_door(self, client):
        self.over(client, **doors(self.tapped()))

    @runs("mulaw")
    def test_the_table_of_mu_law_is_that_of_g_711(self, table):
        (line,) = self.output(*table[:-1], table[-1] + "\nprint(*MULAW)")
        values = [int(value) for value in line.split()]
        self.assertEqual([values[code] for code in (0x00, 0x80, 0x0f, 0x10, 0x7f, 0xff, 0xef, 0xf0)],
                         [-32124, 32124, -16764, -15996, 0, 0, 132, 120])
        self.assertEqual(values[128:], [-value for value in values[:128]])

    @runs("readme_worker")
    def test_the_worker_of_the_readme_answers_with_the_power_of_the_stream_so_far(self, worker):
        self.power_of_two_streams(worker)

    @runs("worker_python")
    def test_the_worker_in_python_does(self, worker):
        self.power_of_two_streams(worker)

    @runs("worker_cpp")
    def test_the_worker_in_cpp_does(self, worker):
        self.power_of_two_streams(worker)

    @runs("worker_torch")
    def test_the_worker_of_a_device_does_on_the_host(self, worker):
        self.power_of_two_streams([*worker, "host"])

    @runs("worker_torch")
    def test_the_worker_of_a_device_leaves_at_sigterm(self, worker):
        service = self.service()
        left = self.worker(service, [*worker, "host"])
        self.answers(service, s16((300, 1600)))  # it is in its loop
        self.assertEqual(left.stop(signal.SIGTERM), 0)

    @runs("client_cpp")
    def test_the_client_in_cpp_says_why_there_is_no_stream(self, client):
        for url in ("ws://127.0.0.1:1", "tcp://127.0.0.1:1", "http://127.0.0.1"):
            ended = subprocess.run([*client, url], input=b"", capture_output=True, timeout=PATIENCE)
            self.assertEqual((ended.returncode, ended.stderr.count(b"\n")), (1, 1), ended.stderr)

    @runs("worker_cpp")
    def test_the_worker_in_cpp_leaves_when_it_is_told_and_says_when_it_is_lost(self, worker):
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
            url = {"readme_client": service.url(), "client_flatbuffers": doors(service)["zeromq"]}.get(name)
            yield name, [*command(PROGRAMS[name]), url or doors(service)["websocket"]]

    def test_every_client_ends_when_the_service_ends_its_stream_though_its_input_is_quiet(self):
        service = self.service('[[pipeline]]\nchunk = { size = 1600 }\nworker_wait = "1s"\n')  # no worker comes
        started = [(name, self.started(*client, stdin=subprocess.PIPE)) for name, client in self.every_client(service)]
        for name, client in started:
            with self.subTest(name):
                self.assertEqual(client.wait(), 1, client.errors)
                self.assertTrue(any("no_worker" in line for line in client.errors), client.errors)
                self.assertNotIn("Traceback (most recent call last):", client.errors)

    def test_every_client_ends_at_the_first_key_that_interrupts(self):
        service = self.tapped()
        for name, client in self.every_client(service):
            with self.subTest(name):
                process = self.started(*client, stdin=subprocess.PIPE)
                process.process.stdin.buffer.write(samples(0, 1600))
                process.process.stdin.flush()
                wait_for(lambda: process.lines, "a result")
                self.assertNotEqual(process.stop(signal.SIGINT), 0)

    @runs("readme_client")
    def test_the_client_of_the_readme_says_that_it_was_refused(self, client):
        ended = subprocess.run([*client, self.service().url(pipeline="none")], input=b"", capture_output=True, timeout=PATIENCE)
        self.assertEqual((ended.returncode, ended.stderr.count(b"\n")), (1, 1), ended.stderr)
        self.assertRegex(ended.stderr, b"404|unknown_pipeline")

    def test_every_client_hears_the_same_of_every_worker_over_every_door(self):
        spoken = s16((300, 1600), (-400, 1600), (0, 800))
        for worker, place in itertools.product(("worker_python", "worker_cpp"), ("workers", "workers_remote")):
            service = self.service(extra=REMOTE)
            self.worker(service, command(PROGRAMS[worker]), url=getattr(service, place))
            libraries = itertools.product(("client_asyncio", "client_threads", "client_cpp"), doors(service).values())
            by_hand = (("client_websockets", f"ws://127.0.0.1:{service.port}"),
                       ("client_flatbuffers", doors(service)["zeromq"]))
            for client, url in (*libraries, *by_hand):
                with self.subTest(worker=worker, place=place, client=client, url=url):
                    lines = self.heard(*command(PROGRAMS[client]), url, frames=spoken)
                    self.assertEqual([[float(word) for word in line.split()] for line in lines],
                                     [[0, 0.1, 90000], [0.1, 0.2, 125000], [0.2, 0.25, 100000]])

    def test_what_is_printed_of_an_interpreter_is_what_it_says(self):
        sessions = [block.text for block in printed.blocks() if block.language == "pycon"]
        self.assertGreater(len(sessions), 0)
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("\n".join(sessions))
            file.flush()
            self.assertEqual(self.output(PYTHON, "-m", "doctest", file.name), [])


class Operations(SystemTest):
    """What docs/operations.md prints, with `millrace` on the PATH."""

    def run_program(self, program, *arguments, **environment):
        path = os.path.dirname(os.environ["MILLRACE"]) + os.pathsep + os.environ["PATH"]
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run([*program, *arguments], env={**os.environ, "PATH": path, **environment}, cwd=folder,
                                  capture_output=True, text=True, timeout=PATIENCE)

    @runs("operations_configuration")
    def test_the_configuration_is_a_good_one(self, program):
        done = self.run_program(program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn('notice = "10s"', done.stdout)

    @runs("operations_probes")
    def test_the_probes_say_whether_it_is_ready(self, program):
        service = self.service()
        admin = f"http://127.0.0.1:{service.admin_port}"
        unready = self.run_program(program, ADMIN=admin)
        self.assertEqual((unready.returncode, unready.stderr), (1, f"millrace healthcheck: {admin}/readyz: status 503\n"))
        self.tap(service)
        self.assertEqual(self.run_program(program, ADMIN=admin).returncode, 0)

    @runs("operations_reload")
    def test_the_signal_reloads(self, program):
        service = self.service()
        self.assertEqual(self.run_program(program, SERVICE=str(service.process.pid)).returncode, 0)
        wait_for(lambda: [line for line in service.errors if "configuration reloaded" in line], "the reload")

    @runs("operations_stop")
    def test_the_signal_stops(self, program):
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


class Documents(unittest.TestCase):
    def test_a_program_is_the_block_right_behind_its_mark(self):
        text = "<!-- run: a -->\n```python\n1\n```\n<!-- run: b -->\n\n```sh\n2\n```\n- x\n  ```cpp\n  3\n    4\n  ```\n"
        self.assertEqual([block[1:] for block in printed.blocks_of(text, "x.md")],
                         [("run", "a", "python", "1\n"), (None, None, "sh", "2\n"), (None, None, "cpp", "3\n  4\n")])

    def test_every_printed_program_has_a_test_and_every_test_its_program(self):
        self.assertEqual(TESTED, set(PROGRAMS))

    def test_no_document_prints_a_program_that_nothing_runs(self):
        for block in printed.blocks():
            with self.subTest(block.place):
                if block.role == "part of":
                    self.assertIn(block.text, PROGRAMS[block.name].text)
                elif block.role is None:
                    self.assertNotIn(block.language, ("python", "cpp"))

    def test_every_mark_stands_right_above_its_program(self):
        for document in printed.documents():
            with self.subTest(document.relative_to(printed.ROOT)):
                text = document.read_text()
                marked = [block for block in printed.blocks_of(text, document) if block.role]
                self.assertEqual(len(re.findall("^ *<!-- (?:run|part of):", text, re.MULTILINE)), len(marked))

    def test_every_link_leads_to_a_file(self):
        for document in printed.documents():
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
                with self.subTest(document=document.relative_to(printed.ROOT), target=target):
                    self.assertTrue((document.parent / target).exists())

    def test_every_link_to_a_heading_finds_it(self):
        for document in printed.documents():
            for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]*)\)", document.read_text()):
                page = document.parent / target if target else document
                if page.suffix == ".md":
                    with self.subTest(document=document.relative_to(printed.ROOT), target=target):
                        self.assertIn(anchor, anchors(page.read_text()))


if __name__ == "__main__":
    unittest.main()
