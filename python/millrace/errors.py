# SPDX-License-Identifier: Apache-2.0
"""What can go wrong between a worker or a client and its service, and what a worker may say of a row."""


class WorkerError(Exception):
    """The service refused the worker, cut it, or is gone."""


class ServiceGone(WorkerError):
    """The service could not be reached, or the connection to it was lost."""


class Refused(WorkerError):
    """The service refused the worker, or ended its connection and said why.

    ``code`` is one of docs/worker_protocol.md: protocol, timeout, version, pipeline, device, no_room,
    stopping, internal.
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class DeviceError(Refused):
    """The device that the worker was to compute on is not there, or failed; ``code`` is device.

    A want of memory passes. One that has failed is of no use to this process any more, and no new Worker
    mends that: end it, and let what started it start another.
    """


class ClientError(Exception):
    """A client's stream was not opened, or cannot go on."""


class StreamRefused(ClientError):
    """The service did not open the stream.

    ``code`` is one of docs/protocol.md, ``parameter`` the one of ``open`` that is at fault, or None,
    ``retry_after`` when it is worth to come again, in seconds, or None.
    """

    def __init__(self, message: str, code: str, parameter: str, retry_after: float | None) -> None:
        super().__init__(message)
        self.code = code
        self.parameter = parameter or None
        self.retry_after = retry_after


class StreamFailed(ClientError):
    """The service ended the stream; ``code``, one of docs/protocol.md, says why. Or something was
    sent when it was over already, or it was closed here: ``closed``."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class ConnectionLost(ClientError):
    """The service could not be reached, or the connection to it was lost."""


class Failure(Exception):
    """The answer to a row that the model could not process. Its text is for the service's log; the
    client hears ``worker_failed``. Any other exception is such an answer too."""


def error_of(message: str, code: str) -> WorkerError:
    """The exception for an error of the worker library, whose code is empty where it has none."""
    if code == "device":
        return DeviceError(message, code)
    return Refused(message, code) if code else ServiceGone(message)
