#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts Triton on loopback, streams to its sequence batcher, and ends it.

  bench/peers/triton/run.py --streams 500 600 700        a line of JSON for each
  bench/peers/triton/run.py --streams 64 --vanish 20     how long a disconnected client keeps its place

Arguments after -- are those of the load; build/peers/triton/sequence_load --help lists them.
"""

import argparse
import contextlib
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
STRATEGIES = {
    "oldest": "oldest {{ max_candidate_sequences: {slots} preferred_batch_size: [ 64 ]"
              " max_queue_delay_microseconds: {delay} }}",
    "direct": "direct {{ max_queue_delay_microseconds: {delay} minimum_slot_utilization: 0.0 }}",
}


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def write_models(args, directory):
    """A repository of one model, with its backend beside it."""
    model = directory / "chunks"
    (model / "1").mkdir(parents=True)
    shutil.copy(args.cache / "libtriton_chunks.so", model)
    strategy = STRATEGIES[args.strategy].format(slots=args.slots, delay=args.max_wait_us)
    text = (HERE / "config.pbtxt").read_text()
    text = text.replace("@IDLE@", str(args.idle_ms * 1000)).replace("@STRATEGY@", strategy)
    (model / "config.pbtxt").write_text(text)


@contextlib.contextmanager
def triton(args, directory):
    """(process, gRPC port) of a server that is ready."""
    write_models(args, directory / "models")
    grpc, http = free_ports(2)
    program, = args.cache.glob("venv/lib/python3*/site-packages/pytriton/tritonserver/bin/tritonserver")
    log = directory / "log"
    process = subprocess.Popen(
        [program, f"--model-repository={directory / 'models'}", f"--backend-directory={directory}",
         "--grpc-address=127.0.0.1", f"--grpc-port={args.port or grpc}",
         "--http-address=127.0.0.1", f"--http-port={http}", "--allow-metrics=false",
         *args.server_option],
        stdout=log.open("w"), stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 30
        while not ready(http):
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"Triton does not start:\n{log.read_text()[:2000]}")
            time.sleep(0.05)
        yield process, args.port or grpc
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:  # Triton waits for sequences that have not ended
            process.kill()
            process.wait()


def run_load(command, streams, server):
    """The exit code of the load. If Triton ends, prints that and ends the load."""
    with subprocess.Popen([*command, f"--streams={streams}"]) as load:
        try:
            while load.poll() is None:
                if server.poll() is not None:
                    print(f'{{"streams":{streams},"server_ended_by":{-server.returncode}}}')
                    return 1
                time.sleep(0.1)
        finally:
            load.kill()
    return load.returncode


def ready(port):
    with contextlib.suppress(urllib.error.URLError, ConnectionError):
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=1).status == 200
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--streams", type=int, nargs="+", default=[500])
    parser.add_argument("--vanish", type=int, help="number of clients that disconnect, in turn")
    parser.add_argument("--strategy", choices=STRATEGIES, default="oldest")
    parser.add_argument("--slots", type=int,
                        help="sequences at a time (oldest); default: 4096, with --vanish the number of streams")
    parser.add_argument("--max-wait-us", type=int, default=2000, help="how long a batch waits for more requests")
    parser.add_argument("--idle-ms", type=int, default=5000, help="silence after which a sequence is dropped")
    parser.add_argument("--port", type=int, help="gRPC port; default: a free one")
    parser.add_argument("--cache", type=pathlib.Path, default=HERE.parents[2] / "build/peers/triton")
    parser.add_argument("--server-option", action="append", default=[], help="option of tritonserver")
    parser.add_argument("load", nargs="*", help="arguments of the load, after --")
    args = parser.parse_args()
    args.slots = args.slots or (args.streams[0] if args.vanish else 4096)

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # otherwise Triton would keep running
    subprocess.run([HERE / "setup", args.cache], check=True)
    code = 0
    with tempfile.TemporaryDirectory(prefix="triton-") as directory, \
            triton(args, pathlib.Path(directory)) as (process, port):
        load = [args.cache / "sequence_load", f"--target=127.0.0.1:{port}",
                f"--server-pid={process.pid}", *args.load]
        if args.vanish:
            load.append(f"--vanish={args.vanish}")
        for streams in args.streams:
            code = max(code, run_load(load, streams, process))
            if process.poll() is not None:
                break
    sys.exit(code)


if __name__ == "__main__":
    main()
