# SPDX-License-Identifier: Apache-2.0
"""The log cannot be written, or there is a flood of lines: no stream is affected. Ids like G16 are those of
docs/internals/guarantees.md."""
import collections
import os
import re
import unittest
import urllib.error

from faults import PACKET, FaultTest
from harness import Service, wait_for
from raw_client import RawClient, upgrade

DROPPED = "millrace_log_lines_dropped_total"
LINES = 5  # lines of one event, written at once


class RedirectedService(Service):
    """A service whose log can be redirected: from then on, after a second start, it goes elsewhere."""
    redirected = None

    def redirect(self, to):
        self.redirected, self.limits = to, ("sh", "-c", f'exec "$@" 2>{to}', "sh")
        self.again()

    def _listening(self):
        if not self.redirected:
            return super()._listening()
        try:
            self.get("/livez")
        except urllib.error.URLError:
            return None
        return f"websocket=:{self.port} zeromq=:{self.zeromq_port} workers_remote=off admin=:{self.admin_port}"


class Log(FaultTest):
    def redirected_service(self, to):
        service = RedirectedService(f"[[pipeline]]\nslots = 64\nchunk = {{ size = {PACKET} }}\n", "")
        self.addCleanup(service.close)
        service.redirect(to(service) if callable(to) else to)
        self.worker = self.tap(service)
        return service

    def refuse(self, service, times):
        """Makes the service refuse clients. Each refusal is a line of the log, or is counted in a summary line."""
        for _ in range(times):
            with RawClient(service.port, upgrade("/v1/stream?pipeline=none")) as client:
                self.assertEqual(client.head()[0], 404)

    def drops(self, service):
        with self.unharmed(service) as good:
            before = service.metric(DROPPED)
            self.refuse(service, LINES)
            good.row()
            wait_for(lambda: service.metric(DROPPED) > before, "the dropped lines", every=0.1)
        self.assertEqual(service.stop(), 0)

    def test_a_closed_standard_error_becomes_dev_null(self):  # G16
        service = self.redirected_service("&-")
        self.assertEqual(os.readlink(f"/proc/{service.process.pid}/fd/2"), "/dev/null")
        self.drops(service)

    def test_a_flood_of_warnings_is_summed_up_and_each_is_counted(self):  # G16
        service = self.served(extra="[limits]\nconnections = 1\n")
        flood = 500
        with self.unharmed(service) as good:
            for number in range(flood):
                if number % 100 == 0:
                    good.row()  # a silent stream would be closed after 30 s
                with RawClient(service.port, upgrade()) as client:
                    self.assertEqual(client.head()[0], 503)
            good.row()

        def counted():
            warnings = [line for line in list(service.errors) if 'level=warning event="stream refused"' in line]
            sums = [int(found[1]) for line in warnings if (found := re.search(r"held_back=(\d+)", line))]
            return len(warnings) - len(sums) + sum(sums)

        wait_for(lambda: counted() >= flood, "the sums")
        self.assertEqual(counted(), flood)
        self.await_metric(service, flood, "millrace_log_messages_total", level="warning")
        # Each of three io threads writes four lines of an event and their sum in a second. Two such seconds may overlap with
        # a second of the clock, and a line may be written late.
        lines = collections.Counter(re.findall(r'^time=([^.]+)\S* level=\w+ event=("[^"]*"|\S+)', "\n".join(service.errors), re.M))
        self.assertLessEqual(max(lines.values()), 3 * (2 * (4 + 1) + 1))
        self.assertEqual(service.metric(DROPPED), 0)


if __name__ == "__main__":
    unittest.main()
