# SPDX-License-Identifier: Apache-2.0
"""Iteration in an event loop over packets that may wait."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterable
from typing import TypeVar

_T = TypeVar("_T")


async def each(packets: AsyncIterable[_T] | Iterable[_T]) -> AsyncGenerator[_T, None]:
    """The items. Those of an iterable that is not async are fetched in a daemon thread, one when it is awaited: the
    program can end while the thread still waits for one, for instance for standard input."""
    if isinstance(packets, AsyncIterable):
        try:
            async for packet in packets:
                yield packet
        finally:
            if isinstance(packets, AsyncGenerator):
                await packets.aclose()
        return
    loop, iterator = asyncio.get_running_loop(), iter(packets)
    asked: queue.SimpleQueue[asyncio.Future[tuple[_T, ...]] | None] = queue.SimpleQueue()

    def settle(future: asyncio.Future[tuple[_T, ...]], item: tuple[_T, ...], failure: BaseException | None) -> None:
        if future.done():  # cancelled
            return
        if failure:
            future.set_exception(failure)
        else:
            future.set_result(item)

    def fetch() -> None:
        while future := asked.get():
            item: tuple[_T, ...] = ()
            failure = None
            try:
                item = (next(iterator),)
            except StopIteration:
                pass
            except BaseException as raised:
                failure = raised
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(settle, future, item, failure)
        if isinstance(iterator, Generator):
            iterator.close()

    threading.Thread(target=fetch, name="millrace-run", daemon=True).start()
    try:
        while True:
            asked.put(future := loop.create_future())
            if not (item := await future):
                return
            yield item[0]
    finally:
        asked.put(None)
