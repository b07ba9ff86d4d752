# SPDX-License-Identifier: Apache-2.0
"""The base class of tests of faulty workers. It makes workers and clients that send any messages, and an honest worker with
a good stream beside them."""
import contextlib

import worker_wire as wire
from faults import PACKET, FaultTest
from harness import samples
from raw_client import BINARY, RawClient, frame, upgrade
from raw_worker import Honest, RawWorker


def packet(number=0):
    return frame(BINARY, samples(number * PACKET, PACKET))


REMOTE = 'workers_remote = "tcp://127.0.0.1:0"\n'


class WorkerFaultTest(FaultTest):
    """With `remote`, its faulty workers connect over TCP, as from another machine."""

    remote = False

    def service(self, pipelines="[[pipeline]]\nchunk = { size = 1600 }\n", extra="", descriptors=None, within=()):
        return super().service(pipelines, REMOTE * self.remote + extra, descriptors, within)

    def url(self, service):
        return service.workers_remote if self.remote else service.workers

    def worker(self, service, **of_hello):
        worker = RawWorker(self.url(service), **of_hello).attached().beat()
        self.addCleanup(worker.close)
        return worker

    def honest(self, service, answer=b"1", **of_hello):
        honest = Honest(RawWorker(service.workers, **of_hello).attached().beat(), answer)
        self.addCleanup(honest.close)
        return honest

    def client(self, service, query=""):
        client = RawClient(service.port, upgrade("/v1/stream" + query)).opened()
        self.addCleanup(client.socket.close)
        return client

    @contextlib.contextmanager
    def beside(self, service):
        """An honest worker with a good stream. A worker that attaches in the block gets the next stream."""
        honest = self.honest(service)
        with self.unharmed(service) as good:
            yield good, honest
        resets = [row.seq for row in honest.rows if row.stream == honest.rows[0].stream
                  and row.flags & wire.RESET]
        self.assertEqual(resets, [0])

    def results(self, client):
        """(seq, flags, answer) of each result up to `closed`."""
        *messages, closed = client.rest()
        self.assertEqual(closed["type"], "closed", closed)
        return [(m["seq"], m["flags"], m.get("data", m.get("error"))) for m in messages if m["type"] == "result"]
