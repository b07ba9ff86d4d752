# SPDX-License-Identifier: Apache-2.0
"""Streams recorded speech at the same time, in real time, through the service to a speech recogniser. Compares the texts with
the words that were read, and with the texts of the same model without Millrace. Exit status 0: not more words are wrong than
the model alone has wrong in quiet speech."""

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import urllib.error
import urllib.request
import wave

from measures import Metrics, quantile, spoken, word_errors
from processes import Failure, Processes, cpu_seconds, stop
from recognisers import RECOGNISERS

STAGES = ["chunk", "batch", "copy", "handover", "compute", "result"]
WIDTH = min(shutil.get_terminal_size((80, 24)).columns, 100)

CONFIGURATION = """\
[listen]
websocket = "127.0.0.1:{websocket}"
zeromq = "off"
admin = "127.0.0.1:{admin}"
workers = "unix:{folder}/workers.sock"
try_page = true

{pipeline}"""


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def fetch(url):
    """Returns the page, or None if it is not available."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return answer.read().decode()
    except (urllib.error.URLError, OSError):
        return None


def wait_until(condition, processes, seconds, what):
    deadline = time.monotonic() + seconds
    while not condition():
        processes.check()
        if time.monotonic() > deadline:
            raise Failure(f"{what} did not start within {seconds} s")
        time.sleep(0.05)


def print_status(what, text):
    print(f"{what:<10}{text}", flush=True)


class Running:
    """The service, and a worker that is attached to it."""

    def __init__(self, build, folder, processes, recogniser):
        self._processes = processes
        websocket, admin = free_ports(2)
        self.url = f"ws://127.0.0.1:{websocket}"
        self._admin = f"http://127.0.0.1:{admin}"
        config = os.path.join(folder, "millrace.toml")
        with open(config, "w", encoding="ascii") as file:
            file.write(CONFIGURATION.format(websocket=websocket, admin=admin, folder=folder,
                                            pipeline=recogniser.pipeline))

        self.millrace = os.path.join(build, "service/millrace")
        self._service = processes.start("service", [self.millrace, "serve", "--config", config])
        wait_until(lambda: fetch(self._admin + "/livez"), processes, 10, "the service")
        print_status("service", f"{self.url}/v1/stream, {self._admin}/metrics")
        print_status("pages", f"{self._admin}/ shows what the service does; "
                              f"{self.url.replace('ws', 'http')}/ streams your microphone")

        self._worker = processes.start("worker", recogniser.worker(f"unix:{folder}/workers.sock"))
        wait_until(lambda: processes.log("worker") and self.metrics().sum("millrace_workers"),
                   processes, 60, "the worker")
        print_status("worker", processes.log("worker").strip())

    def cpu_seconds(self):
        """Returns the time that the service and the worker have computed so far."""
        return {"service": cpu_seconds(self._service), "worker": cpu_seconds(self._worker)}

    def metrics(self):
        return Metrics(fetch(self._admin + "/metrics") or "")

    def stop(self):
        for name, process in ("worker", self._worker), ("service", self._service):
            if stop(process, grace=30):
                raise Failure(f"the {name} did not end cleanly ({process.returncode}):\n"
                              + self._processes.log(name, last=12))


def stream_all(running, speech, processes):
    """Streams all files at once in real time, and prints the texts as they come. Returns {name: [(begin, end, final text)]}, in
    frames."""
    begun = time.monotonic()
    client = processes.start(
        "client", [running.millrace, "stream", "--json", "--realtime", "--url", running.url,
                   *(path for path, _ in speech.values())], stdout=subprocess.PIPE, text=True)
    names = {path: name for name, (path, _) in speech.items()}
    segments = {name: [] for name in speech}
    begins = dict.fromkeys(speech, 0)
    shown = dict.fromkeys(speech, "")
    for line in client.stdout:
        message = json.loads(line)
        name = names[message["file"]]
        if message["type"] == "error" or "error" in message:
            processes.check()  # a process that ended is the likely reason
            raise Failure(f"{name}: {line.strip()}")
        answer = message.get("data")
        if not answer:
            continue
        text = answer["text"]
        if answer.get("final"):
            segments[name].append((begins[name], message["end"], text))
            begins[name], shown[name] = message["end"], ""
            if text:
                show(time.monotonic() - begun, name, text, final=True)
        elif text != shown[name]:
            shown[name] = text
            show(time.monotonic() - begun, name, text)
    client.wait()
    processes.check()
    return segments


def show(seconds, name, text, final=False):
    head = f"{seconds:5.1f} s  {name:<10}  {'=' if final else ' '} "
    space = WIDTH - len(head)
    print(head + (text if len(text) <= space else "..." + text[3 - space:]), flush=True)


def paragraph(head, text):
    print(textwrap.fill(text, WIDTH, initial_indent=f"{head:<19}", subsequent_indent=" " * 19))


def report_words(speech, segments):
    """Prints the texts. Returns the word error rate of those whose words are known."""
    wrong, words = 0, 0
    for name, (_, reference) in speech.items():
        recognised = " ".join(text for *_, text in segments[name])
        paragraph(f"{name:<10}   text", recognised)
        if reference:
            errors = word_errors(reference, spoken(recognised))
            wrong, words = wrong + errors, words + len(reference.split())
            paragraph("             read", reference)
            paragraph("", f"{errors} of {len(reference.split())} words wrong")
    print(f"\nword error rate {wrong / words:.1%} ({wrong} of {words} words)")
    return wrong / words


def report_cpu(seconds, before, after):
    used = {name: (after[name] - before[name]) / seconds for name in after}
    print(f"{'CPU':<16}" + ", ".join(f"{name} {cores:.1%}" for name, cores in used.items())
          + f" of one core; this machine has {os.cpu_count()}")


def report_times(metrics):
    def figure(q, buckets):
        seconds = quantile(q, buckets)
        above = len(buckets) > 1 and seconds == buckets[-2][0]  # the last finite bound
        return f"{'> ' if above else ''}{1000 * seconds:.2f} ms"

    def line(name, buckets):
        print(f"{name:<16}{figure(0.5, buckets):>15}{figure(0.99, buckets):>15}")

    rows, batches = metrics.sum("millrace_batch_rows_total"), metrics.sum("millrace_batches_total")
    marks = metrics.sum("millrace_batch_marks_total")
    print(f"rows per batch  {rows / max(batches, 1):.1f} "
          f"({rows:.0f} rows and {marks:.0f} markers in {batches:.0f} batches)\n")
    print(f"{'stage':<16}{'p50':>15}{'p99':>15}")
    for stage in STAGES:
        line(stage, metrics.buckets("millrace_queue_wait_seconds", stage=stage))
    line("chunk-to-result", metrics.buckets("millrace_result_latency_seconds"))


def rate_of(path):
    with wave.open(path) as file:
        return file.getframerate()


def compare(recogniser, speech, segments):
    """Prints how many final texts are those of the same model without Millrace, and the others. (It leaves out files of another
    rate, which the service converts.)"""
    compared, different = 0, []
    for name, (path, _) in speech.items():
        if rate_of(path) == 16000:
            alone = recogniser.alone(path, [(begin, end) for begin, end, _ in segments[name]])
            streamed = [text for *_, text in segments[name]]
            compared += len(streamed)
            different += [(name, *pair) for pair in zip(alone, streamed) if pair[0] != pair[1]]
    print(f"\n{compared - len(different)} of {compared} final texts of files at 16 kHz are the same as without Millrace.")
    for name, without, streamed in different:
        print(f"{name} differs:\n  without Millrace  {without}\n  streamed          {streamed}")


def demo(build, recogniser):
    """Returns whether the texts are as good as the recogniser's should be."""
    with tempfile.TemporaryDirectory(prefix="millrace-demo-") as folder, \
            Processes(folder) as processes:
        speech = recogniser.speech(folder)
        running = Running(build, folder, processes, recogniser)
        print("\nTexts as they arrive; '=' marks final ones:\n")
        begun, before = time.monotonic(), running.cpu_seconds()
        segments = stream_all(running, speech, processes)
        seconds, after = time.monotonic() - begun, running.cpu_seconds()
        metrics = running.metrics()
        running.stop()
        print()
        error_rate = report_words(speech, segments)
        report_times(metrics)
        report_cpu(seconds, before, after)
        compare(recogniser, speech, segments)
    if error_rate > recogniser.worst:
        print(f"\nThe word error rate should be at most {recogniser.worst:.0%}.")
    return error_rate <= recogniser.worst


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("build", help="build folder, such as build/release")
    options.add_argument("--model", choices=RECOGNISERS, default="moonshine", help="recogniser (default: moonshine)")
    chosen = options.parse_args()
    # SIGTERM acts as Ctrl-C: the demo stops all processes that it has started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    build = os.path.abspath(chosen.build)
    try:
        return 0 if demo(build, RECOGNISERS[chosen.model](build)) else 1
    except Failure as failure:
        print(f"\ndemo: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ndemo: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
