# SPDX-License-Identifier: Apache-2.0
"""Where the worker computes: PyTorch on a GPU or on the host, or NumPy on simulated devices.

Both have the same methods. `launch(batch, table)` puts the check and the model of a batch on the device. It returns a
function that waits for both and returns the answers: for each row the sum of its values, and the number of rows of the
stream since its last RESET. `read()` returns the number of damaged values so far, `free_mib()` the free memory of a real device.
"""
import collections
import contextlib
import ctypes
import time

import millrace
import numpy as np
import ramp

HIDDEN, STEPS = 512, 12  # on a GPU about 40 small kernels, 300 us
READ = 100  # batches between two reads of the events
WATCHED = 20  # number of first batches that are checked for copies and allocations


class TorchDevice:
    """PyTorch on cuda:N, or on the host."""

    def __init__(self, name, graph=False, early=False, model_ms=0):
        """`graph`: the model is a CUDA graph. `early`: it runs on a side stream, and the batch is given back before.
        `model_ms`: time on the device before the batch is read."""
        import torch
        torch.set_grad_enabled(False)
        torch.manual_seed(1)
        self.torch, self.on_host, self.graph, self.model_ms = torch, name == "host", graph, model_ms
        self.place = torch.device("cpu" if self.on_host else name)
        self.taken = self.copied = 0
        self.marks, self.last, self.times = [], None, collections.defaultdict(list)
        hidden = 16 if self.on_host else HIDDEN
        self.features = torch.nn.Linear(ramp.WIDTH, hidden).to(self.place)
        self.cell = torch.nn.GRUCell(hidden, hidden).to(self.place)
        self.side, self.replay = None, None
        if not self.on_host:
            torch.cuda.set_device(self.place)
            self.cycles_per_ms = self._measure_sleep()
            self.side = torch.cuda.Stream() if early else None

    def prepare(self, worker):
        """Allocates the states, and runs the model once, which loads its kernels."""
        torch = self.torch
        dtype, self.scale = (torch.float32, 32768) if worker.dtype.kind == "f" else (torch.int16, 1)
        self.columns = torch.arange(worker.width, device=self.place)
        self.state = torch.zeros(worker.slots + 1, self.cell.hidden_size, device=self.place)
        self.damaged = torch.zeros((), dtype=torch.int64, device=self.place)
        # The input of the graph. Its rows beyond those of a batch are padding.
        self.static = (torch.zeros(worker.rows, worker.width, 1, dtype=dtype, device=self.place),
                       torch.full((worker.rows,), worker.slots, device=self.place),
                       torch.zeros(worker.rows, dtype=torch.bool, device=self.place))
        self.pinned = [torch.zeros(worker.rows, 2, dtype=torch.int64, pin_memory=not self.on_host) for _ in range(4)]
        self._model(*self.static)
        self._synchronize()

    def launch(self, batch, table):
        if len(self.marks) >= READ:
            self.read()
        self.taken += 1
        before, data, slot, reset, usable = self._imported(batch)
        controls = [self.torch.from_dlpack(getattr(batch, name)) for name in ("left", "size", "right", "slot", "flags")]
        if self.side:
            batch.use_on(self.side.cuda_stream)
        with self.torch.cuda.stream(self.side) if self.side else contextlib.nullcontext():
            # Before the pause: the copy of pageable memory may wait for the stream.
            wanted = self.torch.from_numpy(table).to(self.place, non_blocking=True)
            self._sleep()
            self.damaged += ramp.damaged(data[:, :, 0] * self.scale, self.columns, wanted)
            for control, line in zip(controls, wanted[2:]):
                self.damaged += (control != line).sum()
            results = self._replayed(data, slot, reset) if self.graph else self._model(data, slot.long(), reset)
            answers = self.pinned[self.taken % len(self.pinned)][:len(data)]
            answers.copy_(results[:len(data)], non_blocking=True)
            finished = self._mark()
        self.marks.append((before, usable, finished))

        def finish():
            if finished:
                finished.synchronize()
            return answers.tolist()

        return finish

    def read(self):
        self._synchronize()
        for before, usable, finished in self.marks:
            if before:
                self.times["taken_to_usable_us"].append(before.elapsed_time(usable) * 1e3)
                if self.last and not self.side:
                    self.times["gap_us"].append(self.last.elapsed_time(before) * 1e3)
                self.last = finished
        self.marks.clear()
        return int(self.damaged)

    def _imported(self, batch):
        """The arrays of a batch, between two events. They must be in the batch's own memory, without an allocation."""
        torch, watched = self.torch, self.taken <= WATCHED
        allocated = self._allocated() if watched else 0
        before, start = self._mark(), time.perf_counter_ns()
        data, slot = torch.from_dlpack(batch.data), torch.from_dlpack(batch.slot)
        try:
            reset = torch.from_dlpack(batch.reset)
        except RuntimeError:  # PyTorch before 2.2
            reset = torch.from_dlpack(batch.flags).bitwise_and(int(millrace.Flag.RESET)).bool()
        self.times["from_dlpack_us"].append((time.perf_counter_ns() - start) / 1e3)
        usable = self._mark()
        if watched:
            address = batch.data.ctypes.data if self.on_host else batch.data.__cuda_array_interface__["data"][0]
            self.copied += data.data_ptr() != address or allocated != self._allocated()
        return before, data, slot, reset, usable

    def _model(self, data, slot, reset):
        torch = self.torch
        before = torch.where(reset[:, None], torch.zeros_like(self.state[:1]), self.state[slot])
        values = data[:, :, 0] * self.scale
        features, after = self.features(values.float() / 32768), before
        for _ in range(1 if self.on_host else STEPS):
            after = self.cell(features, after)
        after[:, 0] = before[:, 0] + 1  # counts rows
        self.state[slot] = after
        return torch.stack((values.sum(1, dtype=torch.int64), after[:, 0].long()), 1)

    def _replayed(self, data, slot, reset):
        """The results of the CUDA graph, which reads its own input: the batch is copied there, on the stream that replays."""
        if self.replay is None and not self.on_host:
            self.replay = self.torch.cuda.CUDAGraph()
            with self.torch.cuda.graph(self.replay):  # from_dlpack, which waits on the stream, must come before
                self.results = self._model(*self.static)
        for static, given in zip(self.static, (data, slot, reset)):
            static[:len(given)].copy_(given)
        self.static[1][len(slot):] = len(self.state) - 1
        if self.on_host:
            return self._model(*self.static)
        self.replay.replay()
        return self.results

    def free_mib(self):
        """Free memory of the device; None on the host."""
        return None if self.on_host else self.torch.cuda.mem_get_info()[0] >> 20

    def _allocated(self):
        return 0 if self.on_host else self.torch.cuda.memory_allocated()

    def _mark(self):
        if self.on_host:
            return None
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _synchronize(self):
        if not self.on_host:
            self.torch.cuda.synchronize()

    def _measure_sleep(self):
        cycles, most = 20_000_000, 0
        for _ in range(10):  # the first loads the kernel, and the clock of an idle device is slow
            begin = self._mark()
            self.torch.cuda._sleep(cycles)
            end = self._mark()
            end.synchronize()
            most = max(most, cycles / begin.elapsed_time(end))
        return most

    def _sleep(self):
        if self.model_ms and self.on_host:
            time.sleep(self.model_ms / 1e3)
        elif self.model_ms:
            self.torch.cuda._sleep(int(self.model_ms * self.cycles_per_ms))


class SimulatedDevice:
    """NumPy on simulated devices, whose memory the host can read, and on the host."""

    def __init__(self, name, graph=False, early=False, model_ms=0):
        """As TorchDevice. `graph` changes nothing here. With `early`, a copy on a side stream takes the place of the model."""
        self.on_host, self.model_ms = name == "host", model_ms
        self.count = self.copied = 0
        self.times = collections.defaultdict(list)
        self.side = self.copy = None
        if not self.on_host:
            self.cuda = ctypes.CDLL(millrace._core.__file__)  # the simulation's functions
            if early:
                self.side = ctypes.c_void_p()
                self.cuda.cudaStreamCreateWithFlags(ctypes.byref(self.side), 1)

    def prepare(self, worker):
        self.scale = 32768 if worker.dtype.kind == "f" else 1
        self.columns = np.arange(worker.width)
        self.rows = np.zeros(worker.slots + 1, np.int64)
        if self.side:
            self.memory = ctypes.c_void_p()
            size = worker.rows * worker.width * worker.dtype.itemsize
            self.cuda.cudaMalloc(ctypes.byref(self.memory), ctypes.c_size_t(size))

    def launch(self, batch, table):
        start = time.perf_counter_ns()
        data, slot, reset = self._view(batch.data), self._view(batch.slot), self._view(batch.reset)
        self.times["from_dlpack_us"].append((time.perf_counter_ns() - start) / 1e3)
        for name, line in zip(("left", "size", "right", "slot", "flags"), table[2:]):
            self.count += int((self._view(getattr(batch, name)) != line).sum())
        self.rows[slot] = np.where(reset, 0, self.rows[slot]) + 1
        rows = self.rows[slot]
        if self.side:
            self._check_copy()
            batch.use_on(self.side.value)
            self.cuda.cudaMemcpyAsync(self.memory, ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.nbytes), 3, self.side)
            self.copy = self._at(self.memory.value, data.shape, data.dtype), table

        def finish():
            time.sleep(self.model_ms / 1e3)
            values = data[:, :, 0] * self.scale
            self.count += int(ramp.damaged(values, self.columns, table))
            return np.stack((values.sum(1, dtype=np.int64), rows), 1).tolist()

        return finish

    def read(self):
        self._check_copy()
        return self.count

    def free_mib(self):
        return None

    def _check_copy(self):
        """Waits for the copy of the batch that was given back early, and checks the copy."""
        if self.copy:
            self.cuda.cudaStreamSynchronize(self.side)
            data, table = self.copy
            self.count += int(ramp.damaged(data[:, :, 0] * self.scale, self.columns, table))
            self.copy = None

    def _view(self, array):
        if self.on_host:
            return array
        interface = array.__cuda_array_interface__
        self.cuda.cudaStreamSynchronize(ctypes.c_void_p(interface["stream"]))
        return self._at(interface["data"][0], interface["shape"], np.dtype(interface["typestr"]))

    @staticmethod
    def _at(address, shape, dtype):
        memory = (ctypes.c_char * (int(np.prod(shape)) * dtype.itemsize)).from_address(address)
        return np.frombuffer(memory, dtype).reshape(shape)
