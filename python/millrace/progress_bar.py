# SPDX-License-Identifier: Apache-2.0
"""Progress in the terminal or in a notebook. It uses tqdm, if that is installed."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

_QUIET = 0.5  # seconds before a bar is shown: an index that is made faster shows none


def bar_of(total: int, done: int, name: str, unit: str) -> Any:
    """A bar of tqdm, or lines. In a log, each change of a bar would be text behind the one before."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _Lines(total, done, name)
    if sys.stderr.isatty() or _is_of_notebook(tqdm):
        return tqdm(total=total, initial=done, desc=name, unit=unit)
    return _Lines(total, done, name)


def _is_of_notebook(bar: Any) -> bool:
    return any(base.__module__ == "tqdm.notebook" for base in bar.__mro__)


@contextlib.contextmanager
def index_progress(wanted: bool) -> Iterator[Callable[[int, int], None]]:
    """Gives a function that shows the progress of an index: (done, total)."""
    began, bar = time.monotonic(), None

    def show(done: int, total: int) -> None:
        nonlocal bar
        if bar is None:
            if not wanted or time.monotonic() - began < _QUIET or done >= total:
                return
            bar = bar_of(total, 0, "index", "file")
        bar.update(done - bar.n)

    try:
        yield show
    finally:
        if bar is not None:
            bar.close()


class _Lines:
    """On a terminal a line that is rewritten, elsewhere one every 10 s: the functions of tqdm's bar that are used here."""

    def __init__(self, total: int, done: int, name: str) -> None:
        self._total, self.n, self._name, self._text = total, done, name, ""
        self._begin, self._end, self._period = ("\r\x1b[K", "", 0.2) if sys.stderr.isatty() else ("", "\n", 10.0)
        self._printed = time.monotonic()

    def update(self, more: int) -> None:
        self.n += more
        if time.monotonic() - self._printed >= self._period:
            self._print(self._end)

    def set_postfix_str(self, text: str, refresh: bool) -> None:
        self._text = text

    def close(self) -> None:
        self._print("\n")

    def _print(self, end: str) -> None:
        self._printed = time.monotonic()
        print(f"{self._begin}{self._name}: {self.n}/{self._total} {self._text}".rstrip(), end=end, file=sys.stderr, flush=True)
