# SPDX-License-Identifier: Apache-2.0
"""Steps of the wall clock under the running program, made by Debian's libfaketime."""
import glob
import os
import unittest

from faults import FaultTest
from harness import Service, wait_for


class SteppedService(Service):
    """A service whose wall clock is set by step(). Its steady clock is real."""

    def __init__(self):
        self.clock = None
        super().__init__('[[pipeline]]\nchunk = { size = 1600 }\n')

    def environment(self):
        self.clock = os.path.join(self.folder.name, "clock")
        self.step(0)
        [library] = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
        return {"LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": self.clock, "FAKETIME_NO_CACHE": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}

    def step(self, seconds):
        """Sets the wall clock `seconds` ahead. Replaces the file at once: the service may read it at any moment."""
        with open(self.clock + ".new", "w") as file:
            file.write(f"{seconds:+d}\n")
        os.rename(self.clock + ".new", self.clock)


class Clock(FaultTest):
    def test_steps_of_the_wall_clock_are_counted_and_expire_nothing(self):  # C16
        service = SteppedService()
        self.addCleanup(service.close)
        self.tap(service)
        with self.moved(service, {}), self.unharmed(service) as good:
            for direction, seconds in (("forward", 3600), ("backward", 0)):
                service.step(seconds)
                wait_for(lambda: service.metric("millrace_clock_jumps_total", direction=direction), "the step to be seen")
                good.row()
                self.assertEqual(service.metric("millrace_clock_jumps_total", direction=direction), 1)
            self.assertEqual(service.metric("millrace_workers"), 1)


if __name__ == "__main__":
    unittest.main()
