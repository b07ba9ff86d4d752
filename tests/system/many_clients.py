# SPDX-License-Identifier: Apache-2.0
"""The base class of tests with many clients."""
import contextlib
import resource

from faults import FaultTest
from raw_client import RawClient


class ManyClientsTest(FaultTest):
    def setUp(self):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self.many_clients = contextlib.ExitStack()
        self.addCleanup(self.many_clients.close)

    def join(self, service, request=None):
        return self.many_clients.enter_context(RawClient(service.port, request))
