# SPDX-License-Identifier: Apache-2.0
"""The model, and the states of all slots."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from millrace.batch import Batch
from millrace.description import PipelineProperties
from millrace.onnx_worker.configuration import Configuration
from millrace.onnx_worker.signature import Signature, check_classes, signature_of

Array = NDArray[Any]


def session_of(path: Path, threads: int) -> onnxruntime.InferenceSession:
    """Opens a model. Its threads sleep between batches: the service needs the cores then.

    Raises ValueError if it is no model.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its exceptions have no other common class
        raise ValueError(f"{path}: {error}") from error


class Rule:
    """The chunk rule of a pipeline, as far as the columns of a row depend on it."""

    def __init__(self, chunk: dict[str, Any]) -> None:
        self._left, self._right = chunk.get("left", 0), chunk.get("right", 0)
        self._packed = chunk.get("align") == "packed"

    def body(self, columns: int) -> int:
        """Returns the number of columns of these that are for bodies."""
        return max(int(columns - self._left - self._right), 1)

    def ends(self, batch: Batch) -> Array:
        """Returns the number of columns of each row up to its last frame, at least 1: models may divide by it."""
        return np.maximum((batch.left if self._packed else self._left) + batch.size + batch.right, 1)


class Model:
    """The model, with a line per slot in each of its states, and one more for padding rows. Confined to one thread."""

    def __init__(self, session: onnxruntime.InferenceSession, configuration: Configuration) -> None:
        """Raises ValueError if the configuration does not fit the model."""
        self._session, self._pipeline = session, configuration.pipeline
        self.signature: Signature = signature_of(configuration, session.get_inputs(), session.get_outputs())
        self._kept: dict[int, dict[str, Array]] = {}  # by the number of rows

    def corrections(self, pipeline: PipelineProperties) -> list[str]:
        """Returns what the pipeline must have for this model, without what it has."""
        model, chunk = self.signature, self._pipeline.get("chunk", {})
        lines = []
        dtypes = {"float32": "f32", "float16": "f16", "int16": "s16"}
        if str(model.dtype) not in dtypes:
            raise ValueError(f"input {model.chunk} has the type {model.dtype}; a chunk is float32, float16 or int16")
        if pipeline.dtype != model.dtype:
            lines.append(f'dtype = "{dtypes[str(model.dtype)]}"')
        if "rate" in self._pipeline and pipeline.rate != self._pipeline["rate"]:
            lines.append(f"rate = {self._pipeline['rate']:g}")
        if model.values not in (None, pipeline.values):
            lines.append(f"dim = {model.values}" if model.values != 1 or pipeline.dim else "channels = 1")
        rule = pipeline.chunk
        if not rule.get("step"):  # 0: the next row begins where the last one ends
            rule["step"] = rule.get("size")
        if not chunk.items() <= rule.items():
            keys = ", ".join(f"{key} = {json.dumps(value)}" for key, value in chunk.items())
            lines.append(f"chunk = {{ {keys} }}")
        if model.columns not in (None, pipeline.width):
            lines.append(f"a chunk of {model.columns} frames with its context, not {pipeline.width}")
        return lines

    def allocate(self, pipeline: PipelineProperties) -> None:
        """Makes the states of the slots. Must be called before the first batch."""
        self._rule, self._padding = Rule(pipeline.chunk), pipeline.slots
        self._states = [state.initial.repeat(pipeline.slots + 1, state.axis) for state in self.signature.states]

    def __call__(self, batch: Batch) -> tuple[NDArray[Any], NDArray[Any]]:
        """Computes a batch that has rows. Returns the answers, and how many times of each row are real: the lengths that the
        model gives, or the share of the body that has frames. Without an axis of time, the numbers have no meaning.

        Raises ValueError if the results of the model do not fit its states and the answer, or if the rows of a batch do not.
        """
        slot = batch.slot
        if self._states or self.signature.answer.tokens:
            real = slot[slot != self._padding].tolist()
            if len(set(real)) < len(real):
                raise ValueError('a batch has several rows of a stream, but the model has a state: the pipeline must not have state = "none"')
        begins = slot[batch.reset]
        if len(begins):
            for state, lines in zip(self.signature.states, self._states):
                lines[_at(state.axis, begins)] = state.initial
        answer, lengths = self._compute(batch.data, slot, self._rule.ends(batch) if self.signature.sizes else slot)
        if lengths is None:
            times = answer.shape[1] if answer.ndim > 1 else 1
            body = self._rule.body(self.signature.columns or batch.width)
            lengths = -(-batch.size.astype(np.int64) * times // body)  # rounded up, without the errors of fractions
        return answer, lengths

    def _compute(self, data: Array, slot: Array, ends: Array) -> tuple[Array, Array | None]:
        """``ends``: the number of columns of each row up to its last frame. A model with a fixed number of rows is called
        several times if a batch has more."""
        rows = self.signature.rows or len(slot)
        steps = [slice(at, at + rows) for at in range(0, len(slot), rows)]
        parts = [self._call(data[step], slot[step], ends[step], rows) for step in steps]
        if len(parts) == 1:
            return parts[0]
        answers, lengths = zip(*parts)
        return np.concatenate(answers), None if lengths[0] is None else np.concatenate(lengths)

    def _call(self, data: Array, slot: Array, ends: Array, rows: int) -> tuple[Array, Array | None]:
        model, count = self.signature, len(slot)
        columns = model.columns or data.shape[1]
        if (rows, columns) != data.shape[:2]:
            real, data = data, np.zeros((rows, columns, data.shape[2]), data.dtype)
            data[:count, : real.shape[1]] = real
            slot = np.pad(slot, (0, rows - count), constant_values=self._padding)
            ends = np.pad(ends, (0, rows - count), constant_values=1)
        states = [lines.take(slot, state.axis) for state, lines in zip(model.states, self._states)]
        inputs = {model.chunk: self._laid_out(data), **self._fixed(rows)}
        inputs.update((state.input, lines) for state, lines in zip(model.states, states))
        if model.sizes:
            inputs[model.sizes[0]] = ends.astype(model.sizes[1])
        answer, *results = self._session.run(model.outputs, inputs)
        lengths = results.pop(0) if model.answer.lengths else None
        for state, lines, old, new in zip(model.states, self._states, states, results):
            if new.shape != old.shape:
                raise ValueError(f"output {state.output} is {list(new.shape)}, but its state is {list(old.shape)}")
            lines[_at(state.axis, slot)] = new
        if model.answer.axis:
            answer = np.moveaxis(answer, model.answer.axis, 0)
        if not answer.ndim or len(answer) != rows or lengths is not None and lengths.shape != (rows,):
            raise ValueError(f"output {model.outputs[0]} has no axis {model.answer.axis} of {rows} rows, or its lengths have another shape")
        check_classes(model.answer, answer.shape[-1])
        return answer[:count], None if lengths is None else lengths[:count]

    def _laid_out(self, data: Array) -> Array:
        """Returns the data with the axes of the input. An axis that the input does not have has length 1."""
        order = ["NTC".index(axis) for axis in self.signature.axes]
        return data.transpose(*order, *({0, 1, 2} - set(order))).reshape([data.shape[axis] for axis in order])

    def _fixed(self, rows: int) -> dict[str, Array]:
        """Returns the inputs that never change, for a number of rows."""
        if rows not in self._kept:
            self._kept[rows] = {
                name: np.ascontiguousarray(np.broadcast_to(value, [rows if length is None else length for length in shape]))
                for name, (value, shape) in self.signature.inputs.items()
            }
        return self._kept[rows]


def _at(axis: int, slot: Array) -> tuple[Any, ...]:
    return (slice(None),) * axis + (slot,)
