# SPDX-License-Identifier: Apache-2.0
"""Connections of Deepgram's SDK, with blocking calls and with asyncio, behind the same methods; and what their messages say."""
import asyncio
import json

from deepgram import AsyncDeepgramClient, DeepgramClient, DeepgramClientEnvironment
from deepgram.listen.v1.types import ListenV1Results
from served import packets
from websockets.exceptions import ConnectionClosed

RATE = 16000


class Blocking:
    """A connection of the SDK."""

    def __init__(self, host, query, key="any", tls=""):
        self.key = key
        environment = DeepgramClientEnvironment(
            base=f"http{tls}://{host}", production=f"ws{tls}://{host}", agent=f"ws{tls}://{host}", agent_rest=f"http{tls}://{host}")
        self.open(environment, query)

    def open(self, environment, query):
        self.context = DeepgramClient(api_key=self.key, environment=environment).listen.v1.connect(**query)
        self.connection = self.context.__enter__()

    def run(self, result):
        return result

    def send(self, audio, packet=0.1):
        for part in packets(audio, RATE, packet):
            self.run(self.connection.send_media(part))

    def finalize(self):
        self.run(self.connection.send_finalize())

    def keep_alive(self):
        self.run(self.connection.send_keep_alive())

    def close_stream(self):
        self.run(self.connection.send_close_stream())

    def send_other(self, message):
        self.run(self.connection._send(message))

    def next(self):
        message = self.run(self.connection.recv())
        type(message).model_validate(json.loads(message.json()))  # it has each member that the model needs
        return message

    def until(self, condition):
        """The messages up to the next one that meets the condition."""
        messages = [self.next()]
        while not condition(messages[-1]):
            messages.append(self.next())
        return messages

    def rest(self):
        """The messages until the service closes the connection, and the close code."""
        messages = []
        try:
            while True:
                messages.append(self.next())
        except ConnectionClosed as closed:
            return messages, closed.rcvd and closed.rcvd.code

    def end(self):
        """Closes the stream. Returns the messages that were left."""
        self.close_stream()
        messages, code = self.rest()
        if code != 1000:
            raise AssertionError(f"close {code}")
        return messages

    def close(self):
        self.context.__exit__(None, None, None)


class WithAsyncio(Blocking):
    def open(self, environment, query):
        self.runner = asyncio.Runner()
        self.context = AsyncDeepgramClient(api_key=self.key, environment=environment).listen.v1.connect(**query)
        self.connection = self.run(self.context.__aenter__())

    def run(self, result):
        async def waited():
            return await asyncio.wait_for(result, 240)

        return self.runner.run(waited())

    def close(self):
        self.run(self.context.__aexit__(None, None, None))
        self.runner.close()


def results(messages):
    return [message for message in messages if isinstance(message, ListenV1Results)]


def text(result):
    return result.channel.alternatives[0].transcript


def finals(messages):
    """The final texts."""
    return [text(result) for result in results(messages) if result.is_final and text(result)]


def from_finalize(message):
    return isinstance(message, ListenV1Results) and message.from_finalize
