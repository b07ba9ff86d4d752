# SPDX-License-Identifier: Apache-2.0
"""Limits of a client."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClientSettings:
    """Limits of a client: sizes in bytes per stream, times in seconds. Each number must be positive."""

    #: Bytes that wait to be written to the service. At this limit ``send`` waits.
    unsent: int = 64 << 10
    #: Bytes of events that wait to be received by the program. At this limit the stream is held up until half of
    #: them are received.
    untaken: int = 1 << 20
    #: How long a stream may be held up while the program receives no event. Then it fails as slow_reader.
    taking: float = 10
    #: How long the service may take to answer when a stream is opened.
    connect: float = 10
    #: Time without sending after which the client sends a keepalive.
    keepalive: float = 10
    #: Time without a sign of life of the service after which a connection is lost. Signs of life over ws://: its
    #: host acknowledges sent bytes, or a message arrives. Over tcp://: it answers a heartbeat; the loss is detected
    #: at most 2 s later, and after 30 s of silence at the latest. A stream over ws:// that survives waits half as long.
    silence: float = 30
    #: True: streams survive their connection, if the service allows it. The client connects again, and no frame and
    #: no result is lost or repeated (``Resumed``).
    resume: bool = True
    #: Time without a connection after which such a stream is lost.
    resume_window: float = 15
