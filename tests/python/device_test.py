# SPDX-License-Identifier: Apache-2.0
"""Workers on a device, as far as they can be tested without one: how arrays describe themselves, and what happens to a
worker whose device fails."""
import unittest
import unittest.mock

import numpy as np
import torch
from streams import WorkerTest

import millrace
from millrace.errors import error_of


class Memory:
    """Replaces the class of the extension. Keeps the streams that it gets."""

    def __init__(self, shape=(2, 4, 1), dtype="f4"):
        self._about = {"ordinal": 3, "address": 0x7000_0000_0100, "shape": shape, "dtype": dtype}
        self.streams = []
        self.open = True

    def _check(self):
        if not self.open:
            raise RuntimeError("the batch was given back: its memory has another batch now")

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
    def test_the_array_describes_itself(self):
        for dtype, name in (("f4", "float32"), ("f2", "float16"), ("i2", "int16"), ("i4", "int32"), ("u1", "uint8"), ("b1", "bool")):
            _, array = arrays((7,), dtype)
            self.assertEqual((array.shape, array.dtype), ((7,), np.dtype(name)))
        _, array = arrays()
        self.assertEqual(array.__dlpack_device__(), (2, 3))
        self.assertEqual(repr(array), "<millrace.DeviceArray on cuda:3: (2, 4, 1) float32>")

    def test_the_stream_that_is_given_waits_for_the_batch(self):
        for given, waits in (({}, [1]), ({"stream": None}, [1]), ({"stream": 1}, [1]), ({"stream": 2}, [2]),
                             ({"stream": 0x55550000}, [0x55550000]), ({"stream": np.int64(7)}, [7]), ({"stream": -1}, [])):
            with self.subTest(given):
                memory, array = arrays()
                self.assertEqual(array.__dlpack__(**given), "the capsule")
                self.assertEqual(memory.streams, waits)

    def test_an_invalid_stream_is_an_error(self):
        memory, array = arrays()
        for stream, kind in ((0, ValueError), (-2, ValueError), ("1", TypeError), (1.0, TypeError)):
            with self.subTest(stream), self.assertRaises(kind):
                array.__dlpack__(stream=stream)
        self.assertEqual(memory.streams, [])

    def test_the_array_is_neither_copied_nor_moved(self):
        memory, array = arrays()
        for given in ({"copy": True}, {"dl_device": (2, 0)}, {"dl_device": (1, 0)}):
            with self.subTest(given), self.assertRaises(BufferError):
                array.__dlpack__(stream=5, **given)
        self.assertEqual(memory.streams, [])
        for given in ({"copy": False}, {"dl_device": (2, 3)}, {"max_version": (1, 1), "copy": None}):
            self.assertEqual(array.__dlpack__(stream=5, **given), "the capsule")

    def test_torch_gives_its_current_stream(self):
        memory, array = arrays()
        with unittest.mock.patch("torch.cuda.current_stream", return_value=unittest.mock.Mock(cuda_stream=77)), \
                self.assertRaisesRegex(Exception, "(?i)capsule"):  # because this one is not valid
            torch.from_dlpack(array)
        self.assertEqual(memory.streams, [77])

    def test_after_done_each_access_is_an_error(self):
        memory, array = arrays()
        memory.open = False
        for use in (lambda: array.shape, lambda: array.dtype, lambda: array.__dlpack__(), lambda: array.__dlpack__(stream=-1),
                    lambda: array.__dlpack_device__(), lambda: array.__cuda_array_interface__, lambda: np.asarray(array)):
            with self.assertRaisesRegex(RuntimeError, "given back"):
                use()
        self.assertEqual(repr(array), "<millrace.DeviceArray, given back>")

    def test_numpy_cannot_read_the_array_and_raises_an_error(self):
        _, array = arrays()
        with self.assertRaisesRegex(TypeError, "cuda:3"):
            np.asarray(array)
        with self.assertRaises(TypeError):
            np.zeros(4) + array


class CudaArrayInterface(unittest.TestCase):
    def test_the_interface_names_the_stream_that_waits_for_the_batch(self):
        memory, array = arrays((2, 4, 1), "i2")
        self.assertEqual(array.__cuda_array_interface__,
                         {"version": 3, "shape": (2, 4, 1), "typestr": "<i2", "data": (0x7000_0000_0100, False),
                          "strides": None, "stream": 1})
        self.assertEqual(memory.streams, [1])

    def test_an_array_without_elements_has_no_address(self):
        _, array = arrays((0, 4, 1), "b1")
        interface = array.__cuda_array_interface__
        self.assertEqual((interface["typestr"], interface["data"]), ("|b1", (0, False)))


class Failing(WorkerTest):
    def test_an_unknown_device_is_an_error(self):
        for device in ("cuda:99", "abacus"):
            with self.subTest(device), self.assertRaisesRegex(millrace.DeviceError, f'no device "{device}" on this machine; available: host') as raised:
                self.worker(device=device)
            self.assertEqual(raised.exception.code, "device")

    def test_the_host_is_a_device_without_a_number(self):
        worker = self.worker()
        self.assertEqual(worker.device, "host")
        _, batch = self.one_row(worker)
        batch.use_on(1)  # does nothing

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
