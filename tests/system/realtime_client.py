# SPDX-License-Identifier: Apache-2.0
"""A client of /v1/realtime on plain sockets, which can send any bytes, and the base class of tests of its faults."""
import base64
import json
import time

from faults import PACKET, FaultTest
from raw_client import PATIENCE, TEXT, RawClient, frame, upgrade
from raw_worker import Honest, RawWorker

PATH = "/v1/realtime"
MOST = 1 << 20  # bytes of a message
HEARD = b'{"text":"heard"}'  # the worker's answer to each row
COMPLETED = "conversation.item.input_audio_transcription.completed"


def event(kind, **members):
    return frame(TEXT, json.dumps({"type": kind, **members}).encode())


def update(**session):
    return event("session.update", session=session)


def update_input(**audio_input):
    """`turn_detection` is off, so that only commits end turns."""
    return update(type="transcription", audio={"input": {"turn_detection": None, **audio_input}})


def append(audio):
    """An append of bytes, or of text that is no base64."""
    return event("input_audio_buffer.append", audio=audio if isinstance(audio, str) else base64.b64encode(audio).decode())


COMMIT, CLEAR = event("input_audio_buffer.commit"), event("input_audio_buffer.clear")


def longest(kind, member):
    """An event of exactly MOST bytes: `member` has as much as fits."""
    start = f'{{"type":"{kind}","{member}":"'.encode()
    room = (MOST - len(start) - 2) // 4 * 4  # whole groups of base64
    return (start + b"A" * room + b'"}').ljust(MOST)


class RealtimeClient(RawClient):
    def __init__(self, service, query="", receive_buffer=None, **fields):
        super().__init__(service.port, upgrade(PATH + query, **fields), receive_buffer)

    def opened(self):
        """Reads the answer to an upgrade, and the session.created that follows."""
        status, _ = self.head()
        assert status == 101, status
        created = self.message()
        assert created["type"] == "session.created", created
        return self

    def updated(self, **audio_input):
        self.send(update_input(**audio_input))
        self.until("session.updated")
        return self

    def until(self, kind):
        """The next event of this type. None may be an error before it."""
        deadline = time.monotonic() + PATIENCE  # pings of the service are no events
        while (got := self.message()) and got["type"] not in (kind, "error"):
            assert time.monotonic() < deadline, kind
        assert got and got["type"] == kind, (got, self.close_code)
        return got

    def error(self):
        """The code and the parameter of the next event, which is an error of the client."""
        got = self.message()
        assert got and got["type"] == "error" and got["error"]["type"] == "invalid_request_error", (got, self.close_code)
        return got["error"]["code"], got["error"]["param"]

    def turn(self):
        """Ends the turn. Returns its transcript."""
        self.send(COMMIT)
        return self.until(COMPLETED)["transcript"]

    def ended(self):
        """Reads to the end. Returns the code of the last error event, or None, and the close code."""
        errors = [message["error"]["code"] for message in self.rest() if message["type"] == "error"]
        return (errors[-1] if errors else None), self.close_code


class RealtimeTest(FaultTest):
    client_type = RealtimeClient  # of another protocol: with the same opened() and ended()

    def heard(self, slots=64, more="", extra=""):
        """A service whose worker hears the same in each row."""
        service = self.service(f"[[pipeline]]\nslots = {slots}\nchunk = {{ size = {PACKET} }}\n{more}", extra)
        self.worker = Honest(RawWorker(service.workers).attached().beat(), HEARD)
        self.addCleanup(self.worker.close)
        self.addCleanup(service.close)  # before the worker: the last rows of streams need it
        return service

    def client(self, service, query="", **more):
        client = self.client_type(service, query, **more).opened()
        self.addCleanup(client.socket.close)
        return client

    def end_after(self, service, sent):
        """How the connection ends: the code of an error, and that of the close."""
        with self.client_type(service) as client:
            return client.opened().send(sent).ended()

    def is_whole(self, client):
        """The session goes on: audio and a commit give a transcript."""
        client.send(append(bytes(9600)))
        self.assertEqual(client.turn(), "heard")
