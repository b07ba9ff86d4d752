# SPDX-License-Identifier: Apache-2.0
"""Checks the promises about the messages of one stream. history.py lists them."""
import json


def from_workers(stream, handed):
    had, last = {(at.worker.name, at.row.stream, at.row.seq) for at in handed}, {}
    for number, message in enumerate(stream.messages("message")):
        worker, count, of = message["data"]
        if message["number"] != number or count <= last.get(worker, -1):
            yield f"message: {message} after {number} others"
        if (worker, of, message["seq"]) not in had:
            yield f"message: {message}, though {worker} did not have this row"
        last[worker] = count


def from_the_client(stream, ending, handed):
    """A worker gets the messages of a row with the row, and with the first row the options of all rows before it."""
    for at in handed:
        got = [[seq, position, json.loads(data), changes] for of, seq, position, data, changes in at.batch.posts
               if (of, seq) == (at.row.stream, at.row.seq)]
        due = [message for message in ending.messages if message[0] == at.row.seq]
        if got != due:
            yield f"post: row {at.row.seq} has {got}, not {due}"
        for of, _, _, options in at.batch.opened:
            first = min(row.seq for row, _ in at.batch.rows if row.stream == at.row.stream)
            if of == at.row.stream and json.loads(options or "{}") != (due := options_before(stream, ending, first)):
                yield f"options: {options} with row {first}, not {due}"


def options_before(stream, ending, row):
    options = json.loads(stream.options)
    for seq, _, data, changes in ending.messages:
        if changes and seq < row:
            options |= data
    return options
