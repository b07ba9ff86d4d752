# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterable, Sequence

def chunks(
    spec: dict[str, int | str], events: Iterable[Sequence[str | int]], rate: float | None
) -> list[list[int]]: ...
def values(
    spec: dict[str, int | str], events: Iterable[Sequence[str | int]], rate: float | None
) -> list[list[int] | None]: ...
