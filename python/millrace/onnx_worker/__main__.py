# SPDX-License-Identifier: Apache-2.0
"""A worker for a model in an ONNX file, without code: a configuration says which inputs and outputs are the chunk, the states and
the answer (docs/onnx.md)."""

import argparse
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from millrace.batch import Batch
from millrace.description import Description, describe
from millrace.errors import WorkerError
from millrace.worker import Worker

try:
    from millrace.onnx_worker.answers import shown_as
    from millrace.onnx_worker.configuration import Configuration, read
    from millrace.onnx_worker.model import Model, session_of
except ModuleNotFoundError as error:
    raise SystemExit(f"millrace-onnx-worker: {error.name} is missing: pip install 'millrace[onnx]'") from None


def answers_of(pipeline: Description, model: Model) -> Callable[[Batch], None]:
    """Returns the function that answers batches. Raises ValueError if the pipeline and the model do not fit."""
    if lines := model.corrections(pipeline):
        raise ValueError(f"it does not fit the model, which needs: {', '.join(lines)}")
    model.allocate(pipeline)
    shown = shown_as(model.signature.answer, pipeline.slots)

    def answer(batch: Batch) -> None:
        answers, marks = shown(batch, model(batch) if batch.rows else None)
        batch.done(answers, marks)

    return answer


def warm(answer: Callable[[Batch], None], batch: Batch) -> None:
    """Raises ValueError if the model fails with a batch that can come, or if its results have no use."""
    try:
        answer(batch)
    except ValueError:  # it says the cause
        raise
    except Exception as error:  # those of ONNX Runtime have no other common class
        raise ValueError(f"the model fails with {batch.rows} rows of {batch.width} columns: {error}") from error


def main() -> None:
    options = argparse.ArgumentParser(prog="millrace-onnx-worker", description=__doc__)
    options.add_argument("model", type=Path, help="the ONNX file")
    options.add_argument("--config", type=Path, help="the configuration; a model with one input and one output needs none")
    options.add_argument("--url", help="unix:PATH or tcp://HOST:PORT of the service (default: on this machine)")
    options.add_argument("--pipeline", default="default", help="pipeline to work for (default: default)")
    options.add_argument("--threads", type=int, default=1, help="threads of the model (default: 1)")
    chosen = options.parse_args()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # also as the first process of a container
    try:
        configuration = read(chosen.config) if chosen.config else Configuration()
        model = Model(session_of(chosen.model, chosen.threads), configuration)
    except (OSError, ValueError) as error:
        options.exit(1, f"millrace-onnx-worker: {error}\n")
    try:
        answer = answers_of(describe(chosen.url, chosen.pipeline), model)
        worker = Worker(chosen.url, pipeline=chosen.pipeline, warm_up=partial(warm, answer))
    except (ValueError, WorkerError) as error:
        options.exit(1, f"millrace-onnx-worker: pipeline {chosen.pipeline}: {error}\n")
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # run() handles it: the streams move to other workers first
    with worker:
        worker.run(answer)


if __name__ == "__main__":
    main()
