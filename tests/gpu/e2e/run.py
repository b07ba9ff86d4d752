# SPDX-License-Identifier: Apache-2.0
"""What all variants do: start a service and workers, put load on them, and check what they report."""
import asyncio
import collections
import contextlib
import json
import subprocess
import sys
import time

import ramp
from processes import PATIENCE, ClientProcess, Failed, Service, Skipped, Worker, wait_for

_WATCH = 0.02  # seconds between two looks at the processes
_KEYS = 10_000  # streams of a client process, at most
_COUNTED = 10  # seconds; the service counts what has happened once a second
# `slots` is more than the streams of any load, because the slot of a stream is free only some time after its end.
_PIPELINE = """[[pipeline]]
name = "{name}"
dtype = "{name}"
slots = {slots}
worker_wait = "1min"
chunk = {{ size = {size}, left = {left}, right = {right} }}
batch = {{ rows = {rows}, row_buckets = [{few}, {rows}] }}
"""


class Run:
    """One run of a variant. `few` and `many` are numbers of streams."""

    def __init__(self, folder, device, simulated, seconds, show):
        """`show(holds, condition)` receives each condition that was checked."""
        self.folder, self.device, self.simulated, self.seconds, self.show = folder, device, simulated, seconds, show
        small = simulated or device == "host"
        self.few, self.many, self.rows = (8, 16, 8) if small else (64, 256, 64)
        self.on_gpu = not small
        self.length = 0.5 if small else 2  # seconds of a stream
        self.client_processes = 1 if small else 4
        self.first_key = 0
        self.passed, self.figures, self.processes, self.outcomes = True, {}, [], []

    def check(self, holds, condition):
        self.passed &= bool(holds)
        self.show(holds, condition)

    def goal(self, figure, spread, most):
        """Prints a figure with its goal, as gpu_bench does. A figure that misses its goal fails nothing."""
        if self.on_gpu and spread:
            print(json.dumps({"section": "e2e", "figure": figure, "value": spread["p50"], "unit": "us", "goal": f"at most {most}",
                              "ok": spread["p50"] <= most}, separators=(",", ":")), flush=True)

    def service(self, copies=True, more=""):
        """Starts a service with the pipelines f32 and s16, and `more`. `copies`: it must copy to the device, else it must not."""
        devices = f'["{self.device}"]' if copies and self.device != "host" else '"host"'
        pipelines = "".join(_PIPELINE.format(name=name, slots=2 * self.many, size=ramp.SIZE, left=ramp.LEFT, right=ramp.RIGHT,
                                             rows=self.rows, few=self.rows // 4) for name in ("f32", "s16")) + more
        try:
            service = Service(self.folder, f"[gpu]\ndevices = {devices}\n" + pipelines)
        except Failed:
            program = "import sys, torch; sys.exit(not torch.cuda.is_available())"
            if self.on_gpu and subprocess.run([sys.executable, "-c", program], capture_output=True).returncode:
                raise Skipped("PyTorch has no CUDA device") from None
            raise
        self.processes.append(service)
        return service

    def worker(self, service, pipeline="f32", *arguments, device=None):
        """Starts a worker, which attaches later."""
        arguments = ("--pipeline", pipeline, "--device", device or self.device, *arguments)
        worker = Worker(service, *arguments, *(["--simulated"] if self.simulated else []))
        self.processes.append(worker)
        return worker

    def workers(self, service, *arguments):
        """Workers of these pipelines and options, when all have attached."""
        workers = [self.worker(service, *each) for each in arguments]
        for worker in workers:
            worker.await_attached()
        return workers

    def load_beside(self, clients, action):
        """Real time load of a few streams on f32 for the run's time, by clients in this process, beside a coroutine."""
        asyncio.run(self._both(clients.load("f32", self.few, self.seconds, self.length, 1), action))
        self.outcomes.append(clients.outcome())

    def load(self, service, *phases):
        """Load by client processes. Each phase is (workers, pipeline, streams, pace) and has the same part of the run's time.
        Checks the figures of its workers. Returns the number of batches."""
        batches = 0
        for workers, pipeline, streams, pace in phases:
            self._run_clients(service, pipeline, streams // self.client_processes, self.seconds / len(phases), pace)
            for number, worker in enumerate(workers):
                figures = worker.figures()
                batches += figures["batches"]
                speed = "real time" if pace else "full load"
                self.check_figures(f"{pipeline}, {streams} streams, {speed}, worker {number}", figures)
        return batches

    def _run_clients(self, service, pipeline, streams, seconds, pace):
        running = []
        for _ in range(self.client_processes):
            self.first_key += _KEYS
            running.append(ClientProcess(service.clients, self.first_key, pipeline, streams, seconds, self.length, pace))
            self.processes.append(running[-1])
        while any(process.process.poll() is None for process in running):
            self._look()
            time.sleep(_WATCH)
        self._look()
        self.outcomes += [process.outcome() for process in running]

    async def _both(self, *work):
        working = {asyncio.ensure_future(each) for each in work}
        while working:
            done, working = await asyncio.wait(working, timeout=_WATCH)
            for each in done:
                each.result()
            self._look()

    def _look(self):
        """Fails if a process has died."""
        for process in self.processes:
            if process.dead():
                raise Failed(f"a process has ended with {process.process.returncode}: {process.last_words()}")

    def check_answers(self):
        """Every row has its answer, and every answer is right."""
        errors = collections.Counter()
        for outcome in self.outcomes:
            errors.update(outcome["errors"])
        rows, streams = (sum(outcome[name] for outcome in self.outcomes) for name in ("rows", "streams"))
        wrong = "".join(f"; {count} x {error}" for error, count in errors.items())
        self.check(not wrong and streams, f"{rows} answers to {streams} streams are right{wrong}")
        self.figures.update(rows=rows, streams=streams)

    def check_figures(self, name, figures, lost=False):
        """The batches of a worker. `lost`: batches may be lost with the service."""
        self.figures[name] = figures
        wrong = figures["damaged"] or figures["copied"] or (figures["lost"] and not lost)
        self.check(not wrong, "{}: {batches} batches, {damaged} damaged values, {copied} copied or allocated by PyTorch, {lost} lost"
                   .format(name, **figures))

    def finish(self, *workers):
        """Ends workers whose streams have ended, and checks the figures since they reported. Returns the number of batches."""
        batches = 0
        for number, worker in enumerate(workers):
            for figures in worker.finish():
                batches += figures["batches"]
                if figures["batches"]:
                    self.check_figures(f"at the end, worker {number}", figures)
        return batches

    def check_copies(self, service, batches):
        """The service has copied each batch to the device, and no worker has."""
        if self.device == "host":
            return

        def copies():
            return service.metrics().get("millrace_h2d_copies_total", 0)

        with contextlib.suppress(Failed):
            wait_for(lambda: copies() == batches, "the copies to be counted", _COUNTED)
        self.check(copies() == batches, f"the service has copied {copies():.0f} of {batches} batches to the device")
        worried = [line for line in service.errors if "worker copies from host memory" in line]
        self.check(not worried, f"no worker copies from host memory{': ' + worried[0] if worried else ''}")
        self.figures["copy_mean_us"] = service.mean_us("millrace_h2d_copy_duration_seconds")

    def stop(self, service):
        """Ends the service as systemd does."""
        code = service.end()
        self.check(code == 0, f"the service ends with {code}")

    def close(self):
        """Kills what still runs."""
        running = [process.process for process in self.processes if process.process.poll() is None]
        for process in running:
            process.kill()
        for process in running:
            process.wait(PATIENCE)
