# SPDX-License-Identifier: Apache-2.0
"""Calculates one worker of docs/sizing.md: streams that send packets, batches that close as the batcher closes them, and a
model that takes t0 + k b for b rows. No program runs, so the figures are the same on every machine."""
import collections
import math
import random

ADVANCE, WINDOW, PACKET = 0.32, 0.4, 0.1  # seconds: of a row, with its look-ahead, and of signal in a packet
PATTERN = 1.6  # seconds until rows and packets coincide again


def ready_times(streams, together, seconds, seed):
    """The time at which the last packet of each row arrives, while all streams are open. The streams start at any time, or all
    within one packet, as those of `millrace bench` do."""
    chance = random.Random(seed)
    starts = [number * PACKET / streams if together else chance.random() * PATTERN for number in range(streams)]
    packets = [math.ceil((WINDOW + number * ADVANCE) / PACKET - 1e-9) for number in range(int(seconds / ADVANCE))]
    ready = sorted(start + packet * PACKET for start in starts for packet in packets)
    return [time for time in ready if PATTERN + WINDOW <= time <= seconds]


class Worker:
    def __init__(self, call=0.008, row=0.00025, rows=64, credits=2, max_wait=0.005, stall=None):
        self.call, self.row, self.rows, self.credits, self.max_wait = call, row, rows, credits, max_wait
        self.stall = stall  # (seconds of a stall, seconds from one stall to the next)
        self.stages = {"batch": [], "handover": [], "compute": [], "all": []}  # seconds of each row
        self.sizes, self.waited = [], 0.0

    def run(self, streams, together=False, seconds=20, seed=1):
        ready = ready_times(streams, together, seconds, seed)
        waiting, handed, at, now, free, stalled = collections.deque(), collections.deque(), 0, 0.0, 0.0, 0
        while at < len(ready) or waiting:
            events = [ready[at]] if at < len(ready) else []
            if handed:
                events.append(handed[0])
            if waiting and len(handed) < self.credits:
                events.append(max(now, waiting[0] + self.max_wait))
            now = min(events)
            while handed and handed[0] <= now:
                handed.popleft()
            while at < len(ready) and ready[at] <= now:
                waiting.append(ready[at])
                at += 1
            while waiting and len(handed) < self.credits and (
                    len(waiting) >= self.rows or waiting[0] + self.max_wait <= now):
                batch = [waiting.popleft() for _ in range(min(self.rows, len(waiting)))]
                self.waited += max(0.0, now - free)
                taken = max(now, free)
                free = taken + self.call + self.row * len(batch)
                if self.stall and int(taken / self.stall[1]) != stalled:
                    stalled = int(taken / self.stall[1])
                    free += self.stall[0]
                handed.append(free)
                self.sizes.append(len(batch))
                for row in batch:
                    for stage, time in (("batch", now - row), ("handover", taken - now), ("compute", free - taken),
                                        ("all", free - row)):
                        self.stages[stage].append(time)
        self.seconds = now
        return self

    def quantile(self, stage, part):
        """A quantile of a stage in ms."""
        times = sorted(self.stages[stage])
        return 1000 * times[min(len(times) - 1, int(part * len(times)))]

    def fill(self):
        """The mean fill of batches, from 0 to 1."""
        return sum(self.sizes) / len(self.sizes) / self.rows
