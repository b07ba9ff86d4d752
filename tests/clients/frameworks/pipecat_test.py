# SPDX-License-Identifier: Apache-2.0
"""Pipecat's services for OpenAI's and Deepgram's streaming recognition at the service."""
import asyncio
import unittest

from harness import run
from loguru import logger
from pipecat.frames.frames import (
    EndFrame,
    ErrorFrame,
    InputAudioRawFrame,
    InterimTranscriptionFrame,
    ProposedUserStartedSpeakingFrame,
    ProposedUserStoppedSpeakingFrame,
    TranscriptionFrame,
    VADUserStartedSpeakingFrame,
    VADUserStoppedSpeakingFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.runner import PipelineRunner
from pipecat.pipeline.task import PipelineParams, PipelineTask
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.deepgram.stt import DeepgramSTTService
from pipecat.services.openai.stt import OpenAIRealtimeSTTService
from script import said
from served import PIPELINE, Served, packets, speech, with_moonshine

RATE = 16000
HEARD = (InterimTranscriptionFrame, TranscriptionFrame, ProposedUserStartedSpeakingFrame, ProposedUserStoppedSpeakingFrame, ErrorFrame)

logger.remove()


class Heard(FrameProcessor):
    """Keeps what comes out of the recogniser."""

    def __init__(self):
        super().__init__()
        self.frames = asyncio.Queue()

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if isinstance(frame, HEARD):
            self.frames.put_nowait(frame)
        await self.push_frame(frame, direction)

    async def until(self, kind, count=1):
        """The frames up to the one with this number of this kind."""
        frames = []
        while sum(isinstance(frame, kind) for frame in frames) < count:
            frames.append(await self.frames.get())
        return frames


def texts(frames):
    return [frame.text for frame in frames if isinstance(frame, TranscriptionFrame)]


class Talk:
    """A running pipeline of Pipecat."""

    def __init__(self, recogniser):
        self.heard, self.errors = Heard(), []
        self._task = PipelineTask(Pipeline([recogniser, self.heard]), params=PipelineParams(audio_in_sample_rate=RATE),
                                  cancel_on_idle_timeout=False)

        @recogniser.event_handler("on_error")
        async def failed(_, error):
            self.errors.append(error.error)

    async def say(self, audio):
        for packet in packets(audio, RATE):
            await self._task.queue_frame(InputAudioRawFrame(audio=packet, sample_rate=RATE, num_channels=1))

    async def turn(self, audio):
        """Says it, and ends the turn as a local voice detector would. Returns the frames up to the transcript."""
        await self._task.queue_frame(VADUserStartedSpeakingFrame())
        await self.say(audio)
        await self._task.queue_frame(VADUserStoppedSpeakingFrame())
        return await self.heard.until(TranscriptionFrame)

    async def __aenter__(self):
        self._running = asyncio.create_task(PipelineRunner(handle_sigint=False).run(self._task))
        return self

    async def __aexit__(self, *failure):
        await self._task.queue_frame(EndFrame())
        await self._running
        if not failure[0]:
            assert not self.errors, self.errors


class Pipecat(Served):
    def openai(self, **options):
        return OpenAIRealtimeSTTService(base_url=f"ws://{self.host}/v1/realtime", api_key="any", **options)

    def deepgram(self, **settings):
        return DeepgramSTTService(base_url=f"ws://{self.host}", api_key="any", settings=DeepgramSTTService.Settings(**settings))

    def start(self, *arguments):
        self.serve(*arguments)
        self.worker()

    def check_turns(self, made):
        self.start()

        async def use():
            async with Talk(made()) as talk:
                found = []
                for levels in ((1, 2, 3), (4, 5, 6)):
                    frames = await talk.turn(said(*levels, rate=RATE) + bytes(640))
                    self.assertIsInstance(frames[0], InterimTranscriptionFrame)
                    found += texts(frames)
                return found

        self.assertEqual(run(use()), ["w1 w2 w3", "w4 w5 w6"])

    def test_the_service_for_openai_commits_turns(self):
        self.check_turns(self.openai)

    def test_the_service_for_deepgram_finalizes_turns(self):
        self.check_turns(self.deepgram)

    def check_voice(self, turn_detection, *arguments):
        self.start(*arguments)
        kinds = (ProposedUserStartedSpeakingFrame, ProposedUserStoppedSpeakingFrame, TranscriptionFrame)

        async def use():
            recogniser = self.openai(turn_detection=turn_detection, settings=OpenAIRealtimeSTTService.Settings(model="gpt-transcribe"))
            async with Talk(recogniser) as talk:
                found = []
                for name in ("0870", "0930"):  # one after the other: the audio is ahead of the text
                    await talk.say(speech(name))
                    found += await talk.heard.until(TranscriptionFrame)
                return found

        frames = run(use())
        self.assertEqual([type(frame) for frame in frames if isinstance(frame, kinds)], [*kinds] * 2)
        self.assertTrue(all(texts(frames)))

    def test_the_service_for_openai_has_turns_by_the_voice_detector_of_the_service(self):
        self.check_voice({"type": "server_vad"})

    def test_the_service_for_openai_has_turns_by_the_default_of_a_pipeline_with_endpoint(self):
        self.check_voice(None, PIPELINE + 'endpoint = { silence = "500ms" }\n')

    @with_moonshine
    def test_speech_gets_the_words_that_the_command_stream_gets(self):
        self.recognise()
        audio = speech("0870") + speech("0880")
        expected = self.words(audio, RATE)

        async def use():
            async with Talk(self.deepgram()) as talk:
                await talk.say(audio)
                return texts(await talk.heard.until(TranscriptionFrame, len(expected)))

        self.assertEqual(run(use()), expected)


if __name__ == "__main__":
    unittest.main()
