#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One contestant of throughput.py. It reads numbers of batches from its input, takes n batches in a loop, and prints the
seconds for each. A batch is a tensor of `torch` and the control arrays slot, flags and size.

  contestants.py NAME KIND FOLDER        KIND: s16 (WAV files), s16_to_f32, or f32 (arrays)
"""
import ctypes
import itertools
import sys
import time
from pathlib import Path

import corpus
import numpy as np
import torch

RESET = 2
TYPES = {"s16": torch.int16, "s16_to_f32": torch.float32, "f32": torch.float32}
ALL_ROWS = torch.arange(corpus.ROWS, dtype=torch.int32)
SIZES = torch.full((corpus.ROWS,), corpus.WIDTH, dtype=torch.int32)


def converted(data, kind):
    """The values of a chunk or a batch as the model gets them."""
    return data.to(torch.float32).mul_(1 / 32768) if kind == "s16_to_f32" else data


def epochs(loader):
    """The batches of all epochs."""
    while True:
        yield from loader


def millrace(folder, kind, **options):
    import millrace

    streams = millrace.catalogs.NpyFiles(corpus.paths(folder, kind), rate=corpus.RATE) if kind == "f32" else str(folder / "s16")
    dtype = "s16" if kind == "s16" else "f32"
    data = millrace.Dataset(streams, chunk={"size": corpus.WIDTH}, dtype=dtype, slots=corpus.ROWS, seed=1, **options)
    for batch in epochs(data):
        yield tuple(map(torch.from_numpy, (batch.data, batch.slot, batch.flags, batch.size)))


def millrace_mapped(folder, kind):
    return millrace(folder, kind, mapped=True)


def millrace_fills_in_next(folder, kind):
    return millrace(folder, kind, threads=0)


def bare_gather(folder, kind):
    """A loop in C copies each row into one of four tensors. The addresses of the rows are known before."""
    library = ctypes.CDLL(str(folder.parent / "gather.so"))
    gather = {"s16": library.gather_s16, "s16_to_f32": library.gather_s16_to_f32, "f32": library.gather_f32}[kind]
    streams = corpus.mapped(folder, kind)
    base = np.array([stream.ctypes.data for stream in streams], np.uint64)
    which, frame = corpus.order()
    rows = np.ascontiguousarray(base[which] + frame.astype(np.uint64) * streams[0].itemsize)
    flags = torch.from_numpy((frame == 0).astype(np.uint8) * RESET)
    tensors = [torch.empty(corpus.ROWS, corpus.WIDTH, dtype=TYPES[kind]) for _ in range(4)]
    arrays = [(torch.empty_like(ALL_ROWS), torch.empty_like(flags[0]), torch.empty_like(SIZES)) for _ in tensors]
    steps = epochs(range(corpus.STEPS))
    for step, tensor, (slot, flag, size) in zip(steps, itertools.cycle(tensors), itertools.cycle(arrays)):
        gather(ctypes.c_void_p(rows[step].ctypes.data), corpus.ROWS, corpus.WIDTH, ctypes.c_void_p(tensor.data_ptr()))
        slot.copy_(ALL_ROWS)
        flag.copy_(flags[step])
        size.copy_(SIZES)
        yield tensor, slot, flag, size


class Batches(torch.utils.data.Dataset):
    """Each item is a batch, gathered by one call."""

    def __init__(self, folder, kind):
        self.kind = kind
        audio = torch.from_numpy(corpus.whole(folder, kind))
        self.windows = audio.unfold(0, corpus.WIDTH, 1)
        which, frame = corpus.order()
        self.begins = torch.from_numpy(which * corpus.FRAMES + frame)
        self.flags = torch.from_numpy((frame == 0).astype(np.uint8) * RESET)

    def __len__(self):
        return len(self.begins)

    def __getitem__(self, step):
        data = self.windows.index_select(0, self.begins[step])
        return converted(data, self.kind), ALL_ROWS, self.flags[step], SIZES


class Chunks(torch.utils.data.Dataset):
    """Each item is a chunk, as in PyTorch's tutorials."""

    def __init__(self, folder, kind):
        self.kind = kind
        self.streams = list(map(torch.from_numpy, corpus.mapped(folder, kind)))
        which, frame = corpus.order()
        self.chunks = list(zip(which.reshape(-1).tolist(), frame.reshape(-1).tolist()))

    def __len__(self):
        return len(self.chunks)

    def __getitem__(self, number):
        stream, frame = self.chunks[number]
        data = self.streams[stream][frame:frame + corpus.WIDTH]
        return converted(data, self.kind), number % corpus.ROWS, RESET if frame == 0 else 0, corpus.WIDTH


def torch_best(folder, kind):
    return epochs(torch.utils.data.DataLoader(Batches(folder, kind), batch_size=None))


def torch_two_workers(folder, kind):
    return epochs(torch.utils.data.DataLoader(Batches(folder, kind), batch_size=None, num_workers=2, persistent_workers=True))


def torch_documented(folder, kind):
    return epochs(torch.utils.data.DataLoader(Chunks(folder, kind), batch_size=corpus.ROWS))


def grain(folder, kind):
    """A source of whole batches. Without threads, which are slower on one core."""
    import grain as library

    audio = corpus.whole(folder, kind)
    windows = np.lib.stride_tricks.sliding_window_view(audio, corpus.WIDTH)
    which, frame = corpus.order()
    begins, flags = which * corpus.FRAMES + frame, (frame == 0).astype(np.uint8) * RESET
    slots, sizes = ALL_ROWS.numpy(), SIZES.numpy()

    class Source:
        def __len__(self):
            return len(begins)

        def __getitem__(self, step):
            data = windows[begins[step]]
            data = np.multiply(data, np.float32(1 / 32768), dtype=np.float32) if kind == "s16_to_f32" else data
            return data, slots, flags[step], sizes

    options = library.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    loader = library.MapDataset.source(Source()).repeat().to_iter_dataset(options)
    for batch in loader:
        yield tuple(map(torch.from_numpy, batch))


def tf_data(folder, kind):
    import tensorflow as tf

    chunks = corpus.whole(folder, kind).reshape(-1, corpus.WIDTH)
    which, frame = corpus.order()
    numbers = (which * corpus.FRAMES + frame) // corpus.WIDTH
    flags = (frame == 0).astype(np.uint8) * RESET
    table, slots, sizes = tf.constant(chunks), tf.constant(ALL_ROWS.numpy()), tf.constant(SIZES.numpy())

    def gather(rows, flag):
        data = tf.gather(table, rows)
        data = tf.cast(data, tf.float32) * (1 / 32768) if kind == "s16_to_f32" else data
        return data, slots, flag, sizes

    steps = tf.data.Dataset.from_tensor_slices((numbers, flags)).repeat().map(gather).prefetch(2)
    for batch in steps:
        yield tuple(torch.from_dlpack(tf.experimental.dlpack.to_dlpack(tensor)) for tensor in batch)


def tf_data_reads(folder, kind):
    """The WAV files, decoded by TensorFlow. Its rows have no slots: they are those of 64 files at a time."""
    import tensorflow as tf

    def chunks(path):
        samples, _ = tf.audio.decode_wav(tf.io.read_file(path))
        if kind == "s16":
            samples = tf.cast(samples * 32768, tf.int16)
        return tf.data.Dataset.from_tensor_slices(tf.reshape(samples, [-1, corpus.WIDTH]))

    files = tf.data.Dataset.from_tensor_slices([str(path) for path in corpus.paths(folder, "s16")]).shuffle(corpus.STREAMS)
    flags = torch.full((corpus.ROWS,), RESET, dtype=torch.uint8)
    for batch in files.interleave(chunks, cycle_length=corpus.ROWS).batch(corpus.ROWS, drop_remainder=True).repeat().prefetch(2):
        yield torch.from_dlpack(tf.experimental.dlpack.to_dlpack(batch)), ALL_ROWS, flags, SIZES


CONTESTANTS = {each.__name__: each for each in (
    millrace, millrace_mapped, millrace_fills_in_next, bare_gather, torch_best, torch_two_workers, torch_documented, grain, tf_data,
    tf_data_reads)}


def main():
    name, kind, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    torch.set_num_threads(1)
    batches = CONTESTANTS[name](folder, kind)
    first = next(batches)
    assert first[0].shape[:2] == (corpus.ROWS, corpus.WIDTH) and first[0].dtype == TYPES[kind], first[0]
    assert first[2].tolist() == [first[2][0]] * corpus.ROWS and int(first[2][0]) & RESET
    print("ready", flush=True)
    for line in sys.stdin:
        begin = time.perf_counter()
        for _ in itertools.islice(batches, int(line)):
            pass
        print(time.perf_counter() - begin, flush=True)


if __name__ == "__main__":
    main()
