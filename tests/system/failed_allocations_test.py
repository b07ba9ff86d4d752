# SPDX-License-Identifier: Apache-2.0
"""Fails one allocation of the service, for each eighth allocation of a short scenario, from a random one on. The service
continues and serves other streams, or it ends with one line. It is never killed by a signal, and never hangs."""
import concurrent.futures
import contextlib
import itertools
import mmap
import os
import random
import signal
import struct
import subprocess
import tempfile
import unittest

import client_wire as wire
from faults import text
from harness import ALL_INPUTS, PATIENCE, Service, samples, wait_for
from raw_client import BINARY, RawClient, frame, upgrade
from raw_worker import Honest, RawWorker
from zeromq_client import Peer

PROGRAM = os.environ["MILLRACE_FAILING_PROGRAM"]
PACKET = 160
short = 0.4  # timeout in seconds of a client of a failing service; it grows on a slow machine
AT_A_TIME = 6  # processes at the same time
STEP = 1 if ALL_INPUTS else 8
# The second line is for builds in which the exception cannot be identified.
ENDS = ["millrace: out of memory"], ["millrace: an error, probably out of memory"]


class FailingService(Service):
    program = PROGRAM

    def __init__(self):
        control = os.memfd_create("control")
        os.truncate(control, 16)
        self.control = mmap.mmap(control, 16)
        self.path = f"/proc/{os.getpid()}/fd/{control}"
        self.recordings = tempfile.TemporaryDirectory(prefix="millrace-recordings-")
        super().__init__(f"[[pipeline]]\nchunk = {{ size = {PACKET} }}\nrecord = {{ share = 1.0, answers = true }}\n",
                         f'[recording]\ndirectory = "{self.recordings.name}"\n'
                         'commit = "20ms"\nmin_free = "1MiB"\n')

    def environment(self):
        return {"MILLRACE_FAILING": self.path}

    def fail(self, nth):
        """Makes the nth allocation from now on fail; 0: none."""
        struct.pack_into("<q", self.control, 0, nth)

    def failed(self):
        """Whether the allocation has failed."""
        return struct.unpack_from("<q", self.control)[0] <= 0


@contextlib.contextmanager
def worker(service, patience):
    """A worker that answers each row."""
    with RawWorker(service.workers) as link:
        link.socket.settimeout(patience)
        at_work = Honest(link.attached().beat())
        try:
            yield
        finally:
            at_work.close()


def stream_over_websocket(service, patience):
    with RawClient(service.port) as client:
        client.socket.settimeout(patience)
        client.send(upgrade("/v1/stream")).opened()
        for row in range(2):
            client.send(frame(BINARY, samples(row * PACKET, PACKET)))
            assert client.message()["type"] == "result"
        client.send(text(type="end"))
        *_, closed = client.rest()
        assert (closed["type"], closed["chunks"]) == ("closed", 2), closed


def stream_over_zeromq(service, patience):
    with PatientPeer(service.zeromq_port, patience) as peer:
        stream = peer.open()
        for row in range(2):
            stream.send(samples(row * PACKET, PACKET))
            assert stream.next()["type"] == "result"
        *_, closed = stream.command(wire.end).rest()
        assert (closed["type"], closed["chunks"]) == ("closed", 2), closed


class PatientPeer(Peer):
    def __init__(self, port, patience):
        super().__init__(port)
        self.patience = patience

    def read(self, patience=None):
        return super().read(self.patience)


def scenario(service, patience):
    """A short scenario with everything that clients, workers and operators do."""
    with worker(service, patience):
        stream_over_websocket(service, patience)
        stream_over_zeromq(service, patience)
        service.get("/metrics")
        service.get("/streams")


def gone(service):
    """Whether the process has ended by itself. If so, checks that it ended as it may."""
    if service.process.poll() is None:
        return False
    code = service.wait()
    lines = [line for line in service.errors if not line.startswith("time=")]
    assert code == 1 and lines in ENDS, (code, service.errors[-5:])
    return True


def healthy(service):
    """Checks that the service serves a worker and clients, and that no earlier stream is left. False if it has ended."""
    try:
        with worker(service, PATIENCE):
            stream_over_websocket(service, PATIENCE)
            stream_over_zeromq(service, PATIENCE)
            wait_for(lambda: not service.streams(), "the end of all streams", 0.02)
    except Exception:
        with contextlib.suppress(subprocess.TimeoutExpired):
            service.process.wait(PATIENCE)
        if not gone(service):
            raise
    return service.process.poll() is None


def whole(service):
    """Whether the whole scenario succeeds."""
    global short
    patience = short
    try:
        scenario(service, patience)
    except Exception:
        if not service.failed():  # otherwise clients would never be patient enough for the whole scenario
            short = min(max(short, 2 * patience), PATIENCE)
        return False
    return True


@contextlib.contextmanager
def failing_service(what):
    """A service. An error of the block gets its last log lines."""
    service = FailingService()
    try:
        yield service
    except Exception as error:
        raise AssertionError(f"{what}: {service.errors[-8:]}") from error
    finally:
        service.kill()
        service.folder.cleanup()
        service.recordings.cleanup()


def fail(nth):
    """Fails the nth allocation of the scenario, in a new process. Returns whether there are that many allocations."""
    with failing_service(f"allocation {nth}") as service:
        service.fail(nth)
        wait_for(lambda: whole(service) or service.failed(), "the allocation, or the end of the scenario")
        failed = service.failed()
        service.fail(0)
        if healthy(service):
            assert service.stop() == 0, "it was not drained"
        return failed


def fail_in_drain(nth):
    """Fails the nth allocation after SIGTERM, which ends a stream. Returns whether there are that many allocations."""
    with failing_service(f"allocation {nth} of the drain") as service:
        with worker(service, PATIENCE), RawClient(service.port, upgrade("/v1/stream")) as client:
            client.opened()
            client.send(frame(BINARY, samples(0, PACKET)))
            client.message()
            service.fail(nth)
            service.process.send_signal(signal.SIGTERM)
            client.send(text(type="end")).rest()
            client.socket.close()
            code = service.process.wait(PATIENCE)
        assert code == 0 or gone(service)
        return service.failed()


def each(fails):
    """Calls `fails` for each STEP-th allocation. Returns about the number of all."""
    begin = random.randint(1, STEP)
    print(f"from allocation {begin} on", flush=True)

    def some(first):
        return next(count for count in itertools.count() if not fails(begin + STEP * (first + count * AT_A_TIME)))

    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        return STEP * sum(pool.map(some, range(AT_A_TIME)))


class FailedAllocations(unittest.TestCase):
    def test_a_service_with_one_failed_allocation_serves_others_or_ends_with_one_line(self):
        self.assertGreater(each(fail), 500)

    def test_a_service_with_one_failed_allocation_in_its_drain_ends(self):
        self.assertGreater(each(fail_in_drain), 20)


if __name__ == "__main__":
    unittest.main()
