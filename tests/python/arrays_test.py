# SPDX-License-Identifier: Apache-2.0
"""The tensor of a batch in NumPy, PyTorch and JAX: the same memory, nothing is copied."""
import unittest

import jax
import jax.dlpack
import numpy as np
import torch
from millrace import _core
from streams import WorkerTest

SAMPLES = (-32768, -1, 0, 16384)


class Arrays(WorkerTest):
    pipeline = "".join(f'[[pipeline]]\nname = "{dtype}"\ndtype = "{dtype}"\nchunk = {{ size = 4 }}\n'
                       for dtype in ("s16", "f16", "f32"))

    def batches(self):
        """(dtype, values, batch) of each type that a tensor may have."""
        for name, dtype in (("s16", np.int16), ("f16", np.float16), ("f32", np.float32)):
            worker, stream = self.worker(pipeline=name), self.stream(pipeline=name)
            stream.frames(*SAMPLES)
            scale = 1 if name == "s16" else 32768
            with self.subTest(name):
                yield np.dtype(dtype), [sample / scale for sample in SAMPLES], self.batch(worker)

    def test_numpy_sees_the_memory_of_the_batch(self):
        for dtype, values, batch in self.batches():
            data = batch.data
            self.assertEqual((type(data), data.dtype, data.shape), (np.ndarray, dtype, (1, 4, 1)))
            self.assertEqual(data[0, :, 0].tolist(), [np.float16(v) if dtype == np.float16 else v for v in values])
            self.assertEqual(data.ctypes.data % 256, 0)
            self.assertTrue(data.flags.c_contiguous and data.flags.writeable)
            self.assertEqual(np.from_dlpack(data).ctypes.data, batch.data.ctypes.data)
            batch.data[0, 0, 0] = 7
            self.assertEqual(data[0, 0, 0], 7)

    def test_the_columns_are_the_memory_of_the_batch_too(self):
        for dtype, values, batch in self.batches():
            for column, kind in (("slot", np.int32), ("flags", np.uint8), ("reset", np.bool_)):
                seen = getattr(batch, column)
                self.assertEqual((type(seen), seen.dtype, seen.shape), (np.ndarray, kind, (1,)))
                self.assertEqual(seen.ctypes.data, getattr(batch, column).ctypes.data)
            self.assertNotEqual(batch.reset.ctypes.data, batch.flags.ctypes.data)

    def test_torch_sees_the_memory_of_the_batch(self):
        for dtype, values, batch in self.batches():
            tensor = torch.from_dlpack(batch.data)
            self.assertEqual((str(tensor.dtype), tensor.shape), (f"torch.{dtype}", (1, 4, 1)))
            self.assertEqual(tensor.data_ptr(), batch.data.ctypes.data)
            for column in ("slot", "left", "size", "right", "flags"):
                array = getattr(batch, column)
                self.assertEqual(torch.from_dlpack(array).data_ptr(), array.ctypes.data)

    def test_a_bfloat16_of_an_answer_has_only_the_digits_that_it_needs(self):
        values = torch.tensor([0.1, 1 / 3, -3.39e38, 1e-39], dtype=torch.bfloat16)
        plain = _core.plain_values(values)
        self.assertEqual(plain[:2], [0.1, 0.334])
        self.assertTrue(torch.equal(torch.tensor(plain, dtype=torch.bfloat16), values))

    def test_jax_sees_the_memory_of_the_batch(self):
        jax.config.update("jax_platforms", "cpu")
        for dtype, values, batch in self.batches():
            array = jax.dlpack.from_dlpack(batch.data)
            self.assertEqual((array.dtype, array.shape), (dtype, (1, 4, 1)))
            self.assertEqual(array.unsafe_buffer_pointer(), batch.data.ctypes.data)


if __name__ == "__main__":
    unittest.main()
