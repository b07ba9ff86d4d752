# SPDX-License-Identifier: Apache-2.0
"""A service with streams that run in other threads, for tests that wait for batches."""
import array
import asyncio
import json
import logging
import signal
import threading

from harness import PATIENCE, SystemTest, wait_for

import millrace

PIPELINE = """[[pipeline]]
slots = 4
chunk = { size = 4 }
batch = { rows = 4 }
"""


class Stream:
    """A client's stream of s16 frames. Its messages are kept as they come."""

    def __init__(self, service, **parameters):
        self.messages = []
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.connection = self._run(self._open(service, parameters))
        self.reading = asyncio.run_coroutine_threadsafe(self._read(), self.loop)

    async def _open(self, service, parameters):
        return await service.connect(**parameters)

    async def _read(self):
        async for message in self.connection:
            self.messages.append(json.loads(message) if isinstance(message, str) else message)

    def _run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(PATIENCE)

    def frames(self, *samples):
        self._run(self.connection.send(array.array("h", samples).tobytes()))

    def command(self, type, **fields):
        self._run(self.connection.send(json.dumps({"type": type, **fields})))

    def received(self, type, count=1):
        """All messages of this type, when there are at least `count`."""
        def there():
            found = [m for m in self.messages if isinstance(m, dict) and m["type"] == type]
            return found if len(found) >= count else None

        return wait_for(there, f"{count} {type} messages; there are {self.messages}")

    def close(self):
        self._run(self.connection.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(PATIENCE)
        self.loop.close()


class WorkerTest(SystemTest):
    """The base class of tests of workers. Its pipeline has 4 slots and batches of at most 4 rows of 4 frames."""

    pipeline = PIPELINE
    listen = ""  # further keys of [listen]

    def setUp(self):
        self.served = self.service(self.pipeline, self.listen)
        logging.getLogger("millrace").setLevel(logging.ERROR)

    def service(self, *arguments):
        """Ends without a drain: there is no worker left to answer."""
        service = super().service(*arguments)
        self.addCleanup(lambda: service.stop(signal.SIGKILL))
        return service

    def url(self):
        return self.served.workers

    def worker(self, **settings):
        worker = millrace.Worker(self.url(), **settings)
        self.addCleanup(worker.close)
        return worker

    def stream(self, **parameters):
        stream = Stream(self.served, **parameters)
        self.addCleanup(stream.close)
        return stream

    def batch(self, worker):
        batch = worker.next(PATIENCE)
        self.assertIsNotNone(batch, "no batch came")
        return batch

    def one_row(self, worker, *samples):
        """A stream, and a batch of its first row."""
        stream = self.stream()
        stream.frames(*(samples or (1, 2, 3, 4)))
        return stream, self.batch(worker)
