# SPDX-License-Identifier: Apache-2.0
"""What tests with many clients have in common."""
import contextlib
import resource

from faults import FaultTest
from raw_client import RawClient


class CrowdTest(FaultTest):
    def setUp(self):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self.crowd = contextlib.ExitStack()
        self.addCleanup(self.crowd.close)

    def join(self, service, request=None):
        return self.crowd.enter_context(RawClient(service.port, request))
