# SPDX-License-Identifier: Apache-2.0
"""Messages of the service to its supervisor, by the notify protocol of systemd."""
import signal
import socket
import tempfile
import time
import unittest

from faults import FaultTest
from harness import PATIENCE, wait_for
from paused_thread import paused

ALIVE = {"WATCHDOG": "1"}


class Supervised(FaultTest):
    def supervised(self, *environment, extra=""):
        """A service that sends its notifications to the socket `notifications`."""
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="millrace-"))
        self.notifications = self.enterContext(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        self.notifications.bind(folder + "/notify")
        self.notifications.settimeout(PATIENCE)
        return self.served(extra=extra, within=("env", f"NOTIFY_SOCKET={folder}/notify", *environment))

    def next(self):
        """The next message."""
        return dict(line.split("=", 1) for line in self.notifications.recv(4096).decode().splitlines())

    def before(self, message):
        """The messages up to this one."""
        messages = []
        while (one := self.next()) != message:
            messages.append(one)
        return messages

    def test_the_service_notifies_when_it_listens_reloads_and_stops(self):
        service = self.supervised()
        self.assertEqual(self.next(), {"READY": "1", "STATUS": "serving"})
        with self.unharmed(service):
            before = time.monotonic_ns() // 1000
            service.process.send_signal(signal.SIGHUP)
            reloading = self.next()
            self.assertEqual(reloading["RELOADING"], "1")
            self.assertLess(before, int(reloading["MONOTONIC_USEC"]))
            self.assertEqual(self.next(), {"READY": "1", "STATUS": "serving"})
            with open(service.config, "a") as file:
                file.write("[listeners]\n")
            service.process.send_signal(signal.SIGHUP)
            self.assertEqual(self.next()["RELOADING"], "1")
            self.assertEqual(self.next(), {"READY": "1", "STATUS": "serving; the last reload was refused"})
        service.process.terminate()
        self.assertEqual(self.next(), {"STOPPING": "1", "STATUS": "stopping: end"})
        self.assertEqual(service.wait(), 0)

    def test_a_stopping_service_sends_watchdog_and_does_not_send_ready_after_a_reload(self):
        service = self.supervised("WATCHDOG_USEC=1000000", extra='[limits]\ndrain = "1h"\nlinger = "30min"\n')
        service.process.terminate()
        self.before({"STOPPING": "1", "STATUS": "stopping: linger"})
        service.process.send_signal(signal.SIGHUP)
        wait_for(lambda: any("configuration reloaded" in line for line in service.errors), "the reload")
        self.assertEqual([self.before(ALIVE) for _ in range(3)], [[], [], []])
        service.process.terminate()
        self.assertEqual([message for message in self.before({"STOPPING": "1", "STATUS": "stopping: end"}) if message != ALIVE], [])
        self.assertEqual(service.wait(), 0)

    def test_watchdog_is_sent_only_while_each_io_thread_runs(self):
        service = self.supervised("WATCHDOG_USEC=1000000")
        for _ in range(3):
            self.before(ALIVE)
        with paused(service.process.pid, "io-1"):
            self.notifications.settimeout(2)  # four times the interval of WATCHDOG=1
            with self.assertRaises(TimeoutError):
                deadline = time.monotonic() + PATIENCE
                while time.monotonic() < deadline:
                    self.next()
            status, page = wait_for(lambda: (answer := service.get("/livez"))[0] == 503 and answer, "/livez")
            self.assertIn("an io thread has not run for 5 s", page)
            self.assertIsNone(service.process.poll())
        self.notifications.settimeout(PATIENCE)
        self.assertEqual(self.next(), ALIVE)
        wait_for(lambda: service.get("/livez")[0] == 200, "/livez")
        with self.unharmed(service):
            pass


if __name__ == "__main__":
    unittest.main()
