# SPDX-License-Identifier: Apache-2.0
"""Workers on a device, as far as that can be tested without one: what arrays there say of themselves,
and what becomes of a worker whose device fails."""
import unittest
import unittest.mock

import numpy as np
import torch
from streams import WorkerTest

import millrace
from millrace.errors import error_of


class Memory:
    """Stands in for the extension's; keeps the streams that it is told of."""

    def __init__(self, shape=(2, 4, 1), dtype="f4"):
        self._about = {"ordinal": 3, "address": 0x7000_0000_0100, "shape": shape, "dtype": dtype}
        self.streams = []
        self.open = True

    def _check(self):
        if not self.open:
            raise RuntimeError("the batch was given back: what was in it is another batch's now")

    def __getattr__(self, name):
        self._check()
        return self._about[name]

    def use_on(self, stream):
        self._check()
        self.streams.append(stream)

    def capsule(self):
        self._check()
        return "the capsule"


def arrays(*arguments):
    memory = Memory(*arguments)
    return memory, millrace.DeviceArray(memory)


class DLPack(unittest.TestCase):
    def test_the_array_says_what_it_is(self):
        for dtype, name in (("f4", "float32"), ("f2", "float16"), ("i2", "int16"), ("i4", "int32"), ("u1", "uint8"), ("b1", "bool")):
            _, array = arrays((7,), dtype)
            self.assertEqual((array.shape, array.dtype), ((7,), np.dtype(name)))
        _, array = arrays()
        self.assertEqual(array.__dlpack_device__(), (2, 3))
        self.assertEqual(repr(array), "<millrace.DeviceArray on cuda:3: (2, 4, 1) float32>")

    def test_the_stream_that_asks_waits_for_the_batch(self):
        for asked, waits in (({}, [1]), ({"stream": None}, [1]), ({"stream": 1}, [1]), ({"stream": 2}, [2]),
                             ({"stream": 0x55550000}, [0x55550000]), ({"stream": np.int64(7)}, [7]), ({"stream": -1}, [])):
            with self.subTest(asked):
                memory, array = arrays()
                self.assertEqual(array.__dlpack__(**asked), "the capsule")
                self.assertEqual(memory.streams, waits)

    def test_what_is_no_stream_is_an_error(self):
        memory, array = arrays()
        for stream, kind in ((0, ValueError), (-2, ValueError), ("1", TypeError), (1.0, TypeError)):
            with self.subTest(stream), self.assertRaises(kind):
                array.__dlpack__(stream=stream)
        self.assertEqual(memory.streams, [])

    def test_it_is_neither_copied_nor_moved(self):
        memory, array = arrays()
        for asked in ({"copy": True}, {"dl_device": (2, 0)}, {"dl_device": (1, 0)}):
            with self.subTest(asked), self.assertRaises(BufferError):
                array.__dlpack__(stream=5, **asked)
        self.assertEqual(memory.streams, [])
        for asked in ({"copy": False}, {"dl_device": (2, 3)}, {"max_version": (1, 1), "copy": None}):
            self.assertEqual(array.__dlpack__(stream=5, **asked), "the capsule")

    def test_torch_asks_as_it_may(self):
        memory, array = arrays()
        with unittest.mock.patch("torch.cuda.current_stream", return_value=unittest.mock.Mock(cuda_stream=77)), \
                self.assertRaisesRegex(Exception, "(?i)capsule"):  # for this one is none
            torch.from_dlpack(array)
        self.assertEqual(memory.streams, [77])

    def test_nothing_is_there_after_done(self):
        memory, array = arrays()
        memory.open = False
        for use in (lambda: array.shape, lambda: array.dtype, lambda: array.__dlpack__(), lambda: array.__dlpack__(stream=-1),
                    lambda: array.__dlpack_device__(), lambda: array.__cuda_array_interface__, lambda: np.asarray(array)):
            with self.assertRaisesRegex(RuntimeError, "given back"):
                use()
        self.assertEqual(repr(array), "<millrace.DeviceArray, given back>")

    def test_numpy_cannot_read_it_and_says_so(self):
        _, array = arrays()
        with self.assertRaisesRegex(TypeError, "cuda:3"):
            np.asarray(array)
        with self.assertRaises(TypeError):
            np.zeros(4) + array


class CudaArrayInterface(unittest.TestCase):
    def test_it_names_the_stream_that_waits_for_the_batch(self):
        memory, array = arrays((2, 4, 1), "i2")
        self.assertEqual(array.__cuda_array_interface__,
                         {"version": 3, "shape": (2, 4, 1), "typestr": "<i2", "data": (0x7000_0000_0100, False),
                          "strides": None, "stream": 1})
        self.assertEqual(memory.streams, [1])

    def test_an_array_without_elements_has_no_address(self):
        _, array = arrays((0, 4, 1), "b1")
        said = array.__cuda_array_interface__
        self.assertEqual((said["typestr"], said["data"]), ("|b1", (0, False)))


class Failing(WorkerTest):
    def test_there_is_no_device_of_that_name(self):
        for device in ("cuda:99", "abacus"):
            with self.subTest(device), self.assertRaisesRegex(millrace.DeviceError, f'no device "{device}" here; there are: host') as raised:
                self.worker(device=device)
            self.assertEqual(raised.exception.code, "device")

    def test_the_host_is_a_device_of_no_number(self):
        worker = self.worker()
        self.assertEqual(worker.device, "host")
        _, batch = self.one_row(worker)
        batch.use_on(1)  # nothing

    def test_a_worker_does_not_attach_again_for_a_device_that_failed(self):
        worker = self.worker()
        failing = unittest.mock.Mock()
        failing.next.side_effect = error_of("cuda:0: an illegal memory access", "device")
        with unittest.mock.patch.object(worker, "_core", failing), \
                self.assertRaisesRegex(millrace.DeviceError, "illegal memory access") as raised:
            worker.next()
        self.assertEqual((raised.exception.code, worker.attachments), ("device", 1))


if __name__ == "__main__":
    unittest.main()
