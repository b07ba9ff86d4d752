# SPDX-License-Identifier: Apache-2.0
"""Messages of clients to the worker, from a client and to a worker that are not ours."""
import json
import tempfile
import threading
import unittest

import worker_wire as wire
from harness import MILLRACE, Process, samples, wait_for
from raw_client import TEXT, frame
from raw_worker import RawWorker
from worker_faults import WorkerFaultTest, packet


def text(message):
    return frame(TEXT, message.encode() if isinstance(message, str) else json.dumps(message).encode())


FLUSH = text({"type": "flush"})


def message(data):
    return text({"type": "message", "data": data})


# A stream whose client and worker are gone ends soon after: the service stops sooner.
PIPELINE = '[[pipeline]]\nchunk = { size = 1600 }\nworker_wait = "300ms"\n'


class ClientMessages(WorkerFaultTest):
    def service(self, pipelines=PIPELINE):
        return super().service(pipelines)

    def opened(self, service, query=""):
        return self.worker(service), self.client(service, query)

    def rows(self, worker, count):
        """[(seq, [data])] of the next rows, and answers them. Batches of a row each."""
        rows = []
        while len(rows) < count:
            batch = worker.batch()
            worker.answer(batch)
            for row in batch.framed + batch.marks:
                rows.append((row.seq, [json.loads(post.data) for post in batch.posts]))
        return rows

    def test_a_message_goes_with_the_next_row_and_keeps_its_place_among_flushes(self):
        worker, client = self.opened(self.service())
        for sent, rows in ((packet(0), [(0, [])]),
                           (message("after 0") + FLUSH, [(1, ["after 0"])]),
                           (message("a") + message({"b": [1.5]}) + FLUSH, [(2, ["a", {"b": [1.5]}])]),
                           (FLUSH + message("late") + packet(1), [(3, []), (4, ["late"])])):
            client.send(sent)
            self.assertEqual(self.rows(worker, len(rows)), rows)

    def test_a_worker_that_ignores_messages_is_not_disturbed(self):
        service = self.service()
        honest, client = self.honest(service), self.client(service)
        for number in range(20):
            client.send(message(["x"] * 100) + packet(number))
        client.send(text({"type": "end"}))
        self.assertEqual([seq for seq, *_ in self.results(client)], list(range(len(honest.rows))))

    def test_a_message_beyond_the_limit_is_rejected_and_the_stream_continues(self):
        worker, client = self.opened(self.service())
        client.send(message("m" * (16 << 10)) + message("m" * ((16 << 10) - 2)) + packet(0))
        rejected = client.message()
        self.assertEqual((rejected["type"], rejected["code"], rejected["frames"]), ("rejected", "too_long", 0))
        self.assertEqual(self.rows(worker, 1), [(0, ["m" * ((16 << 10) - 2)])])

    def test_a_text_beyond_the_limit_and_invalid_json_end_the_stream(self):
        service = self.service()
        for wrong in (message("m" * (17 << 10)), text('{"type":"message","data":[}'), text('{"type":"message","data":NaN}'),
                      text('{"type":"message"}'), text('{"type":"set","options":7}'),
                      text('{"type":"message","data":' + "[" * 33 + "]" * 33 + "}")):
            client = self.client(service)
            client.send(wrong)
            error = client.message()
            self.assertEqual((error["type"], error["code"]), ("error", "schema"))

    def test_ten_thousand_messages_at_once_without_a_row_are_rejected_beyond_the_limit(self):
        service = self.service()
        with self.beside(service) as (good, _):
            worker, client = self.opened(service)
            codes = []

            def read():  # the service does not read a client that leaves its answers unread
                while (got := client.message()) is not None:
                    codes.append(got.get("code"))

            reader = threading.Thread(target=read, daemon=True)
            reader.start()
            for number in range(100):
                client.send(b"".join(message(100 * number + i) for i in range(100)))
            client.send(FLUSH)
            [(_, kept)] = self.rows(worker, 1)
            client.send(text({"type": "end"}))
            self.rows(worker, 1)
            reader.join(30)
            good.row()
        self.assertEqual(codes.count("too_fast"), 10_000 - len(kept))
        self.assertLessEqual(len(kept), (64 << 10) // 65)
        self.assertEqual(kept, list(range(len(kept))))

    def test_ten_thousand_messages_with_rows_between_reach_the_worker_in_order(self):
        worker, client = self.opened(self.service())
        seen = []
        for number in range(100):
            client.send(b"".join(message(100 * number + i) for i in range(100)) + FLUSH)
            for _, data in self.rows(worker, 1):
                seen += data
        self.assertEqual(seen, list(range(10_000)))

    def test_a_worker_that_takes_over_gets_the_current_options(self):
        service = self.service(PIPELINE.replace("300ms", "30s"))
        worker, client = self.opened(service, "?options=%7B%22lang%22%3A%22de%22%7D")
        client.send(text({"type": "set", "options": {"lang": "en", "words": ["Hugo"]}}) + packet(0))
        batch = worker.batch()
        self.assertEqual(batch.opened[0].options, '{"lang":"de"}')
        self.assertEqual([(post.set, json.loads(post.data)) for post in batch.posts],
                         [(True, {"lang": "en", "words": ["Hugo"]})])
        worker.answer(batch)
        client.message()
        worker.hang_up()
        client.send(message("new") + packet(1))
        batch = self.worker(service).batch()
        self.assertEqual(json.loads(batch.opened[0].options), {"lang": "en", "words": ["Hugo"]})
        self.assertEqual([post.data for post in batch.posts], ['"new"'])

    def test_options_beyond_4_kib_together_are_rejected(self):
        worker, client = self.opened(self.service())
        client.send(text({"type": "set", "options": {"a": "a" * 3000}}) + text({"type": "set", "options": {"b": "b" * 3000}})
                    + FLUSH)
        self.assertEqual(client.message()["code"], "too_long")
        self.assertEqual(self.rows(worker, 1), [(0, [{"a": "a" * 3000}])])

    def test_a_worker_on_another_machine_receives_them_too(self):
        self.remote = True
        worker, client = self.opened(self.service())
        client.send(message(1) + packet(0))
        batch = worker.batch()
        self.assertEqual(batch.tensor[:4], samples(0, 2))
        self.assertEqual([(post.position, post.data, post.set) for post in batch.posts], [(0, "1", False)])

    def test_a_replay_gives_the_worker_the_same_messages_with_the_same_rows(self):
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="millrace-posts-"))
        service = self.service(f'[recording]\ndirectory = "{folder}/recording"\n{PIPELINE}record = true\n')
        worker, client = self.opened(service)
        client.send(message("a") + packet(0) + text({"type": "set", "options": {"lang": "en"}}) + FLUSH
                    + message(["b"]) + message({"c": None}) + packet(1) + message("d") + text({"type": "end"}))

        def received(worker):
            """Rows and messages of the stream."""
            rows, posts = [], []
            while len(rows) < 4:
                batch = worker.batch()
                worker.answer(batch)
                rows += [(row.seq, row.begin, row.flags) for row in batch.framed + batch.marks]
                posts += [post[1:] for post in batch.posts]
            return rows, posts

        live = received(worker)
        client.rest()
        worker.close()
        self.assertEqual(service.stop(), 0)
        self.assertEqual(live[1], [(0, 0, '"a"', False), (1, 1600, '{"lang": "en"}', True), (2, 1600, '["b"]', False),
                                   (2, 1600, '{"c": null}', False), (3, 3200, '"d"', False)])
        again = self.service()
        for way, url, workers in (("--workers", f"unix:{folder}/replay.sock", f"unix:{folder}/replay.sock"),
                                  ("--url", f"ws://127.0.0.1:{again.port}", again.workers)):
            with self.subTest(way):
                replay = Process(MILLRACE, "replay", f"{folder}/recording", way, url)
                self.addCleanup(replay.kill)
                if way == "--workers":
                    wait_for(lambda: any("waiting for a worker" in line for line in replay.errors), "the replay to wait")
                other = RawWorker(workers).attached().beat()
                self.addCleanup(other.close)
                self.assertEqual(received(other), live)
                self.assertEqual(replay.wait(), 0, replay.errors)

    def test_a_replay_fails_if_the_service_rejects_a_message(self):
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="millrace-posts-"))
        service = self.service(f'[recording]\ndirectory = "{folder}/recording"\n{PIPELINE}record = true\n')
        self.honest(service)
        client = self.client(service)
        client.send(message("m" * 1990) + packet(0) + text({"type": "end"}))
        client.rest()
        self.assertEqual(service.stop(), 0)
        other = self.service(f'[limits]\ntext = "1KiB"\n{PIPELINE}')
        self.honest(other)
        replay = Process(MILLRACE, "replay", f"{folder}/recording", "--url", f"ws://127.0.0.1:{other.port}")
        self.addCleanup(replay.kill)
        self.assertEqual(replay.wait(), 1)
        self.assertIn("rejected a part: a message to the worker has at most 1024 bytes", "".join(replay.errors))


if __name__ == "__main__":
    unittest.main()
