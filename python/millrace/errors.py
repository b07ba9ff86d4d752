# SPDX-License-Identifier: Apache-2.0
"""The exceptions of workers, clients and data sets, and ``Failure``, the answer to a row that failed."""

import json
from typing import Any


class WorkerError(Exception):
    """Base of the worker's errors: the service refused the worker, ended its connection, or was lost."""


class ServiceGone(WorkerError):
    """The service could not be reached, or the connection to it was lost."""


class Refused(WorkerError):
    """The service refused the worker, or ended its connection with a reason.

    ``code`` is the reason (docs/worker_protocol.md): protocol, timeout, version, pipeline, device, no_room, stopping
    or internal. A server of batches also has plan, conflict and data.
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class PlanRefused(Refused, ValueError):
    """A server of batches has no plan for this rank and world, or its epoch has no step; ``code`` is plan."""


class DeviceError(Refused):
    """The worker's device does not exist or has failed; ``code`` is device.

    If memory was short, or CUDA refused the call, the call may be repeated. A device that has failed cannot be used
    again in this process, even by a new Worker: end the process and start another one.
    """


class StreamGone(LookupError):
    """A message cannot be sent to the client of a stream: the stream has no slot of this worker. It has ended, has moved
    to another worker, or was never here, or the service is lost."""


class ClientError(Exception):
    """Base of the client's errors: a stream was not opened, or cannot continue."""


class StreamRefused(ClientError):
    """The service did not open the stream.

    ``code`` is the reason (docs/protocol.md). ``parameter`` is the argument of ``open`` that is wrong, or None.
    ``retry_after`` is the time in seconds after which to try again, or None.
    """

    def __init__(self, message: str, code: str, parameter: str, retry_after: float | None) -> None:
        super().__init__(message)
        self.code = code
        self.parameter = parameter or None
        self.retry_after = retry_after


class StreamFailed(ClientError):
    """The service ended the stream; ``code`` is the reason (docs/protocol.md).

    ``code`` is ``closed`` if this side closed the stream, or sent when it was already over.
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class ConnectionLost(ClientError):
    """The service could not be reached, or the connection to it was lost."""


class DataError(Exception):
    """A stream of a Dataset cannot be delivered. It comes again when the same step is taken again.

    ``reason`` is read (the file is missing or damaged), format (values that are not finite, or another format), length
    (another length than in the catalog) or function (``augment`` failed). ``stream`` and ``name`` are the number and
    the name of the stream, ``epoch`` and ``step`` the step that needs it. The text has the file or the traceback.
    """

    def __init__(self, message: str, reason: str, stream: int, name: str, epoch: int, step: int) -> None:
        super().__init__(message)
        self.reason = reason
        self.stream = stream
        self.name = name
        self.epoch = epoch
        self.step = step

    def __reduce__(self) -> tuple[Any, ...]:
        return DataError, (str(self), self.reason, self.stream, self.name, self.epoch, self.step)


class PlanDiffers(ValueError):
    """Ranks, or a checkpoint and its Dataset, have different plans: other streams, another rule, or another seed."""


class Failure(Exception):
    """The answer to a row that the model could not process. The service logs its text, and the client receives the
    error ``worker_failed``. Any other exception may be such an answer too."""


def error_of(message: str, code: str, details: str = "") -> WorkerError | DataError:
    """Returns the exception for an error of the C++ library. ``code`` is empty for a lost service. ``details`` is a JSON
    object of a server of batches, or empty."""
    if code == "data" and details:
        try:
            place = json.loads(details)
            return data_error(*(place[key] for key in ("message", "fault", "stream", "name", "epoch", "step")))
        except (ValueError, KeyError, TypeError):
            return Refused(f"{message} (the server sent no valid place)", code)
    if code == "device":
        return DeviceError(message, code)
    if code == "plan":
        return PlanRefused(message, code)
    return Refused(message, code) if code else ServiceGone(message)


def data_error(message: str, reason: str, stream: int, name: str, epoch: int, step: int) -> DataError:
    """Returns the exception for an error of the C++ library."""
    text = f"stream {stream} ({name}), epoch {epoch}, step {step}: {message}"
    return DataError(text, reason, stream, name, epoch, step)
