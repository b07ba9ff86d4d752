# SPDX-License-Identifier: Apache-2.0
"""Workers and streams in the pages of the admin listener and in the log."""
import concurrent.futures
import re
import signal
import unittest

from harness import SystemTest, read_all, run, samples, wait_for
from raw_worker import RawWorker
from zeromq_client import Peer


class Operator(SystemTest):
    def log(self, service, event, **fields):
        """Lines of the log about this event that have all these fields."""
        wanted = [f'event="{event}"', *(f"{key}={value}" for key, value in fields.items())]
        return [line for line in list(service.errors) if all(text in line for text in wanted)]

    def test_workers_are_listed_and_a_lost_worker_is_logged_as_a_warning_with_its_name(self):
        service = self.service('[[pipeline]]\nslots = 4\nchunk = { size = 1600 }\n')
        tap = self.tap(service)
        (worker,) = wait_for(lambda: service.listed("workers"), "the worker")
        self.assertEqual((worker["pipeline"], worker["slots"], worker["slots_used"], worker["remote"], worker["batches"],
                          worker["last_failure"]), ("default", 4, 0, False, 0, None))

        async def stream():
            async with service.connect(id="mic") as connection:
                await connection.send(samples(0, 1600))
                await connection.send('{"type":"end"}')
                return await read_all(connection)

        run(stream())
        wait_for(lambda: service.listed("workers")[0]["batches"] > 0, "the batch to be listed")
        self.assertGreater(service.listed("workers")[0]["compute_p99_s"], 0)
        tap.stop(signal.SIGKILL)
        wait_for(lambda: service.listed("workers") == [], "the worker to be gone")
        wait_for(lambda: self.log(service, "worker lost", level="warning", worker=worker["worker"]), "the warning")
        self.await_metric(service, 1, "millrace_log_messages_total", level="warning")
        self.tap(service)
        (again,) = wait_for(lambda: service.listed("workers"), "the next worker")
        self.assertEqual(again["last_failure"]["why"], "disconnect")

    def test_ready_is_right_at_every_scrape_without_a_request_to_readyz(self):
        service = self.service()
        ready = lambda: service.metric("millrace_ready")
        self.assertEqual(ready(), 0)
        worker = RawWorker(service.workers).attached().beat()
        wait_for(lambda: ready() == 1, "the worker to count")
        worker.close()
        wait_for(lambda: not service.listed("workers"), "the worker to be gone")
        self.assertEqual(ready(), 0)  # even if the previous scrape was a moment ago

    def test_all_workers_that_attach_at_once_are_named_in_the_log(self):
        service = self.service()
        names = [f"gpu-{number}" for number in range(10)]
        for name in names:
            self.addCleanup(RawWorker(service.workers, name=name).attached().beat().close)
        wait_for(lambda: sorted(worker["worker"] for worker in service.listed("workers")) == names, "all to be listed")
        for name in names:  # in its own line, or in the summary line of its second
            wait_for(lambda: [line for line in self.log(service, "worker attached") if re.search(rf"\b{name}\b", line)],
                     f"the name {name} in the log")

    def test_streams_that_end_early_leave_a_log_line_with_the_reason(self):
        service = self.service()
        self.tap(service)

        async def play():
            async with service.connect(id="broken") as connection:
                await connection.send("no JSON")
                await read_all(connection)
            gone = await service.connect(id="gone")
            await gone.recv()
            gone.transport.abort()

        run(play())
        wait_for(lambda: self.log(service, "stream ended", stream="broken", code="schema"), "the broken one")
        wait_for(lambda: self.log(service, "stream aborted", stream="gone"), "the one that is gone")
        self.assertEqual(service.metric("millrace_log_messages_total", level="warning"), 0)

    def test_the_address_of_a_zeromq_client_is_listed_and_in_the_log(self):
        service = self.service()
        with Peer(service.zeromq_port) as peer:
            peer.open(id="mic")
            (stream,) = service.streams()
            self.assertRegex(stream["peer"], r"^127\.0\.0\.1:\d+$")
            peer.open(pipeline="none")
            wait_for(lambda: self.log(service, "stream refused", pipeline="none", peer=stream["peer"]), "the refused stream")

    def test_lists_requested_in_a_loop_are_collected_at_most_ten_times_a_second(self):
        service = self.service()
        self.tap(service)

        async def play():
            async with service.connect(id="mic") as connection:
                await connection.recv()
                await connection.send(samples(0, 800))
                wait_for(lambda: '"signal_s":0.050,' in service.get("/streams")[1], "the packet to be read")
                with concurrent.futures.ThreadPoolExecutor(3) as pool:
                    return list(pool.map(lambda _: service.streams(), range(60)))

        answers = run(play())
        ages = [stream["age_s"] for (stream,) in answers]
        for first, second in zip(sorted(set(ages)), sorted(set(ages))[1:]):
            self.assertGreaterEqual(second - first, 0.099)


if __name__ == "__main__":
    unittest.main()
