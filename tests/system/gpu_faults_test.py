# SPDX-License-Identifier: Apache-2.0
"""Faults of devices, on simulated devices. Ids like F10 are those of docs/internals/guarantees.md."""
import json
import os
import signal
import stat
import subprocess
import unittest

from faults import PACKET, text
from gpu_faults import (ECC, MILLRACE_SIMULATED, NO_DEVICE, NOT_SUPPORTED, OUT_OF_MEMORY,
                        GpuFaultTest)
from harness import COUNTED, PATIENCE, wait_for
from raw_worker import Honest, RawWorker
from worker_faults import packet


def slab_bytes(welcome):
    return welcome.slabs * welcome.slab_bytes


class Memory(GpuFaultTest):
    def test_if_pages_cannot_be_locked_the_worker_copies_them_and_a_warning_is_logged(self):  # F8
        service = self.simulated(f"devices=1;check-leaks;fail=cudaHostRegister:{NOT_SUPPORTED}")
        worker = self.honest_on(service, "cuda:0", name="slow")
        client = self.client(service)
        client.send(packet(0) + text(type="end"))
        self.assertEqual([seq for seq, _, _ in self.results(client)], [0, 1])
        [line] = wait_for(lambda: service.logged("worker copies from host memory", level="warning"), "the warning")
        self.assertEqual((line["worker"], line["why"]), ("slow", "the pages of its slabs cannot be locked in memory"))
        self.assertEqual(worker.link.welcome.handles, b"")
        self.await_metric(service, slab_bytes(worker.link.welcome), "millrace_pageable_slab_bytes")
        self.assertEqual(service.metric("millrace_pinned_pool_bytes"), 0)
        self.assertEqual(service.metric("millrace_h2d_copies_total", device="cuda:0"), 0)

    def test_if_pages_cannot_be_locked_and_pageable_is_refuse_the_worker_is_refused(self):  # F8
        service = self.simulated(f"devices=1;check-leaks;fail=cudaHostRegister:{NOT_SUPPORTED}",
                                 gpu='pageable = "refuse"')
        with self.beside(service):
            code, message = self.refused(service, "cuda:0")
        self.assertEqual(code, "device")
        self.assertIn("the pages of its slabs cannot be locked", message)
        self.assertEqual(service.metric("millrace_pageable_slab_bytes"), 0)

    def test_locked_pages_are_counted(self):
        service = self.simulated("devices=1;check-leaks")
        worker = self.honest_on(service, "cuda:0")
        self.await_metric(service, slab_bytes(worker.link.welcome), "millrace_pinned_pool_bytes")
        self.assertEqual(service.metric("millrace_pageable_slab_bytes"), 0)
        self.assertEqual(service.logged("worker copies from host memory"), [])

    def test_if_a_device_is_out_of_memory_its_worker_makes_the_copies_itself(self):  # F9
        service = self.simulated(f"devices=1;check-leaks;fail=cudaMalloc:{OUT_OF_MEMORY}:1")
        with self.moved(service, {}), self.beside(service):
            self.assertEqual(self.on(service, "cuda:0").welcome.handles, b"")
            self.assertNotEqual(self.on(service, "cuda:0").welcome.handles, b"")  # there is memory again
        [line] = wait_for(lambda: service.logged("worker copies from host memory", level="warning"), "the warning")
        self.assertIn("allocating device memory", line["why"])
        self.assertEqual(service.metric("millrace_device_errors_total", device="cuda:0", error="out_of_memory"), 1)

    def test_if_a_listed_device_is_out_of_memory_its_worker_is_refused(self):  # F9
        service = self.simulated(f"devices=1;check-leaks;fail=cudaMalloc:{OUT_OF_MEMORY}:1", gpu='devices = ["cuda:0"]')
        with self.moved(service, {}), self.beside(service) as (good, _):
            code, message = self.refused(service, "cuda:0")
            self.assertEqual(code, "no_room")
            self.assertIn("allocating device memory", message)
            good.row()
            self.on(service, "cuda:0")  # there is memory again
        self.assertEqual(service.metric("millrace_device_errors_total", device="cuda:0", error="out_of_memory"), 1)
        self.assertEqual(service.metric("millrace_device_healthy"), 1)

    def test_slabs_take_at_most_slab_bytes_of_each_device(self):  # F9
        service = self.simulated("devices=2;check-leaks",
                                 gpu='devices = ["cuda:0", "cuda:1"]\nslab_bytes = "2MiB"')
        self.on(service, "cuda:0")
        code, message = self.refused(service, "cuda:0")
        self.assertEqual(code, "no_room")
        self.assertIn("[gpu] slab_bytes of cuda:0", message)
        self.on(service, "cuda:1")


class Death(GpuFaultTest):
    """Devices that die in the middle of a stream."""

    DEATH = f"devices=2;calls={{folder}}/calls;dead-when={{folder}}/dead:{ECC}"

    def dying(self, service):
        """A stream whose worker's device dies with its second row. The first is answered."""
        worker = self.on(service, "cuda:0")
        client = self.client(service)
        client.send(packet(0))
        worker.answer(worker.batch())
        self.assertEqual(client.message()["seq"], 0)
        # A RawWorker answers without waiting for the copy, which must not be the one that fails.
        self.await_metric(service, 1, "millrace_h2d_copies_total", device="cuda:0")
        return worker, client

    def ends_with_1012(self, client, rows):
        """Checks that the client receives all its messages."""
        *messages, closed = client.rest()
        client.socket.close()
        kinds = [message["type"] for message in messages]
        self.assertEqual(kinds.count("goaway"), 1)
        self.assertEqual(kinds.count("error"), 0)
        self.assertEqual(kinds.count("result"), rows + 1)  # the last of these has no frames
        self.assertEqual((closed["type"], closed["frames"], client.close_code), ("closed", rows * PACKET, 1012))

    def assert_it_ended_by_itself(self, service, devices):
        self.assertEqual(service.wait(), 1)
        self.assertEqual(len(service.logged("stopped", drained="yes")), 1)
        failed = service.logged("device failed", level="error", error="ecc")
        self.assertEqual(sorted(line["device"] for line in failed), devices)

    def test_if_a_device_dies_the_process_ends_after_its_streams_have_ended_on_another_worker(self):  # F10
        service = self.simulated(self.DEATH)
        lost, client = self.dying(service)
        elsewhere = RawWorker(service.workers, device="host", credits=1).attached().beat()
        self.assertEqual(service.get("/livez"), (200, '{"alive":true}\n'))
        self.assertEqual(service.metric("millrace_device_healthy", device="cuda:0"), 1)
        service.touch("dead")
        client.send(packet(1))
        self.assertEqual(lost.ended(), "stopping")
        # The drain waits for this batch.
        batch = elsewhere.batch()
        self.assertEqual([row.seq for row in batch.framed], [1])
        status, alive = wait_for(lambda: (got := service.get("/livez"))[0] == 503 and got, "/livez to report the failure")
        self.assertEqual((status, json.loads(alive)), (503, {"alive": False, "reasons": ["device cuda:0 has failed"]}))
        status, ready = service.get("/readyz")
        self.assertEqual((status, json.loads(ready)["reasons"]),
                         (503, ["device cuda:0 has failed", "the service is stopping"]))
        wait_for(lambda: service.metric("millrace_device_healthy", device="cuda:0") == 0, "the gauge", COUNTED)
        self.assertEqual(service.metric("millrace_device_healthy", device="cuda:1"), 1)
        self.assertEqual(service.metric("millrace_device_errors_total", device="cuda:0", error="ecc"), 1)
        self.assertEqual(service.metric("millrace_device_errors_total"), 1)
        self.assertEqual(service.metric("millrace_draining"), 1)
        elsewhere.answer(batch)
        self.addCleanup(Honest(elsewhere).close)
        self.ends_with_1012(client, 2)
        self.assert_it_ended_by_itself(service, ["cuda:0"])
        wait_for(lambda: elsewhere.received_bye, "the Bye of the service")

    def test_once_a_device_is_dead_cuda_is_not_called_again(self):  # F10
        service = self.simulated(self.DEATH)
        _, client = self.dying(service)
        self.on(service, "cuda:0")  # also has slabs on the device, and has not used it since it died
        self.honest(service)
        service.touch("dead")
        client.send(packet(1))
        self.ends_with_1012(client, 2)
        self.assert_it_ended_by_itself(service, ["cuda:0"])
        calls = service.calls()
        self.assertEqual(calls["cudaMemcpyAsync"], 1)  # the second copy was not begun
        for function in ("cudaFree", "cudaHostUnregister", "cudaEventDestroy", "cudaStreamDestroy"):
            self.assertEqual(calls.get(function, 0), 0, function)

    def test_a_device_that_dies_unnoticed_ends_the_process_when_the_next_worker_attaches(self):  # F10, F14
        service = self.simulated(self.DEATH)
        elsewhere = RawWorker(service.workers, device="host").attached().beat()
        client = self.client(service)
        client.send(packet(0))
        batch = elsewhere.batch()  # the drain waits for it
        service.touch("dead")
        code, message = self.refused(service, "cuda:1")
        self.assertEqual(code, "device")
        self.assertIn("ECC", message)
        wait_for(lambda: service.get("/livez")[0] == 503, "/livez to report the failure")
        self.assertEqual(self.refused(service, "cuda:1"), ("device", "device cuda:1 has failed"))
        elsewhere.answer(batch)
        self.addCleanup(Honest(elsewhere).close)
        self.ends_with_1012(client, 1)
        self.assert_it_ended_by_itself(service, ["cuda:1"])

    def test_a_second_device_that_dies_during_the_drain_is_logged_too(self):  # F10, F14
        service = self.simulated(self.DEATH)
        _, first = self.dying(service)
        self.honest_on(service, "cuda:1")
        second = self.client(service)
        second.send(packet(0))
        self.assertEqual(second.message()["seq"], 0)
        self.await_metric(service, 1, "millrace_h2d_copies_total", device="cuda:1")  # as in dying()
        self.honest(service)
        service.touch("dead")
        first.send(packet(1))  # the other device dies over the last row of its stream, in the drain
        self.ends_with_1012(first, 2)
        self.ends_with_1012(second, 1)
        self.assert_it_ended_by_itself(service, ["cuda:0", "cuda:1"])

    def test_sigterm_while_a_device_is_dead_changes_nothing(self):  # F10
        service = self.simulated(self.DEATH)
        lost, client = self.dying(service)
        elsewhere = RawWorker(service.workers, device="host", credits=1).attached().beat()
        service.touch("dead")
        client.send(packet(1))
        batch = elsewhere.batch()
        wait_for(lambda: service.get("/livez")[0] == 503, "/livez to report the failure")
        service.process.send_signal(signal.SIGTERM)
        wait_for(lambda: service.logged("stopping"), "the signal")
        elsewhere.answer(batch)
        self.addCleanup(Honest(elsewhere).close)
        self.ends_with_1012(client, 2)
        self.assert_it_ended_by_itself(service, ["cuda:0"])

    def test_if_no_other_worker_takes_the_rows_of_a_dead_device_their_stream_ends_with_no_worker(self):  # F10
        service = self.simulated(self.DEATH, limits='drain = "8s"')
        _, client = self.dying(service)
        service.touch("dead")
        client.send(packet(1))
        self.assertEqual(client.ended(), ("no_worker", 1013))
        client.socket.close()
        self.assert_it_ended_by_itself(service, ["cuda:0"])


class Absence(GpuFaultTest):
    """Missing devices."""

    NONE = {"no device": "devices=0", "no driver": "devices=1;driver=0",
            "an error": f"devices=1;fail=cudaGetDeviceCount:{NO_DEVICE}"}

    def start(self, config, simulation, **environment):
        """Exit code and lines of a start that fails."""
        done = subprocess.run([MILLRACE_SIMULATED, "serve", "--config", config], capture_output=True, text=True,
                              timeout=PATIENCE,
                              env={**os.environ, "MILLRACE_SIMULATED_CUDA": simulation, **environment})
        return done.returncode, done.stderr.splitlines()

    def config(self, gpu):
        service = self.simulated()  # for its folder, and its free ports
        service.stop()
        with open(service.config) as file:
            config = file.read()
        with open(service.config, "w") as file:
            file.write(config.replace("[gpu]\n", f"[gpu]\n{gpu}\n"))
        return service.config

    def test_a_missing_listed_device_ends_the_start_with_exit_code_78(self):  # F11
        config = self.config('devices = ["cuda:0", "cuda:5"]')
        starts = {**{name: (simulation, {}) for name, simulation in self.NONE.items()},
                  "fewer than were listed": ("devices=1", {}),
                  "none for this process": ("devices=1", {"CUDA_VISIBLE_DEVICES": ""})}
        for name, (simulation, environment) in starts.items():
            with self.subTest(name):
                code, lines = self.start(config, simulation, **environment)
                self.assertEqual((code, len(lines)), (78, 1), lines)
                self.assertRegex(lines[0], r'^millrace: device "cuda:[05]" is not available: \w')

    def test_a_listed_device_that_is_out_of_memory_ends_the_start_with_exit_code_1(self):  # F9
        config = self.config('devices = ["cuda:0"]')
        code, lines = self.start(config, f"devices=1;fail=cudaSetDevice:{OUT_OF_MEMORY}")
        self.assertEqual((code, len([line for line in lines if line.startswith("millrace: ")])), (1, 1), lines)

    def test_without_devices_the_service_continues_and_logs_the_reason(self):  # F11
        for name, simulation in self.NONE.items():
            with self.subTest(name):
                service = self.simulated(simulation)
                [line] = service.logged("no device", level="info")
                self.assertIn("no driver for CUDA" if name == "no driver" else "no CUDA device", line["why"])
                with self.moved(service, {}), self.beside(service):
                    self.honest_on(service, "cuda:0")  # the service does not check the device of a worker then

    def test_listed_devices_are_opened_at_the_start_and_logged(self):
        service = self.simulated("devices=2;check-leaks", gpu='devices = ["cuda:1"]')
        [line] = service.logged("device", level="info")
        self.assertEqual((line["device"], line["memory"]), ("cuda:1", "1 GiB"))
        self.assertEqual(self.refused(service, "cuda:0")[0], "device")
        self.honest_on(service, line["uuid"])

    def test_check_config_does_not_look_for_devices(self):
        config = self.config('devices = ["cuda:5"]')
        done = subprocess.run([MILLRACE_SIMULATED, "check-config", config], capture_output=True, text=True,
                              timeout=PATIENCE, env={**os.environ, "MILLRACE_SIMULATED_CUDA": "devices=0"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn('devices = ["cuda:5"]', done.stdout)


class Hangs(GpuFaultTest):
    def test_a_device_that_hangs_does_not_keep_the_process_from_ending(self):
        service = self.simulated("devices=1;hold-copies", limits='drain = "1s"')
        self.honest_on(service, "cuda:0")
        self.client(service).send(packet(0))
        self.await_metric(service, 1, "millrace_batches_total")
        self.assertEqual(service.stop(), 1)
        self.assertIn("a thread did not end, probably in a call of a driver", service.errors[-1])


class Handles(GpuFaultTest):
    def test_handles_of_slabs_are_in_no_log_page_or_refusal(self):  # F13
        service = self.simulated("devices=1")
        self.assertEqual(stat.S_IMODE(os.stat(service.workers.removeprefix("unix:")).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(service.folder.name).st_mode), 0o700)
        worker = self.on(service, "cuda:0")
        with open(f"/proc/{service.process.pid}/maps") as maps:
            self.assertNotIn("/dev/shm/", maps.read())  # no shared memory with a name
        handles = [worker.welcome.handles[at:at + 64] for at in range(0, len(worker.welcome.handles), 64)]
        self.assertEqual(len(handles), 1 + 2 * worker.welcome.slabs)
        worker.send(b"what is no message")
        worker.ended()
        code, message = self.refused(service, "cuda")
        service.recount()
        texts = "\n".join([*service.errors, code, message, *(service.get(page)[1] for page in (
            "/metrics", "/livez", "/readyz", "/streams"))]).encode()
        for handle in handles:
            for at in range(0, 16, 4):  # the secret part of a handle
                part = handle[at:at + 16]
                for secret in (part, part.hex().encode(), part[::-1].hex().encode()):
                    self.assertNotIn(secret, texts)
        self.assertNotRegex(texts.decode(), r"(?i)memfd|/proc/|\bfd\b|descriptor\W+\d")


if __name__ == "__main__":
    unittest.main()
