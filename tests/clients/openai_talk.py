# SPDX-License-Identifier: Apache-2.0
"""Connections of OpenAI's SDK, with blocking calls and with asyncio, behind the same methods; and what their events say."""
import asyncio
import base64

from openai import AsyncOpenAI, OpenAI
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter

EVENTS = TypeAdapter(RealtimeServerEvent)
TRANSCRIPTION = "conversation.item.input_audio_transcription."
DELTA, COMPLETED, FAILED = (TRANSCRIPTION + each for each in ("delta", "completed", "failed"))
PCM = {"type": "audio/pcm", "rate": 24000}


class Blocking:
    """A connection of the SDK, with blocking calls. `checked`: whether events must fit the SDK's models, which know no rate but
    24000."""

    checked = True

    def __init__(self, host, key="any", tls="", **query):
        client = OpenAI(api_key=key, websocket_base_url=f"ws{tls}://{host}/v1")
        self.connection = self.run(client.realtime.connect(extra_query={"intent": "transcription", **query}).enter())

    def run(self, result):
        return result

    def call(self, method, *arguments, **named):
        return self.run(method(*arguments, **named))

    def update(self, turn_detection=None, audio_format=PCM, **more):
        audio = {"format": audio_format, "turn_detection": turn_detection, **more}
        self.call(self.connection.session.update, session={"type": "transcription", "audio": {"input": audio}})

    def append(self, audio):
        self.call(self.connection.input_audio_buffer.append, audio=base64.b64encode(audio).decode())

    def commit(self):
        self.call(self.connection.input_audio_buffer.commit)

    def clear(self):
        self.call(self.connection.input_audio_buffer.clear)

    def next(self):
        event = self.call(self.connection.recv)
        if self.checked:
            EVENTS.validate_python(event.to_dict())  # it has each member that the SDK's model needs
        return event

    def until(self, kind):
        """The events up to the next one of this type."""
        events = [self.next()]
        while events[-1].type != kind:
            if events[-1].type == "error":
                raise AssertionError(events[-1])
            events.append(self.next())
        return events

    def turn(self):
        """The events up to the next transcript: those of one turn."""
        return self.until(COMPLETED)

    def close(self):
        self.call(self.connection.close)


class WithAsyncio(Blocking):
    def __init__(self, host, key="any", tls="", **query):
        self.runner = asyncio.Runner()
        client = AsyncOpenAI(api_key=key, base_url=f"http{tls}://{host}/v1")
        self.connection = self.run(client.realtime.connect(extra_query={"intent": "transcription", **query}).enter())

    def run(self, result):
        async def waited():
            return await asyncio.wait_for(result, 240)

        return self.runner.run(waited())

    def close(self):
        super().close()
        self.runner.close()


def transcript(events):
    return events[-1].transcript


def deltas(events):
    return "".join(event.delta for event in events if event.type == DELTA)


def of(events, kind):
    """The only event of this type."""
    (event,) = [event for event in events if event.type == kind]
    return event
