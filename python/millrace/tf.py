# SPDX-License-Identifier: Apache-2.0
"""Batches of a Dataset for TensorFlow.

    import millrace, millrace.tf

    data = millrace.Dataset("speech", chunk={"size": "100ms"}, dtype="f32", slots=32)
    for batch in data:                          # a loop of your own
        tensors = millrace.tf.tensors(batch)    # eager tensors in the memory of the batch
    for tensors in millrace.tf.dataset(data):   # a tf.data.Dataset
        ...

With a distribution strategy, each replica has its part of the slots:

    strategy.distribute_datasets_from_function(lambda context: millrace.tf.dataset(data, context))
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from millrace.batch import Batch
from millrace.dataset import Dataset
from millrace.rows import Flag

__all__ = ["dataset", "tensors"]

_ALIGNMENT = 64  # bytes
_ARRAYS = ("data", "slot", "flags", "left", "size", "right")


def tensors(batch: Batch) -> dict[str, Any]:
    """Returns the arrays of a batch as eager tensors. Those that are aligned to 64 bytes, such as ``data``, use the
    memory of the batch.

    - data, slot, flags, left, size, right: as in ``Batch``
    - reset: [rows] bool
    - stream: [rows] int64, the number of the stream; -1 in a padding row
    - epoch, step: scalars
    - companions: a dict of tensors, if there are any; for those with ``per``, lengths is another one

    The memory of the batch is written again when its tensors are gone.
    """
    named = {name: _tensor(getattr(batch, name)) for name in _ARRAYS}
    stream = np.full(batch.rows, -1, np.int64)
    numbers = batch.framed["stream"]
    stream[: len(numbers)] = numbers
    found = {
        **named,
        "reset": tf.bitwise.bitwise_and(named["flags"], np.uint8(Flag.RESET)) != 0,
        "stream": tf.constant(stream),
        "epoch": tf.constant(batch.epoch, tf.int64),
        "step": tf.constant(batch.step, tf.int64),
    }
    companions = {name: _tensor(array) for name, array in batch.companions.items()}
    lengths = {name: tf.constant(array) for name, array in batch.lengths.items()}
    return {**found, **({"companions": companions} if companions else {}), **({"lengths": lengths} if lengths else {})}


def dataset(data: Dataset, input_context: Any = None) -> Any:
    """Returns a ``tf.data.Dataset`` of dicts of tensors (``tensors``). It ends at the end of the epoch; the next
    iteration is the next epoch.

    Take all batches of an iteration, because TensorFlow takes some ahead of the loop.

    ``input_context`` is a ``tf.distribute.InputContext``: with R replicas, each replica has 1 / R of the slots, and
    batch j of a step is that of replica j. ``data`` is then that of all replicas: an iteration begins at its position, and
    its end moves it to the next epoch. If an iteration is left early, the next one is that of the next epoch.

    Raises ValueError if the number of replicas does not divide the slots. An error of the data is raised by the
    iteration, as ``tf.errors.UnknownError`` with the text of ``DataError``.
    """
    parts = [data] if input_context is None else _parts(data, input_context)
    if input_context is not None:
        parts[0].load_state_dict(data.state_dict())
    first = parts[0].peek()
    if first is None:
        raise ValueError("the plan has ended")
    example = tensors(first)
    flat = tf.nest.flatten(example)
    running: list[Iterator[Batch]] = []
    remaining = 0
    begun: tuple[int, int] | None = None  # position of `data` with which the last iteration began

    def begin() -> Any:
        nonlocal remaining, begun
        if input_context is not None:
            if begun == (data.epoch, data.step):
                data._move(data.epoch + 1, 0)
            begun = data.epoch, data.step
            for part in parts:
                part.load_state_dict(data.state_dict())
        remaining = sum(map(_batches_of, parts))
        running[:] = map(iter, parts)
        return tf.constant(remaining, tf.int64)

    def take(number: Any) -> list[Any]:
        taken: list[Any] = tf.nest.flatten(tensors(next(running[int(number) % len(parts)])))
        if int(number) == remaining - 1:
            for batches in running:  # to the end of the epoch
                next(batches, None)
            if input_context is not None:
                data._move(parts[0].epoch, 0)
        return taken

    def shaped(number: Any) -> Any:
        taken = tf.py_function(take, [number], [tensor.dtype for tensor in flat])
        for tensor, model in zip(taken, flat, strict=True):  # rows and columns may differ from batch to batch
            axes = len(model.shape)
            tensor.set_shape([None] * min(axes, 2) + list(model.shape[2:]))
        return tf.nest.pack_sequence_as(example, taken)

    steps = tf.data.Dataset.from_tensors(0).flat_map(
        lambda _: tf.data.Dataset.range(tf.ensure_shape(tf.py_function(begin, [], tf.int64), []))
    )
    return steps.map(shaped)


def _parts(data: Dataset, context: Any) -> list[Dataset]:
    """The data of the replicas of this input pipeline."""
    world = context.num_replicas_in_sync
    if world % context.num_input_pipelines:
        raise ValueError(f"{world} replicas cannot share {context.num_input_pipelines} input pipelines equally")
    here = world // context.num_input_pipelines
    first = context.input_pipeline_id * here
    return [data.copy(rank=rank, world=world) for rank in range(first, first + here)]


def _batches_of(data: Dataset) -> int:
    """Number of batches of the next iteration."""
    _, step, steps = data._next_iteration()
    return len(range(step, steps, data._stride))


def _tensor(array: Any) -> Any:
    # TensorFlow ends the process when it computes with memory of another alignment.
    if isinstance(array, np.ndarray) and array.ctypes.data % _ALIGNMENT:
        return tf.constant(array)
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())
