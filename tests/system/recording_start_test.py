# SPDX-License-Identifier: Apache-2.0
"""Starts of a service with a directory of recordings: while the disk is full, and when nothing is recorded any more. Ids like E22
are those of docs/internals/guarantees.md."""
import errno
import os
import subprocess
import unittest

from disk_faults import listed
from harness import wait_for
from recording_faults_test import RecordingFaultTest, mounts


class FullDisk(RecordingFaultTest):
    def test_a_full_disk_does_not_keep_the_service_from_starting(self):  # E22
        first = self.recording()
        with self.streamed(first):
            pass
        self.stop(first)
        service = self.recording(faults={"write_error": errno.ENOSPC, "reserve_error": errno.ENOSPC})
        self.assertEqual(service.recorded("suspended"), 1)
        with self.streamed(service, "later") as good:
            self.rows_until(good, lambda: service.recorded("records_dropped_total", reason="disk_full") > 0, "slices to be dropped")
            service.disk.heal()
            self.rows_until(good, lambda: service.recorded("suspended") == 0, "recording to begin")
            self.rows_until(good, lambda: service.recorded("records_total") > 0, "a commit")
        self.stop(service)
        self.assertEqual([stream["number"] for stream in listed(self.directory).values()], [1, 2])
        self.has_lost("later")
        self.is_good("--rows")


class ReadOnly(RecordingFaultTest):
    def test_a_read_only_file_system_does_not_keep_the_service_from_starting(self):  # E22
        os.mkdir(self.directory)
        within = mounts("ro", self.directory)
        if subprocess.run([*within, "true"], capture_output=True).returncode != 0:
            self.skipTest("no mount namespace can be made here")
        service = self.recording(within=within)
        self.assertEqual(service.recorded("suspended"), 1)
        with self.streamed(service):
            pass
        self.assertTrue(any("recording suspended" in line and "Read-only" in line for line in service.errors), service.errors)
        self.stop(service)


class SwitchedOff(RecordingFaultTest):
    def test_with_recording_switched_off_old_files_are_deleted(self):  # J22, J26
        for _ in range(2):
            service = self.recording()
            with self.streamed(service):
                pass
            self.stop(service)
        for name in service.recording_files():
            os.utime(os.path.join(self.directory, name), (1, 1))
        service = self.recording('keep_for = "720h"\n', record="false")
        wait_for(lambda: not service.recording_files(), "the files to be deleted")
        wait_for(lambda: any("recording deleted" in line and "files=2" in line for line in service.errors), "the line in the log")
        self.stop(service)

    def test_with_recording_switched_off_no_directory_is_made(self):  # J22
        service = self.recording(record="false")
        self.stop(service)
        self.assertFalse(os.path.exists(self.directory))


if __name__ == "__main__":
    unittest.main()
