# SPDX-License-Identifier: Apache-2.0
"""Faults of the process: signals, invalid configurations, kill and restart. Ids like G3 are those of docs/internals/guarantees.md."""
import asyncio
import concurrent.futures
import contextlib
import json
import os
import signal
import subprocess
import time
import unittest

import websockets

from faults import PACKET, FaultTest
from harness import MILLRACE, PATIENCE, run, samples, wait_for
from raw_client import BINARY, RawClient, frame, upgrade
from raw_worker import RawWorker

# Configurations, and the words that the error line must have: the key, its value, what is allowed.
CONFIGURATIONS = {  # G1
    "text that is not TOML": ("[listen", ["1: "]),
    "an unknown key": ("[listen]\nwebsokcet = 1", ["listen.websokcet", "= 1", "'websocket'"]),
    "an unknown table": ("[listeners]", ["listeners", "'listen'"]),
    "a wrong type": ("[[pipeline]]\nslots = \"4\"", ["pipeline.slots", '"4"', "from 1 to 65536"]),
    "a wrong unit": ('[limits]\nslab_bytes = "1GB"', ["limits.slab_bytes", '"1GB"', "MiB, GiB", "to 1TiB"]),
    "no unit": ("[limits]\ndrain = 25", ["limits.drain", "25", "ms, s, min", "from 0s to 1h"]),
    "a size below 0": ('[limits]\nmessage = "-1KiB"', ["limits.message", '"-1KiB"', "from 1KiB to 1MiB"]),
    "a number below 0": ("[[pipeline]]\nslots = -1", ["pipeline.slots", "-1", "from 1 to 65536"]),
    "more than 64 bits": ("[[pipeline]]\nslots = 99999999999999999999", [":2: "]),
    "more rows than slots": ("[[pipeline]]\nslots = 2\nbatch = { rows = 3 }",
                               ["pipeline.batch.rows", "= 3", "at most slots, which is 2"]),
    "a chunk that is longer than the buffer of a stream": ('[[pipeline]]\nchunk = { size = "60s" }',
                                        ["pipeline.chunk", "60s", "limits.stream_buffer is 5s"]),
    "slabs that do not fit": ('[limits]\nslab_bytes = "1MiB"\n[[pipeline]]\nslots = 4096\nbatch = { rows = 4096 }',
                              ["pipeline.batch", "rows = 4096", "limits.slab_bytes"]),
    "one port for two listeners": ('[listen]\nwebsocket = "127.0.0.1:1"\nadmin = "127.0.0.1:1"',
                         ["listen.", "127.0.0.1:1", "must differ"]),
    "an address beyond loopback": ('[listen]\nwebsocket = "0.0.0.0:80"', ["listen.websocket", "0.0.0.0:80", "plain = true"]),
    "a socket's path that is too long": (f'[listen]\nworkers = "unix:/{"a" * 200}"', ["listen.workers", "107 bytes"]),
    "an invalid name of a device": ('[gpu]\ndevices = ["gpu0"]', ["gpu.devices", '["gpu0"]', "auto", "host", "cuda:0"]),
    "two pipelines of one name": ("[[pipeline]]\n[[pipeline]]", ["pipeline.name", "must differ"]),
}


def complaint(*arguments):
    """The exit code and the error lines of a command that should fail."""
    done = subprocess.run([MILLRACE, *arguments], capture_output=True, text=True, timeout=PATIENCE)
    return done.returncode, done.stderr.splitlines()


class Configurations(FaultTest):
    def test_an_invalid_configuration_ends_the_program_before_it_listens_with_one_line(self):  # G1
        service = self.served()  # for its folder, and to check that it is not affected
        file = service.config + ".bad"
        for name, (written, named) in CONFIGURATIONS.items():
            with open(file, "w") as out:
                out.write(written)
            for command in (["check-config", file], ["check-config", "--config", file],
                            ["serve", file], ["serve", "--config", file]):
                with self.subTest(name, command=command[0]):
                    code, lines = complaint(*command)
                    self.assertEqual((code, len(lines)), (1, 1), lines)
                    for word in [file + ":", *named]:
                        self.assertIn(word, lines[0])
        os.remove(file)
        for command in (["check-config", file], ["serve", "--config", file]):
            code, [line] = complaint(*command)
            self.assertEqual(code, 1)
            self.assertIn(f"{file}: cannot be read: No such file or directory", line)

    def test_an_address_of_another_service_ends_the_start_and_stays_with_that_service(self):  # G1
        service = self.served()
        with open(service.config) as file:
            config = file.read()
        ours = {"workers": service.workers, "websocket": f"127.0.0.1:{service.port}",
                "zeromq": f"tcp://127.0.0.1:{service.zeromq_port}", "admin": f"127.0.0.1:{service.admin_port}"}
        with self.unharmed(service) as good:
            for key, address in ours.items():
                with self.subTest(key):
                    theirs = config.replace("workers.sock", "others.sock")
                    theirs = "\n".join(f'{key} = "{address}"' if line.startswith(key) else line
                                       for line in theirs.splitlines())
                    with open(service.config + ".other", "w") as file:
                        file.write(theirs)
                    code, lines = complaint("serve", "--config", service.config + ".other")
                    self.assertEqual((code, len(lines)), (1, 1), lines)
                    self.assertIn(f"listen.{key}: ", lines[0])
                    self.assertIn(address.removeprefix("unix:"), lines[0])
                    good.row()
        RawWorker(service.workers).attached().close()  # its socket still works


class Limits(FaultTest):
    def test_output_that_cannot_be_written_is_an_error(self):
        for arguments in (["check-config"], ["--help"]):
            with self.subTest(arguments), open("/dev/full", "w") as full:
                done = subprocess.run([MILLRACE, *arguments], stdout=full, stderr=subprocess.PIPE, text=True,
                                      timeout=PATIENCE)
                self.assertEqual(done.returncode, 1)
                self.assertIn("cannot write to standard output: No space left on device", done.stderr)

    def test_a_limit_on_file_sizes_refuses_only_workers_whose_slabs_exceed_it(self):  # RLIMIT_FSIZE
        service = self.service(f'[[pipeline]]\nchunk = {{ size = {PACKET} }}\n'
                               '[[pipeline]]\nname = "large"\nchunk = { size = "5s" }\nbatch = { rows = 64 }\n',
                               within=("prlimit", f"--fsize={1 << 20}"))
        self.worker = self.tap(service)
        with self.unharmed(service), RawWorker(service.workers, pipeline="large") as worker:
            self.assertIsNotNone(worker.ended())

    def limit_data(self, service, left):
        """From now on, the service can allocate only `left` more bytes of data."""
        with open(f"/proc/{service.process.pid}/statm") as file:
            data = int(file.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
        subprocess.run(["prlimit", f"--pid={service.process.pid}", f"--data={data + left}:"], check=True)

    def test_clients_that_fill_all_buffers_at_once_stay_within_a_limit_on_data(self):  # G5, RLIMIT_DATA
        service = self.service(f"[[pipeline]]\nslots = 1000\nchunk = {{ size = {PACKET} }}\n")
        if service.sanitized():
            self.skipTest("a sanitizer maps what it likes")
        worker = RawWorker(service.workers).attached().beat()  # it answers nothing
        self.addCleanup(worker.close)
        self.limit_data(service, 36 << 20)
        service.recount()  # it has checked its memory
        clients = []
        for _ in range(1500):  # some at each check of memory; most are refused
            client = RawClient(service.port, upgrade())
            self.addCleanup(client.socket.close)
            if client.head()[0] == 101:
                client.socket.setblocking(False)
                clients.append(client)
        message = frame(BINARY, bytes(65000))
        unsent = dict.fromkeys(clients, message)
        for _ in range(30):
            for client in clients:
                with contextlib.suppress(BlockingIOError, ConnectionError):
                    unsent[client] = unsent[client][client.socket.send(unsent[client]):] or message
            self.assertEqual(service.get("/livez")[0], 200)

    def test_a_limit_on_data_counts_as_a_limit_on_memory(self):  # G5, RLIMIT_DATA
        service = self.served()
        if service.sanitized():
            self.skipTest("a sanitizer maps what it likes")
        with self.unharmed(service) as good:
            self.limit_data(service, service.memory() * 15 // 85)  # it uses 85 % of its limit
            wait_for(lambda: service.metric("millrace_overload_action_active", action="reject_streams"), "the action")
            good.row()
            subprocess.run(["prlimit", f"--pid={service.process.pid}", f"--data={1 << 40}:"], check=True)
            wait_for(lambda: not service.metric("millrace_overload_action_active", action="reject_streams"), "its end")


class Signals(FaultTest):
    def loaded(self, service, streams, meanwhile):
        """Streams that have unanswered packets at any time, also while meanwhile() runs. Returns the messages and the close code
        of each."""
        async def stream():
            received, window = [], asyncio.Semaphore(10)
            async with service.connect() as connection:
                async def send():
                    for position in range(0, 1 << 40, PACKET):
                        await window.acquire()
                        await connection.send(samples(position, PACKET))

                sender = asyncio.create_task(send())
                with contextlib.suppress(websockets.ConnectionClosed):
                    async for message in connection:
                        received.append(json.loads(message))
                        if received[-1]["type"] == "result":
                            window.release()
                sender.cancel()
                await asyncio.gather(sender, return_exceptions=True)
                return received, connection.close_code

        async def all_of_them():
            tasks = [asyncio.create_task(stream()) for _ in range(streams)]
            await asyncio.to_thread(wait_for, lambda: service.metric("millrace_chunks_total") > 10 * streams, "load")
            meanwhile()
            return await asyncio.gather(*tasks)

        return run(all_of_them())

    def test_sigpipe_does_nothing(self):  # G3
        service = self.served()
        with self.moved(service, {}), self.unharmed(service) as good:
            for _ in range(500):
                service.process.send_signal(signal.SIGPIPE)
            good.row()

    def test_sigterm_and_sigint_under_load_end_every_stream_with_all_its_results(self):  # G3
        for number in (signal.SIGTERM, signal.SIGINT):
            service = self.served()
            streams = self.loaded(service, 20, lambda: service.process.send_signal(number))
            for messages, code in streams:
                kinds = [message["type"] for message in messages]
                self.assertEqual((kinds[0], kinds[-1], code), ("ready", "closed", 1012))
                self.assertEqual(kinds.count("goaway"), 1)
                results = [message for message in messages if message["type"] == "result"]
                self.assertEqual([result["begin"] for result in results[1:]], [result["end"] for result in results[:-1]])
                self.assertEqual((results[-1]["end"], results[-1]["flags"]), (messages[-1]["frames"], ["LAST", "END"]))
            self.assertEqual(service.wait(), 0)

    def test_a_second_sigterm_under_load_ends_the_service_at_once(self):  # G3
        service = self.served()

        def twice():
            os.kill(self.worker.process.pid, signal.SIGSTOP)  # so that the drain does not end
            for _ in range(2):
                service.process.send_signal(signal.SIGTERM)
                wait_for(lambda: any("stopping" in line for line in service.errors), "the drain")

        streams = self.loaded(service, 20, twice)
        self.assertEqual({code for _, code in streams}, {1006})
        self.assertEqual(service.wait(), 1)

    def test_a_signal_after_the_drain_does_not_change_the_exit_code(self):  # G3
        service = self.served()
        service.process.terminate()
        wait_for(lambda: any("event=stopped" in line for line in service.errors), "the drain")
        while service.process.poll() is None:
            service.process.terminate()
        self.assertEqual(service.wait(), 0)

    def test_a_service_without_clients_needs_no_time_to_drain(self):  # G3
        service = self.served(extra='[limits]\ndrain = "0s"\n')
        self.assertEqual(service.stop(), 0)
        self.assertFalse([line for line in service.errors if "drain cut off" in line])

    def test_a_drain_that_a_worker_holds_up_is_cut_off(self):  # G3
        service = self.service(f"[[pipeline]]\nchunk = {{ size = {PACKET} }}\n", '[limits]\ndrain = "1s"\n')
        with RawWorker(service.workers).attached() as worker:
            worker.beat()
            with RawClient(service.port, upgrade()) as client:
                client.opened()
                client.send(frame(BINARY, samples(0, PACKET)))
                wait_for(lambda: service.metric("millrace_batches_total") > 0, "a batch that stays at the worker")
                self.assertEqual(service.stop(), 1)
                client.rest()
                self.assertIsNone(client.close_code)
        self.assertTrue([line for line in service.errors if 'drain cut off" why="the [limits] drain time is over"' in line])

    def test_signals_that_the_parent_process_blocks_are_handled(self):  # G3
        service = self.service(within=("env", "--block-signal=TERM"))
        self.assertEqual(service.stop(), 0)

    def test_clients_that_connect_while_the_service_stops_are_answered_or_disconnected(self):  # G3
        service = self.served()

        def connect_until_it_is_gone(pause):
            ends = []
            while not ends or ends[-1] is not ConnectionRefusedError:
                try:
                    with RawClient(service.port) as client:
                        time.sleep(pause)
                        client.send(upgrade())
                        status, _ = client.head()
                        ends.append(client.ended()[1] if status == 101 else status)
                except (ConnectionRefusedError, ConnectionResetError) as error:
                    ends.append(type(error))
            return ends

        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            clients = [pool.submit(connect_until_it_is_gone, i / 1000) for i in range(20)]
            wait_for(lambda: service.metric("millrace_streams_opened_total") >= 20, "clients")
            service.process.send_signal(signal.SIGTERM)
            ends = {end for client in clients for end in client.result(PATIENCE)}
        self.assertLessEqual(ends, {1012, 503, None, ConnectionRefusedError, ConnectionResetError})
        self.assertIn(1012, ends)
        self.assertEqual(service.wait(), 0)

    def test_after_a_kill_under_load_the_service_starts_again_on_the_same_addresses(self):  # G4
        service = self.served()
        streams = self.loaded(service, 20, service.process.kill)
        self.assertEqual({code for _, code in streams}, {1006})
        service.wait()
        service.again()
        self.tap(service)
        with self.moved(service, {}), self.unharmed(service):
            pass


if __name__ == "__main__":
    unittest.main()
