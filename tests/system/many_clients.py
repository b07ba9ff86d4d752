# SPDX-License-Identifier: Apache-2.0
"""The base class of tests with many clients."""
import contextlib
import resource
import signal

from faults import FaultTest
from harness import wait_for
from raw_client import BINARY, RawClient, frame, upgrade
from raw_worker import Honest, RawWorker


class ManyClientsTest(FaultTest):
    def setUp(self):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self.many_clients = contextlib.ExitStack()
        self.addCleanup(self.many_clients.close)

    def join(self, service, request=None):
        return self.many_clients.enter_context(RawClient(service.port, request))

    def steadfast(self, service):
        """A worker that answers each row. A tap would take a service that is stopped for 6 s for lost."""
        self.addCleanup(Honest(RawWorker(service.workers).attached().beat()).close)

    @contextlib.contextmanager
    def stopped(self, service):
        """The service is stopped during the block. Then it sees all that happened at once, however slow this process was."""
        service.process.send_signal(signal.SIGSTOP)
        try:
            wait_for(lambda: service.state() == "T", "the service to be stopped")
            yield
        finally:
            service.process.send_signal(signal.SIGCONT)

    def opened(self, service, count):
        """Clients with an open stream. Until all are open they send empty messages: a client that is silent is closed."""
        clients = []
        while len(clients) < count:
            clients += [self.join(service, upgrade()).opened() for _ in range(100)]
            for client in clients:
                client.send(frame(BINARY))
        return clients
