# SPDX-License-Identifier: Apache-2.0
"""What a client keeps to."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClientSettings:
    """Bounds in bytes for each stream, times in seconds; each above 0."""

    #: What was sent and could not go out yet; from there on sending waits.
    unsent: int = 64 << 10
    #: Results that nobody has taken yet; there the stream is held up until half of them are taken.
    untaken: int = 1 << 20
    #: Of that, with nothing taken; then it fails as slow_reader.
    taking: float = 10
    #: Until the service has answered.
    connect: float = 10
    #: Of silence; then the service hears that we live.
    keepalive: float = 10
    #: Over ws:// a stream is lost when the service's host acknowledges none of our bytes for this long; over
    #: tcp:// when the service answers no heartbeat, at most 2 s later, and after 30 s of silence at the latest.
    silence: float = 30
