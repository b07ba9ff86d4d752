# SPDX-License-Identifier: Apache-2.0
"""A DataLoader with processes, and the way of its batches to the process of the model."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
import torch.utils.data

_MESSAGE = 4, 2**19  # batches and bytes of a message, at most
_ALIGNMENT = 64  # bytes
_TYPES = (torch.uint8, torch.bool, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32)

#: Keys to a tensor, its type in NumPy, and its shape.
_Form = tuple[Sequence[str], str, tuple[int, ...]]


class Loader(torch.utils.data.DataLoader[dict[str, Any]]):
    """Gives the batches of a ``millrace.torch.IterableDataset`` in their order, and has a state for checkpoints.

    Its processes send several batches in a message, because a message takes the DataLoader longer than a batch.
    """

    def __init__(self, batches: Any, num_workers: int, **options: Any) -> None:
        super().__init__(batches, batch_size=None, num_workers=num_workers, collate_fn=_as_it_is, **options)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self.dataset.in_messages = self.num_workers > 0
        try:
            given: Iterator[Any] = super().__iter__()  # starts the processes, with copies of the data set
        finally:
            self.dataset.in_messages = False
        return self._given(given) if self.num_workers > 0 else given

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch that was given, and the origin of the plan, as of ``Dataset``."""
        state: dict[str, Any] = self.dataset.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Sets the position of the next pass. Raises ValueError if the plan is another one."""
        self.dataset.load_state_dict(state)

    def _given(self, messages: Iterable[Any]) -> Iterator[dict[str, Any]]:
        for batch in _in_order(messages):
            self.dataset.given = batch["epoch"], batch["step"] + 1
            yield batch


def messages_of(batches: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Lists of the batches of a process, which have at most ``size`` bytes each. Equal for all processes of a plan: the first
    list has one batch, so that the first step does not wait for more, and all others but the last have the same number."""
    most, message = 1, []
    try:
        for batch in batches:
            message.append(batch)
            if len(message) == most:
                yield message
                most, message = max(1, min(_MESSAGE[0], _MESSAGE[1] // size)), []
    except Exception:
        if message:
            yield message
        raise
    if message:
        yield message


def _in_order(messages: Iterable[list[Any]]) -> Iterator[Any]:
    """The batches of all processes, by their steps. Message i of process j comes before that of process j + 1, unless the
    DataLoader has ``in_order=False``."""
    waiting: dict[int, Any] = {}
    step = None
    for message in messages:
        waiting.update((batch["step"], batch) for batch in message)
        step = min(waiting) if step is None else step
        while step in waiting:
            yield waiting.pop(step)
            step += 1
    for step in sorted(waiting):
        yield waiting[step]


def _as_it_is(batch: Any) -> Any:
    return batch


class Sent(dict[str, Any]):
    """A dict of arrays or tensors, and of dicts of them, which becomes a dict of tensors in the process that receives it. They
    are sent in one message. PyTorch sends each tensor in shared memory of its own: for the small tensors of a batch this takes
    about ten times as long."""

    __slots__ = ()

    def __copy__(self) -> "Sent":
        return Sent(self)

    def __reduce_ex__(self, _: Any) -> Any:
        forms: list[_Form] = []
        parts: list[Any] = []
        rest = _without_arrays(self, (), forms, parts)
        return _received, (b"".join(parts), forms, rest)


def _without_arrays(entries: dict[str, Any], keys: tuple[str, ...], forms: list[_Form], parts: list[Any]) -> dict[str, Any]:
    """Moves arrays and tensors into ``forms`` and ``parts``. Returns the other entries."""
    rest = {}
    for key, entry in entries.items():
        array = _array_of(entry)
        if array is not None:
            forms.append(((*keys, key), array.dtype.str, array.shape))
            parts += np.ascontiguousarray(array), bytes(-array.nbytes % _ALIGNMENT)
        elif isinstance(entry, dict):
            rest[key] = _without_arrays(entry, (*keys, key), forms, parts)
        else:
            rest[key] = entry
    return rest


def _array_of(entry: Any) -> Any:
    """None if it has to be sent in another way."""
    if isinstance(entry, torch.Tensor):
        is_plain = entry.dtype in _TYPES and entry.device.type == "cpu" and not entry.requires_grad
        return entry.numpy() if is_plain else None
    return entry if isinstance(entry, np.ndarray) else None


def _received(content: bytes, forms: Sequence[_Form], rest: dict[str, Any]) -> dict[str, Any]:
    """Runs in the receiving process."""
    memory = torch.empty(len(content), dtype=torch.uint8).numpy()  # aligned as PyTorch does it
    memory[:] = np.frombuffer(content, np.uint8)
    begin = 0
    for (*outer, key), dtype, shape in forms:
        entries = rest
        for name in outer:
            entries = entries[name]
        array: Any = np.ndarray(shape, dtype, memory, begin)
        entries[key] = torch.from_numpy(array)
        begin += array.nbytes + -array.nbytes % _ALIGNMENT
    return rest
