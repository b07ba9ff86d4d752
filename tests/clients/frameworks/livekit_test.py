# SPDX-License-Identifier: Apache-2.0
"""LiveKit's plugins for OpenAI and Deepgram at the service."""
import unittest

import aiohttp
from harness import run
from livekit import rtc
from livekit.agents import stt
from livekit.plugins import deepgram, openai
from script import said
from served import PIPELINE, Served, packets, speech, with_moonshine

RATE = 16000
START, FINAL, INTERIM, END = (stt.SpeechEventType[name] for name in (
    "START_OF_SPEECH", "FINAL_TRANSCRIPT", "INTERIM_TRANSCRIPT", "END_OF_SPEECH"))


def push(stream, audio):
    for packet in packets(audio, RATE):
        stream.push_frame(rtc.AudioFrame(packet, RATE, 1, len(packet) // 2))


async def until(stream, kind, count=1):
    """The events up to the one with this number of this kind, without those about usage."""
    events = []
    while sum(event.type == kind for event in events) < count:
        event = await anext(stream)
        if event.type != stt.SpeechEventType.RECOGNITION_USAGE:
            events.append(event)
    return events


def texts(events, kind=FINAL):
    return [event.alternatives[0].text for event in events if event.type == kind]


class LiveKit(Served):
    def with_session(self, use):
        """Runs use(session of aiohttp)."""
        async def within():
            async with aiohttp.ClientSession() as session:
                return await use(session)

        return run(within())

    def openai(self, session, **options):
        made = openai.STT(base_url=f"http://{self.host}/v1", api_key="any", use_realtime=True, **options)
        made._session = session  # outside of a job there is no other
        return made

    def deepgram(self, session, **options):
        return deepgram.STT(base_url=f"http://{self.host}/v1/listen", api_key="any", http_session=session, **options)

    async def check_speech(self, recogniser, audio, expected):
        stream = recogniser.stream()
        push(stream, audio)
        events = await until(stream, END, len(expected))
        await stream.aclose()
        self.assertEqual(texts(events), expected)
        self.assertEqual([event.type for event in events if event.type in (START, FINAL, END)], [START, FINAL, END] * len(expected))
        self.assertTrue(texts(events, INTERIM))

    @with_moonshine
    def test_speech_gets_the_words_that_the_command_stream_gets(self):
        self.recognise()
        audio = speech("0870") + speech("0880")
        expected = self.words(audio, RATE)
        self.with_session(lambda session: self.check_speech(self.deepgram(session, endpointing_ms=600), audio, expected))

    def check_turns(self, *arguments, **options):
        """The voice detector of the service ends two turns, in two streams of one recogniser after each other."""
        self.serve(*arguments)
        self.worker()

        async def use(session):
            recogniser = self.openai(session, **options)
            for _ in range(2):
                stream = recogniser.stream()
                for name in ("0870", "0930"):  # one after the other: the audio is ahead of the text
                    push(stream, speech(name))
                    events = await until(stream, FINAL)
                    order = [event.type for event in events if event.type in (START, END, FINAL)]
                    self.assertEqual(order, [START, END, FINAL])
                    self.assertTrue(all(texts(events)))
                await stream.aclose()
            await recogniser.aclose()

        self.with_session(use)

    def test_the_plugin_for_openai_has_turns_by_the_voice_detector_of_the_service(self):
        self.check_turns()

    def test_the_plugin_for_openai_has_turns_at_a_pipeline_with_endpoint(self):
        self.check_turns(PIPELINE + 'endpoint = { silence = "500ms" }\n')

    def test_the_plugin_for_openai_keeps_its_stream_when_its_options_change(self):
        self.serve()
        self.worker()

        async def use(session):
            recogniser = self.openai(session, model="gpt-transcribe", keywords=["one"])
            stream = recogniser.stream()
            push(stream, speech("0930"))
            first = await until(stream, FINAL)
            recogniser.update_options(keywords=["two"], prompt="other")
            push(stream, speech("0930"))
            second = await until(stream, FINAL)
            await stream.aclose()
            await recogniser.aclose()
            return texts(first) + texts(second)

        self.assertTrue(all(self.with_session(use)))

    def test_the_plugin_for_openai_commits_turns_of_its_own_voice_detector(self):
        self.serve()
        self.worker()

        async def use(session):
            recogniser = self.openai(session, model="gpt-live-transcribe")  # a model that the plugin takes to have no detector
            stream = recogniser.stream()
            found = []
            for name in ("0870", "0930"):  # one after the other: the audio is ahead of the detector
                push(stream, speech(name))
                found += texts(await until(stream, FINAL))
            await stream.aclose()
            await recogniser.aclose()
            return found

        self.assertTrue(all(self.with_session(use)))

    def test_the_plugin_for_deepgram_gets_a_final_text_at_a_flush(self):
        self.serve()
        self.worker()

        async def use(session):
            stream = self.deepgram(session, endpointing_ms=0).stream()
            found = []
            for levels in ((1, 2, 3), (4, 5)):
                push(stream, said(*levels, rate=RATE))
                stream.flush()
                found += texts(await until(stream, FINAL))
            push(stream, said(6, rate=RATE))
            stream.end_input()
            found += texts(await until(stream, FINAL))
            await stream.aclose()
            return found

        self.assertEqual(self.with_session(use), ["w1 w2 w3", "w4 w5", "w6"])

    def test_the_plugin_for_deepgram_has_turns_by_the_voice_detector_of_the_service(self):
        self.serve()
        self.worker()
        audio = speech("0870") + speech("0930")

        async def use(session):
            stream = self.deepgram(session, endpointing_ms=300).stream()
            push(stream, audio)
            events = await until(stream, END, 2)
            await stream.aclose()
            return [event.type for event in events if event.type in (START, END)]

        self.assertEqual(self.with_session(use), [START, END] * 2)

    def test_words_have_times(self):
        self.serve()
        self.worker()

        async def use(session):
            stream = self.deepgram(session, keyterm=["Millrace"], endpointing_ms=0).stream()
            push(stream, said(1, 0, 3, rate=RATE))
            stream.flush()
            (final,) = [event for event in await until(stream, FINAL) if event.type == FINAL]
            await stream.aclose()
            return [(str(word), word.end_time - word.start_time) for word in final.alternatives[0].words]

        self.assertEqual(self.with_session(use), [("w1", 0.25), ("w3", 0.25)])


if __name__ == "__main__":
    unittest.main()
