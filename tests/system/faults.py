# SPDX-License-Identifier: Apache-2.0
"""The base class of tests of faults. Beside each fault, a good stream must lose nothing, and the counters of faults must
change by exactly what happened."""
import collections
import contextlib
import json
import re

from harness import COUNTED, SystemTest, samples, wait_for
from raw_client import BINARY, TEXT, RawClient, frame, upgrade

PACKET = 1600
# The metrics that count faults, each with its reasons that are not faults.
FAULTS = {"millrace_ingest_connections_rejected_total": set(),
          "millrace_ingest_connections_closed_total": {"client", "drain"},
          "millrace_ingest_messages_rejected_total": set(),
          "millrace_streams_closed_total": {"end", "client_gone", "drain"},
          "millrace_worker_failures_total": set(),
          "millrace_results_total": {"ok"},
          "millrace_results_dropped_total": {"stream_closed", "slow_reader"},
          "millrace_log_messages_total": {"warning"}}


def text(**message):
    return frame(TEXT, json.dumps(message).encode())


def short(family):
    return family.removeprefix("millrace_").removeprefix("ingest_").removesuffix("_total")


class GoodStream:
    """A stream that does everything right, row by row."""

    def __init__(self, service, tls=None, **parameters):
        query = "&".join(f"{key}={value}" for key, value in parameters.items())
        self.client = RawClient(service.port, upgrade("/v1/stream" + ("?" + query if query else "")), tls=tls)
        self.client.opened()
        self.rows = 0

    def row(self):
        self.client.send(frame(BINARY, samples(self.rows * PACKET, PACKET)))
        result = self.client.message()
        assert result and (result["type"], result.get("seq"), result.get("begin")) == \
            ("result", self.rows, self.rows * PACKET), result
        self.rows += 1

    def end(self):
        self.client.send(text(type="end"))
        last, closed = self.client.rest()[-2:]
        assert last["type"] == "result" and "END" in last["flags"], last
        assert closed == {"type": "closed", "frames": self.rows * PACKET, "chunks": self.rows}, closed
        assert self.client.close_code == 1000, self.client.close_code
        self.client.socket.close()


class FaultTest(SystemTest):
    """Its services have a pipeline `default` with rows of PACKET frames, for the good stream."""

    good_stream = GoodStream

    def served(self, slots=64, extra="", within=()):
        """A service with a worker that answers each row."""
        service = self.service(f"[[pipeline]]\nslots = {slots}\nchunk = {{ size = {PACKET} }}\n", extra, within=within)
        self.worker = self.tap(service)
        return service

    @contextlib.contextmanager
    def unharmed(self, service, **parameters):
        """A good stream that is open during the block. The block may call its row() at any time."""
        good = self.good_stream(service, **parameters)
        good.row()
        yield good
        good.row()
        good.end()

    def position(self, service, name):
        """The number of frames that the service has read of a stream."""
        return next(stream["frames"] for stream in service.streams() if stream["stream"] == name)

    def counts(self, service):
        """The counters of faults, by (short name, reason)."""
        counts = {}
        for line in service.get("/metrics")[1].splitlines():
            match = re.match(r"(\w+)\{(.*)\} (\S+)", line)
            if not match or match[1] not in FAULTS:
                continue
            labels = dict(re.findall(r'(\w+)="([^"]*)"', match[2]))
            kind = next(labels[key] for key in ("reason", "status", "level") if key in labels)
            if kind not in FAULTS[match[1]]:
                key = short(match[1]), kind
                counts[key] = counts.get(key, 0) + float(match[3])
        return counts

    @contextlib.contextmanager
    def moved(self, service, expected):
        """Checks that exactly these counters change during the block, by these numbers. The block may fill in `expected`."""
        before = self.counts(service)
        yield
        def difference():
            now = self.counts(service)
            return {key: now[key] - before[key] for key in now if now[key] != before[key]}

        with contextlib.suppress(AssertionError):
            wait_for(lambda: difference() == expected, "the counters", COUNTED)
        service.recount()  # a fault that is counted a little later is found, too
        self.assertEqual(difference(), expected)

    def each(self, service, cases, run_case, *counters):
        """Runs each case (bytes to send, expected answer) with `run_case`. Each must change each of `counters` by one and no
        other counter, and must disturb no other stream."""
        expected = collections.Counter()
        with self.moved(service, expected), self.unharmed(service) as good:
            for name, (sent, answer) in cases.items():
                with self.subTest(name):
                    self.assertEqual(run_case(service, sent), answer)
                expected.update(counters)
                good.row()
