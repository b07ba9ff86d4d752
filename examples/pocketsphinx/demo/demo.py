# SPDX-License-Identifier: Apache-2.0
"""Streams Debian's five LibriVox utterances at the same time, in real time, through the service to one
worker. Compares the results with those of the same decoder without Millrace. Exit status 0: every
final hypothesis is the same."""

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

from measures import Metrics, quantile, word_errors
from processes import Failure, Processes, stop

SPEECH = "/usr/share/pocketsphinx/test/data/librivox"
STAGES = ["chunk", "batch", "copy", "handover", "compute", "result"]
CHUNK = 1600  # frames: 100 ms; the same as `piece` in direct.cpp, so that the scores are the same
WIDTH = min(shutil.get_terminal_size((80, 24)).columns, 100)

CONFIGURATION = """\
[listen]
websocket = "127.0.0.1:{websocket}"
zeromq = "off"
admin = "127.0.0.1:{admin}"
workers = "unix:{folder}/workers.sock"
try_page = true

[[pipeline]]
name = "default"
rate = 16000
slots = 8
chunk = {{ size = {chunk} }}
batch = {{ rows = 8, max_wait = "10ms" }}
"""


def utterances():
    """Returns {number ("0870"): (file, the words that are read in it)}."""
    found = {}
    with open(os.path.join(SPEECH, "transcription"), encoding="ascii") as lines:
        for line in lines:
            words, name = line.strip().rstrip(")").split(" (")
            path = os.path.join(SPEECH, name + ".wav")
            found[name[-4:]] = path, words.replace("<s>", "").replace("</s>", "").strip()
    return found


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


def decode_directly(build, speech):
    """Returns {number: the result of the decoder without Millrace}."""
    begun = time.monotonic()
    direct = os.path.join(build, "examples/pocketsphinx/pocketsphinx_direct")
    files = [path for path, _ in speech.values()]
    run = subprocess.run([direct, *files], check=False, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if run.returncode:
        raise Failure(run.stderr.strip())
    decoded = [json.loads(line) for line in run.stdout.splitlines()]
    print_status("reference", f"the five utterances, decoded directly in {time.monotonic() - begun:.1f} s")
    return {number: {key: each[key] for key in ("final", "score")}
            for number, each in zip(speech, decoded)}


class Running:
    """The service, and a decoder that is attached to it."""

    def __init__(self, build, folder, processes):
        self._processes = processes
        websocket, admin = free_ports(2)
        self.url = f"ws://127.0.0.1:{websocket}"
        self._admin = f"http://127.0.0.1:{admin}"
        config = os.path.join(folder, "millrace.toml")
        with open(config, "w", encoding="ascii") as file:
            file.write(CONFIGURATION.format(websocket=websocket, admin=admin, folder=folder,
                                            chunk=CHUNK))

        self.millrace = os.path.join(build, "service/millrace")
        self._service = processes.start("service", [self.millrace, "serve", "--config", config])
        wait_until(lambda: fetch(self._admin + "/livez"), processes, 10, "the service")
        print_status("service", f"{self.url}/v1/stream, {self._admin}/metrics")
        print_status("pages", f"{self._admin}/ shows what the service does; "
                              f"{self.url.replace('ws', 'http')}/ streams your microphone")

        worker = os.path.join(build, "examples/pocketsphinx/pocketsphinx_worker")
        self._decoder = processes.start(
            "decoder", [worker, "--url", f"unix:{folder}/workers.sock", "--warm", "5"])
        wait_until(lambda: processes.log("decoder") and self.metrics().sum("millrace_workers"),
                   processes, 60, "the decoder")
        print_status("decoder", processes.log("decoder").strip())

    def metrics(self):
        return Metrics(fetch(self._admin + "/metrics") or "")

    def stop(self):
        for name, process in ("decoder", self._decoder), ("service", self._service):
            if stop(process, grace=30):
                raise Failure(f"the {name} did not end cleanly ({process.returncode}):\n"
                              + self._processes.log(name, last=12))


def stream_all(running, speech, processes):
    """Streams all files at once in real time, and prints the results. Returns {number: final hypotheses}."""
    begun = time.monotonic()
    client = processes.start(
        "client", [running.millrace, "stream", "--realtime", "--url", running.url,
                   *(path for path, _ in speech.values())], stdout=subprocess.PIPE, text=True)
    finals = {number: [] for number in speech}
    shown = dict.fromkeys(speech, "")
    for line in client.stdout:
        message = json.loads(line)
        number = message["file"][-8:-4]
        if message["type"] == "error" or "error" in message:
            processes.check()  # a process that ended is the likely reason
            raise Failure(f"{number}: {line.strip()}")
        answer = message.get("data") or {}
        if "final" in answer:
            finals[number].append(answer)
            show(time.monotonic() - begun, number, answer["final"], final=True)
        elif answer.get("partial", shown[number]) != shown[number]:
            shown[number] = answer["partial"]
            show(time.monotonic() - begun, number, answer["partial"])
    client.wait()
    processes.check()
    return finals


def show(seconds, number, text, final=False):
    head = f"{seconds:5.1f} s  {number}  {'=' if final else ' '} "
    space = WIDTH - len(head)
    print(head + (text if len(text) <= space else "..." + text[3 - space:]), flush=True)


def paragraph(head, text):
    print(textwrap.fill(text, WIDTH, initial_indent=f"{head:<18}", subsequent_indent=" " * 18))


def report_words(speech, finals):
    wrong, words = 0, 0
    for number, (_, reference) in speech.items():
        recognised = " ".join(each["final"] for each in finals[number])
        errors = word_errors(reference, recognised)
        wrong, words = wrong + errors, words + len(reference.split())
        paragraph(f"{number}  recognised", recognised)
        paragraph("      read", reference)
        paragraph("", f"{errors} of {len(reference.split())} words wrong")
    print(f"\nword error rate {wrong / words:.1%} ({wrong} of {words} words)")


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


def compare(direct, finals):
    """Prints the differences between direct and streamed results. Returns whether there are none."""
    different = [number for number in direct if finals[number] != [direct[number]]]
    for number in different:
        print(f"\n{number} differs:\n  directly  {direct[number]}\n  streamed  {finals[number]}")
    if not different:
        print("\nEvery final hypothesis, with its score, is the same as without Millrace.")
    return not different


def demo(build):
    speech = utterances()
    with tempfile.TemporaryDirectory(prefix="millrace-demo-") as folder, \
            Processes(folder) as processes:
        direct = decode_directly(build, speech)
        running = Running(build, folder, processes)
        print("\nPartial results as they arrive; '=' marks final ones:\n")
        finals = stream_all(running, speech, processes)
        metrics = running.metrics()
        running.stop()
    print()
    report_words(speech, finals)
    report_times(metrics)
    return compare(direct, finals)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("build", help="build folder, such as build/release")
    # SIGTERM acts as Ctrl-C: the demo stops all processes that it has started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return 0 if demo(os.path.abspath(options.parse_args().build)) else 1
    except Failure as failure:
        print(f"\ndemo: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ndemo: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
