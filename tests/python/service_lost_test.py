# SPDX-License-Identifier: Apache-2.0
"""A service that refuses a worker, is lost, stops or comes back; a worker that leaves or is interrupted."""
import contextlib
import os
import signal
import socket
import threading
import unittest
from unittest import mock

from harness import PATIENCE, wait_for
from streams import WorkerTest

import millrace
from millrace import _core


def again(service, change=("", "")):
    """Starts the service again with this change of its configuration. Its worker sees the end of the first process."""
    with open(service.config) as file:
        text = file.read()
    with open(service.config, "w") as file:
        file.write(text.replace(*change))
    service.again()


class Refusals(WorkerTest):
    def test_a_missing_service_is_an_error_with_its_address(self):
        with self.assertRaisesRegex(millrace.ServiceGone, "no service at unix:/nowhere/at/all"):
            millrace.Worker("unix:/nowhere/at/all", wait=0)

    def test_an_address_that_is_not_for_workers_is_named(self):
        for url in "http://127.0.0.1", "ws://127.0.0.1:8080", "tcp://127.0.0.1":
            with self.assertRaisesRegex(ValueError, f'"{url}" must be .*tcp://HOST:PORT'):
                millrace.Worker(url)
        with self.assertRaisesRegex(millrace.ServiceGone, "not to a port for clients"):
            millrace.Worker(f"tcp://127.0.0.1:{self.served.zeromq_port}")

    def test_a_refusal_has_its_code(self):
        with self.assertRaisesRegex(millrace.Refused, "elsewhere") as caught:
            millrace.Worker(self.served.workers, pipeline="elsewhere")
        self.assertEqual(caught.exception.code, "pipeline")
        self.assertIsInstance(caught.exception, millrace.WorkerError)


class Losses(WorkerTest):
    def test_without_reattach_a_lost_service_is_an_exception(self):
        worker = self.worker(reattach=False)
        self.served.stop(signal.SIGKILL)
        for _ in range(2):
            with self.assertRaisesRegex(millrace.ServiceGone, "the connection"):
                worker.next(PATIENCE)

    def test_done_on_a_batch_of_a_lost_service_has_no_effect(self):
        worker = self.worker(reattach=False)
        _, batch = self.one_row(worker)
        self.served.stop(signal.SIGKILL)
        with self.assertRaises(millrace.ServiceGone):
            worker.next(PATIENCE)
        batch.done(["late"])
        with self.assertRaises(RuntimeError):
            batch.done(["later"])

    def test_a_worker_attaches_again_when_its_service_is_back(self):
        worker = self.worker()
        _, batch = self.one_row(worker)
        batch.done()
        _, batch = self.one_row(worker)  # the service is lost during this batch
        waiting = threading.Thread(target=again, args=(self.served,))
        waiting.start()
        self.assertIsNone(worker.next(0.5))
        waiting.join()
        batch.done(["without effect"])
        wait_for(lambda: worker.next(0.1) is None and worker.attachments == 2, "the worker to attach")
        _, batch = self.one_row(worker)
        self.assertEqual((batch.reset.tolist(), batch.framed[0].reason), ([True], "start"))
        batch.done(["again"])

    def test_a_service_that_comes_back_with_another_shape_is_an_error(self):
        worker = self.worker()
        again(self.served, ("slots = 4", "slots = 5"))
        with self.assertRaisesRegex(millrace.Refused, "another shape"):
            worker.next(PATIENCE)

    def test_a_service_that_does_not_come_back_in_time_is_an_exception(self):
        worker = self.worker(reattach=0.3)
        self.served.stop(signal.SIGKILL)
        with self.assertRaisesRegex(millrace.ServiceGone, "no service at"):
            while worker.next(0.1) is None:
                pass

    def test_without_reattach_a_service_that_stops_ends_the_batches(self):
        worker = self.worker(reattach=False)
        self.served.stop()
        self.assertEqual(list(worker), [])
        self.assertIsNone(worker.next())

    def test_a_worker_attaches_again_after_its_service_has_stopped(self):
        worker = self.worker()
        self.served.stop()
        self.served.again()
        self.assertIsNone(worker.next(0.1))
        wait_for(lambda: worker.next(0.1) is None and worker.attachments == 2, "the worker to attach")

    def test_a_worker_that_closes_leaves_its_rows_to_the_next(self):
        stream = self.stream()
        with self.worker() as worker:
            stream.frames(1, 2, 3, 4)
            self.batch(worker)
        self.assertIsNone(worker.next())
        batch = self.batch(self.worker())
        self.assertEqual((batch.framed[0].seq, batch.framed[0].reason), (0, "worker_lost"))
        batch.done(["done"])
        self.assertEqual(stream.received("result")[0]["data"], "done")

    def test_an_exception_in_the_block_of_a_worker_is_logged(self):
        with self.assertLogs("millrace") as logs, contextlib.suppress(ValueError), self.worker():
            raise ValueError("no such model")
        self.assertEqual(logs.output, ["ERROR:millrace:the worker closes: ValueError: no such model"])


class Attempts(WorkerTest):
    """Attempts to attach again. Calls of other threads meanwhile come between two attachments of the worker."""

    def lost(self):
        """A worker whose service has been lost, and is back."""
        worker = self.worker()
        again(self.served)
        return worker

    def meanwhile(self, ask):
        """Calls `ask` while a worker attaches again, as another thread may."""
        def attach(*settings):
            attached.append(real(*settings))
            ask()
            return attached[-1]

        attached, real = [], _core.Attachment
        patch = mock.patch.object(_core, "Attachment", attach)
        patch.start()
        self.addCleanup(patch.stop)
        return attached

    def test_a_worker_that_never_waits_attaches_again_too(self):
        worker = self.lost()
        wait_for(lambda: worker.next(0) is None and worker.attachments == 2, "the worker to attach")

    def test_the_pauses_between_attempts_do_not_depend_on_the_timeout_of_next(self):
        worker = self.worker()
        self.served.stop(signal.SIGKILL)
        attempts, clock = [], FakeTime()

        def attach(*_):
            attempts.append(clock.now)
            raise millrace.ServiceGone("no service")

        with mock.patch.object(millrace.worker, "time", clock), mock.patch.object(millrace.outage, "time", clock), \
                mock.patch.object(_core, "Attachment", attach):
            while clock.now < 60:
                self.assertIsNone(worker.next(0.01))
        pauses = [after - before for before, after in zip(attempts, attempts[1:])]
        for least, pause in zip((0.1, 0.2, 0.4, 0.8, 1.6, *[2.5] * len(pauses)), pauses):
            self.assertTrue(least - 1e-6 <= pause <= 2 * least + 0.02, pauses)
        self.assertGreater(len(pauses), 8)

    def test_an_interruption_while_a_worker_attaches_takes_effect(self):
        worker = self.lost()
        self.meanwhile(worker.interrupt)
        self.assertIsNone(worker.next(PATIENCE))
        self.assertEqual(worker.attachments, 2)
        self.one_row(worker)[1].done()

    def test_a_worker_that_is_closed_while_it_attaches_is_detached(self):
        worker = self.lost()
        self.meanwhile(worker.close)
        self.assertIsNone(worker.next(PATIENCE))
        self.await_none_attached()

    def test_a_worker_that_finds_another_shape_detaches(self):
        worker = self.worker()
        again(self.served, ("slots = 4", "slots = 5"))
        attached = self.meanwhile(lambda: None)
        with self.assertRaisesRegex(millrace.Refused, "another shape"):
            worker.next(PATIENCE)
        self.await_none_attached()
        self.assertEqual(len(attached), 1)  # which still exists, and holds no slot

    def await_none_attached(self):
        wait_for(lambda: "pipeline default " in self.served.get("/readyz")[1], "no worker to be attached")


def listener_at(url):
    """A listener at the address of the service, which accepts connections."""
    kind, place = url.split(":", 1)
    if kind == "unix":
        os.unlink(place)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(place)
    else:
        host, port = place.removeprefix("//").rsplit(":", 1)
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, int(port)))
    listener.listen()
    listener.settimeout(PATIENCE)
    return listener


class Silence(WorkerTest):
    """At the address of the service, a program listens that never answers. Each call takes effect before a patient attempt to
    attach, which began earlier, has ended by itself."""

    def setUp(self):
        super().setUp()
        self.lost, self.place = self.worker(), self.url()
        self.served.stop(signal.SIGKILL)
        self.listener, self.connections = listener_at(self.place), []
        self.addCleanup(lambda: [each.close() for each in (self.listener, *self.connections)])
        with self.assertLogs("millrace") as logs:
            wait_for(lambda: self.lost.next(0) is None and logs.output, "the service to be lost")
        over = threading.Event()
        self.patient = threading.Thread(target=self.attempt, args=(over,))
        self.patient.start()
        self.addCleanup(self.patient.join)
        self.addCleanup(over.set)
        self.accept()

    def attempt(self, over):
        def meanwhile():
            if over.is_set():
                raise TimeoutError

        with contextlib.suppress(TimeoutError, millrace.ServiceGone):
            _core.Attachment(self.place, "default", "patient", 2, "host", 0, lambda _: None, meanwhile)

    def accept(self):
        self.connections.append(self.listener.accept()[0])

    def while_attaching(self, ask):
        asking = threading.Thread(target=lambda: (self.accept(), ask()))
        asking.start()
        self.addCleanup(asking.join)

    def assert_soon(self):
        self.assertTrue(self.patient.is_alive(), "it took as long as an attempt does by itself")

    def test_next_keeps_its_timeout_while_the_worker_attaches_again(self):
        self.assertIsNone(self.lost.next(0.3))
        self.assert_soon()
        self.accept()

    def test_interrupt_and_bye_end_an_attempt_to_attach_again(self):
        for ask in self.lost.interrupt, self.lost.bye:
            self.while_attaching(ask)
            self.assertIsNone(self.lost.next())
        self.assert_soon()

    def test_close_ends_an_attempt_to_attach_again(self):
        self.while_attaching(self.lost.close)
        self.assertEqual(list(self.lost), [])
        self.assert_soon()

    def test_ctrl_c_ends_an_attempt_to_attach(self):
        self.while_attaching(lambda: os.kill(os.getpid(), signal.SIGINT))
        with self.assertRaises(KeyboardInterrupt):
            millrace.Worker(self.place)
        self.assert_soon()


class FakeTime:
    """Replaces the clock of the worker: time passes only in sleep()."""

    now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


class Leaving(WorkerTest):
    def test_a_worker_that_sends_bye_ends_when_its_streams_have_moved(self):
        leaving, staying = self.worker(), None
        stream, batch = self.one_row(leaving)
        staying = self.worker()
        leaving.bye()
        batch.done()
        stream.command("flush")
        for batch in leaving:
            batch.done()
        stream.frames(5, 6, 7, 8)
        self.assertEqual(self.batch(staying).framed[0].reason, "worker_lost")

    def test_interrupt_ends_one_wait_for_a_batch(self):
        worker = self.worker()
        threading.Timer(0.1, worker.interrupt).start()
        self.assertIsNone(worker.next(PATIENCE))
        worker.interrupt()
        self.assertEqual(list(worker), [])
        self.one_row(worker)[1].done()

    def test_interrupt_ends_the_wait_for_a_lost_service(self):
        worker = self.worker()
        self.served.stop(signal.SIGKILL)
        threading.Timer(0.1, worker.interrupt).start()
        self.assertIsNone(worker.next())

    def test_next_returns_none_after_its_timeout(self):
        self.assertIsNone(self.worker().next(0))
        self.assertIsNone(self.worker().next(0.01))


class Signals(WorkerTest):
    def signal_soon(self, which):
        threading.Timer(0.1, os.kill, (os.getpid(), which)).start()

    def test_ctrl_c_ends_the_wait_for_a_batch(self):
        worker = self.worker()
        with self.assertRaises(KeyboardInterrupt):
            self.signal_soon(signal.SIGINT)
            worker.next(PATIENCE)
        self.one_row(worker)[1].done()

    def test_ctrl_c_while_an_exception_is_created_takes_effect(self):
        def interrupted(*_):
            signal.raise_signal(signal.SIGINT)

        with mock.patch("millrace.errors.error_of", interrupted), self.assertRaises(KeyboardInterrupt):
            self.worker(pipeline="elsewhere")

    def test_a_signal_handler_that_calls_bye_ends_a_waiting_worker(self):
        worker = self.worker()
        before = signal.signal(signal.SIGTERM, lambda *_: worker.bye())
        self.addCleanup(signal.signal, signal.SIGTERM, before)
        self.signal_soon(signal.SIGTERM)
        self.assertEqual(list(worker), [])


if __name__ == "__main__":
    unittest.main()
