# SPDX-License-Identifier: Apache-2.0
"""The memory of the service and of the kernel for clients that send as fast as they can to a worker that answers nothing.

MILLRACE=build/release/service/millrace python3 tests/system/paused_clients.py [CLIENTS] [SECONDS]
"""
import os
import resource
import selectors
import sys
import time

from harness import Service, samples
from raw_client import BINARY, RawClient, frame, upgrade
from raw_worker import RawWorker


def kernel_memory():
    """Bytes of all TCP sockets of the machine, both ends of a connection over loopback."""
    with open("/proc/net/sockstat") as file:
        words = next(line for line in file if line.startswith("TCP:")).split()
    return int(words[words.index("mem") + 1]) * os.sysconf("SC_PAGE_SIZE")


def receive_queues(port):
    """Bytes that the service's ends of the connections have received and not read."""
    total = 0
    with open("/proc/net/tcp") as file:
        for line in list(file)[1:]:
            fields = line.split()
            if fields[1].endswith(f":{port:04X}") and fields[3] == "01":
                total += int(fields[4].split(":")[1], 16)
    return total


def main(clients=2000, seconds=20):
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    service = Service(f"[[pipeline]]\nslots = {clients}\nchunk = {{ size = 1600 }}\n")
    worker = RawWorker(service.workers).attached().beat()
    before, kernel = service.memory(), kernel_memory()
    ready = selectors.DefaultSelector()
    for number in range(clients):
        client = RawClient(service.port, upgrade()).opened()
        client.socket.setblocking(False)
        ready.register(client.socket, selectors.EVENT_WRITE, client)
    packet, sent, until = memoryview(frame(BINARY, samples(0, 16000))), 0, time.monotonic() + seconds
    unsent = {}  # the rest of a packet, by socket
    while (left := until - time.monotonic()) > 0:
        for key, _ in ready.select(min(left, 1)):
            rest = unsent.get(key.fd) or packet
            count = key.fileobj.send(rest)
            sent, unsent[key.fd] = sent + count, rest[count:]
    print(f"{clients} clients, {sent >> 20} MiB sent in {seconds} s; service {(service.memory() - before) / clients / 1024:.0f} "
          f"KiB each; kernel {(kernel_memory() - kernel) / clients / 1024:.0f} KiB each, of which "
          f"{receive_queues(service.port) / clients / 1024:.0f} KiB unread at the service")
    worker.close()
    service.kill()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
