# SPDX-License-Identifier: Apache-2.0
"""Workers on simulated CUDA devices: they get the same batches as on the host."""
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

# For the service and for this process, before either calls CUDA.
FOLDER = tempfile.TemporaryDirectory()
HELD = Path(FOLDER.name) / "held"
os.environ["MILLRACE_SIMULATED_CUDA"] = f"hold-copies-while={HELD}"

from device_reader import CUDA, about, content, release, managed  # noqa: E402
from harness import COUNTED, PATIENCE, wait_for  # noqa: E402
from remote_test import Remote  # noqa: E402
from streams import WorkerTest  # noqa: E402

import millrace  # noqa: E402
from millrace import Flag  # noqa: E402

HERE_ONLY = '[gpu]\ndevices = "host"\n'  # the service leaves copying to its workers
COLUMNS = ("slot", "left", "size", "right", "flags", "reset")
DTYPES = {"s16": np.int16, "f16": np.float16, "f32": np.float32}


def pipeline(name, dtype="s16", more=""):
    return (f'[[pipeline]]\nname = "{name}"\ndtype = "{dtype}"\nslots = 4\n'
            f'chunk = {{ size = 4, left = 2, right = 1{more} }}\nbatch = {{ rows = 4, row_buckets = [2, 4] }}\n')


class Rows(WorkerTest):
    by_the_service = True  # the service makes the copies
    pipeline = "".join(pipeline(f"{dtype}-{pad}-{place}", dtype, f', pad = "{pad}"')
                       for dtype in DTYPES for pad in ("zero", "repeat") for place in ("host", "cuda"))

    def rows(self, name, device):
        """The content of each row of three streams, by its stream and number."""
        worker = self.worker(pipeline=name, device=device)
        for stream in range(3):
            speaking = self.stream(pipeline=name, id=f"{name}.{stream}")
            speaking.frames(*((1000 * stream + frame * 37) % 30000 - 15000 for frame in range(10 + stream)))
            speaking.command("end")
        seen, names, ended = {}, {}, 0
        while ended < 3:
            batch = self.batch(worker)
            arrays = {name: self.content(getattr(batch, name)) for name in ("data", *COLUMNS)}
            names |= {opened.stream: opened.name.rpartition(".")[2] for opened in batch.opened}
            ended += sum(bool(row.flags & Flag.END) for row in (*batch.framed, *batch.marks))
            for i, row in enumerate(batch.framed):
                self.assertEqual((arrays["slot"][i], arrays["size"][i], arrays["flags"][i]), (row.slot, row.size, row.flags))
                seen[names[row.stream], row.seq] = [arrays[name][i].tobytes() for name in ("data", *COLUMNS[1:])]
            for i in range(len(batch.framed), batch.rows):
                self.assertEqual((arrays["slot"][i], arrays["size"][i], arrays["data"][i].any()), (worker.slots, 0, False))
            batch.done()
        return seen

    @staticmethod
    def content(array):
        return array if isinstance(array, np.ndarray) else content(array)

    def test_rows_on_a_device_equal_those_on_the_host_bit_for_bit(self):
        for dtype in DTYPES:
            for pad in ("zero", "repeat"):
                with self.subTest(dtype=dtype, pad=pad):
                    there = self.rows(f"{dtype}-{pad}-cuda", "cuda:0")
                    self.assertEqual(there, self.rows(f"{dtype}-{pad}-host", "host"))
                    self.assertGreater(len(there), 8)
        if self.by_the_service:
            wait_for(lambda: self.served.metric("millrace_h2d_copies_total") > 0, "the service's copies to be counted",
                     COUNTED)


class CopiedRows(Rows):
    listen = HERE_ONLY
    by_the_service = False


class RemoteRows(Remote, Rows):
    by_the_service = False


class Arrays(WorkerTest):
    pipeline = "".join(pipeline(dtype, dtype) for dtype in DTYPES) + pipeline("narrow").replace(
        "batch = { ", "batch = { width_buckets = [5, 7], ")

    def one_row(self, device="cuda:0", name="s16"):
        worker, stream = self.worker(pipeline=name, device=device), self.stream(pipeline=name)
        stream.frames(1, 2, 3, 4, 5, 6)
        return worker, stream, self.batch(worker)

    def test_the_worker_is_on_the_device_that_it_asked_for(self):
        for asked, device in (("cuda", "cuda:0"), ("cuda:1", "cuda:1")):
            worker, _, batch = self.one_row(asked)
            self.assertEqual((worker.device, batch.data.__dlpack_device__()), (device, (2, int(device[-1]))))
            self.await_metric(self.served, 1, "millrace_h2d_copies_total", device=device)

    def test_a_model_warms_up_on_the_device(self):
        seen = []

        def warm_up(batch):
            self.assertEqual(batch.data.__dlpack_device__(), (2, 0))
            seen.append((batch.data.shape, batch.data.dtype, content(batch.data).any(), content(batch.slot).tolist()))

        worker = self.worker(pipeline="f16", device="cuda:0", warm_up=warm_up)
        self.assertEqual(worker.device, "cuda:0")
        self.assertEqual(seen, [((rows, 7, 1), np.float16, False, list(range(rows))) for rows in (4, 2)])

    def test_after_a_failed_batch_the_reset_is_on_the_device(self):
        worker, stream, batch = self.one_row()
        batch.done()
        seen = []
        for _ in range(3):
            stream.frames(*[1] * 4)
            batch = self.batch(worker)
            seen.append((bool(content(batch.reset)[0]), int(content(batch.flags)[0]) & Flag.RESET))
            if len(seen) == 1:
                batch.fail(RuntimeError("out of memory"))
            else:
                batch.done()
        self.assertEqual(seen, [(False, 0), (True, Flag.RESET), (False, 0)])

    def test_the_capsules_describe_their_arrays(self):
        for name, dtype in DTYPES.items():
            _, _, batch = self.one_row(name=name)
            expected = {"data": (dtype, (2, 7, 1), (7, 1, 1)), "flags": (np.uint8, (2,), (1,)), "reset": (np.bool_, (2,), (1,)),
                        **{column: (np.int32, (2,), (1,)) for column in ("slot", "left", "size", "right")}}
            for column, (kind, shape, strides) in expected.items():
                array = getattr(batch, column)
                capsule = array.__dlpack__(stream=1)
                tensor = managed(capsule).tensor
                self.assertEqual(about(tensor), ((2, 0), np.dtype(kind), shape, strides))
                self.assertEqual((array.dtype, array.shape), (np.dtype(kind), shape))
                self.assertEqual((tensor.lanes, tensor.byte_offset, tensor.data % 256), (1, 0, 0))
                interface = array.__cuda_array_interface__
                self.assertEqual(interface["data"], (tensor.data, False))
                self.assertEqual((np.dtype(interface["typestr"]), interface["shape"], interface["stream"]),
                                 (np.dtype(kind), shape, 1))
            self.assertEqual(content(batch.reset).tolist(), [True, False])

    def test_the_shape_of_the_data_follows_the_widest_row_of_the_batch(self):
        worker, stream, batch = self.one_row(name="narrow")
        self.assertEqual((worker.width_buckets, batch.width, content(batch.data).shape[1:]), ((5, 7), 7, (7, 1)))
        batch.done()
        stream.command("flush")  # the remaining frame, with its context
        batch = self.batch(worker)
        self.assertEqual((batch.width, content(batch.data).shape[1:]), (5, (5, 1)))

    def test_a_batch_of_marker_rows_has_arrays_without_rows(self):
        worker, stream, batch = self.one_row()
        batch.done()
        stream.command("flush")
        self.batch(worker).done()  # the batch of the remaining frames
        stream.command("end")
        batch = self.batch(worker)
        self.assertEqual((content(batch.data).shape, content(batch.slot).shape), ((0, batch.width, 1), (0,)))

    @contextlib.contextmanager
    def copying(self, **settings):
        """A worker whose batch was handed over, and is not copied before the end of the block."""
        worker, stream = self.worker(pipeline="s16", device="cuda:0", **settings), self.stream(pipeline="s16")
        HELD.touch()
        try:
            stream.frames(1, 2, 3, 4, 5)
            self.await_metric(self.served, 1, "millrace_worker_inflight_batches", pipeline="s16")
            self.assertIsNone(worker.next(0))
            yield worker
        finally:
            HELD.unlink()

    def test_a_batch_comes_when_its_copy_has_ended(self):
        with self.copying() as worker:
            pass
        self.assertEqual(content(self.batch(worker).data)[0, :, 0].tolist(), [0, 0, 1, 2, 3, 4, 5])

    def test_a_service_that_stops_during_a_copy_ends_the_batches(self):
        with self.copying(reattach=False) as worker:
            self.served.process.send_signal(signal.SIGTERM)
            wait_for(lambda: any("stopping" in line for line in self.served.errors), "the drain")
            self.assertIsNone(worker.next(0))
            self.served.process.send_signal(signal.SIGTERM)  # ends it at once
            self.assertIsNone(worker.next(PATIENCE))
        self.served.wait()

    def test_a_worker_does_not_hang_if_its_service_is_killed_during_a_copy(self):
        with self.copying(reattach=False) as worker:
            self.served.stop(signal.SIGKILL)
            with self.assertRaises(millrace.ServiceGone):
                worker.next(PATIENCE)

    def test_a_batch_is_given_back_before_its_streams_have_read_it(self):
        worker, stream, batch = self.one_row()
        named = ctypes.c_void_p()
        CUDA.cudaStreamCreateWithFlags(ctypes.byref(named), 1)
        for frames in ((7, 8, 9, 10), (11, 12, 13, 14), (15, 16, 17, 18)):
            batch.use_on(named.value)
            batch.slot.__dlpack__(stream=named.value)
            batch.done(["answer", "padding"])
            stream.frames(*frames)
            batch = self.batch(worker)
        self.assertEqual(content(batch.data, named.value)[0, :, 0].tolist(), [11, 12, 13, 14, 15, 16, 17])
        self.assertEqual([message["data"] for message in stream.received("result", 3)], ["answer"] * 3)

    def test_a_tensor_keeps_the_memory_of_its_worker_alive(self):
        worker, _, batch = self.one_row()
        array, capsule = batch.data, batch.data.__dlpack__(stream=1)
        batch.done()
        for use in (lambda: array.shape, lambda: array.__dlpack__(stream=-1), lambda: array.__cuda_array_interface__, lambda: batch.use_on(1)):
            with self.assertRaisesRegex(RuntimeError, "given back"):
                use()
        self.assertEqual(repr(array), "<millrace.DeviceArray, given back>")
        worker.close()
        del worker, batch, array
        release(capsule)

    def test_a_worker_attaches_again_on_the_same_device(self):
        worker, _, batch = self.one_row()
        content(batch.data)  # waits for its copy, which would not end after the service is gone
        batch.done()
        self.served.again()
        wait_for(lambda: worker.next(0.1) is None and worker.attachments == 2, "the worker to attach again")
        stream = self.stream(pipeline="s16")
        stream.frames(1, 2, 3, 4, 5)
        self.assertEqual(content(self.batch(worker).data)[0, :, 0].tolist(), [0, 0, 1, 2, 3, 4, 5])


PROGRAM = """
import pathlib, sys, millrace
from device_reader import content
worker = millrace.Worker(sys.argv[1], pipeline="s16", device="cuda")
print("attached", flush=True)
for batch in worker:
    for death in sys.argv[2:3]:
        pathlib.Path(death).touch()
    answers = [content(batch.data)[0, :, 0].tolist(), None]
    for death in sys.argv[3:]:
        pathlib.Path(death).touch()
    batch.done(answers)
"""


class Program(WorkerTest):
    pipeline = pipeline("s16")

    def program(self, simulated, *arguments):
        """Starts PROGRAM, which attaches and gets a row. Returns its process, and the stream."""
        program = subprocess.Popen([sys.executable, "-c", PROGRAM, self.url(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env={**os.environ, "MILLRACE_SIMULATED_CUDA": simulated})
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        self.assertEqual(program.stdout.readline(), "attached\n")
        stream = self.stream(pipeline="s16")
        stream.frames(1, 2, 3, 4, 5)
        return program, stream

    def ends(self, where, *arguments):
        program, _ = self.program(*arguments)
        errors = program.communicate(timeout=PATIENCE)[1]
        self.assertEqual(program.returncode, 1, errors)
        self.assertIn("millrace.errors.DeviceError: ", errors)
        self.assertIn(f"in {where}\n", errors)


class Failing(Program):
    def test_a_worker_whose_device_fails_ends_when_it_takes_a_batch(self):
        self.ends("next", "fail=cudaEventRecord:700")

    def test_a_worker_whose_device_fails_ends_when_it_gives_a_batch_back(self):
        death = os.path.join(FOLDER.name, "death")
        self.ends("done", f"dead-when={death}:700", os.path.join(FOLDER.name, "taken"), death)

    def test_if_device_memory_cannot_be_opened_the_worker_copies(self):
        _, stream = self.program("fail=cudaIpcOpenMemHandle:201")
        self.assertEqual(stream.received("result")[0]["data"], [0, 0, 1, 2, 3, 4, 5])


class FailingHere(Program):
    listen = HERE_ONLY

    def test_a_worker_whose_device_fails_ends_when_it_takes_an_array(self):
        death = os.path.join(FOLDER.name, "death_of_taken")
        self.ends("__dlpack__", f"dead-when={death}:719", death)


if __name__ == "__main__":
    unittest.main()
