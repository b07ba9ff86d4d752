# SPDX-License-Identifier: Apache-2.0
"""OpenAI's Python SDK, with blocking calls and with asyncio, at the protocol `openai`. Each event is checked against the SDK's
own models."""
import audioop
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from openai_talk import COMPLETED, DELTA, FAILED, Blocking, WithAsyncio, deltas, of, transcript
from script import FAILS, OPTIONS, SILENT, said
from served import PATIENCE, PIPELINE, PROTOCOLS, Served, packets, speech, with_moonshine
from websockets.exceptions import ConnectionClosed, InvalidStatus

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import printed_programs as printed  # noqa: E402

VOICE = {"type": "server_vad", "threshold": 0.5, "prefix_padding_ms": 300, "silence_duration_ms": 500}
FEATURES = '[[pipeline]]\nname = "default"\ndim = 2\nrate = 100\nchunk = { size = 10 }\n'
TURN = ["input_audio_buffer.committed", COMPLETED]


class Realtime:
    Talk = Blocking

    def connect(self, **query):
        talk = self.Talk(self.host, **query)
        self.addCleanup(talk.close)
        if self.Talk is Blocking:
            self.limited(talk.close)
        return talk

    def talk(self, turn_detection=None, **more):
        """A connection with a session that is set up."""
        talk = self.connect()
        talk.update(turn_detection, **more)
        talk.until("session.updated")
        return talk

    def start(self, pipelines=PIPELINE, protocols=PROTOCOLS):
        self.serve(pipelines, protocols)
        return self.worker()

    def test_a_session_is_created_unasked_and_an_update_says_what_is_in_force(self):
        self.start()
        talk = self.connect()
        created = talk.next()
        self.assertEqual((created.type, created.session.type), ("session.created", "transcription"))
        talk.update(VOICE, transcription={"model": "m", "language": "en"}, noise_reduction={"type": "near_field"}, unknown=[1, {}])
        updated = talk.next()
        self.assertEqual((updated.type, updated.session.type), ("session.updated", "transcription"))
        settings = updated.session.audio.input
        self.assertEqual((settings.format.type, settings.format.rate), ("audio/pcm", 24000))
        self.assertEqual((settings.turn_detection.type, settings.turn_detection.silence_duration_ms), ("server_vad", 500))
        talk.update(None)
        self.assertIsNone(talk.next().session.audio.input.turn_detection)

    def test_a_committed_turn_gets_what_is_stable_and_then_its_transcript(self):
        self.start()
        talk = self.talk()
        for packet in packets(said(1, 2, 3, 4), 24000):
            talk.append(packet)
        talk.commit()
        events = talk.turn()
        self.assertEqual(transcript(events), "w1 w2 w3 w4")
        self.assertTrue(deltas(events).startswith("w1 w2 w3"), deltas(events))
        self.assertTrue("w1 w2 w3 w4".startswith(deltas(events)), deltas(events))
        self.assertEqual({event.type for event in events}, {DELTA, *TURN})
        self.assertEqual(len({event.item_id for event in events}), 1)
        self.assertEqual(events[-1].usage.type, "duration")
        self.assertAlmostEqual(events[-1].usage.seconds, 1.0, delta=0.05)  # the resampler holds some samples

    def test_turns_follow_each_other(self):
        self.start()
        talk = self.talk()
        before = None
        for levels, expected in (((1, 2), "w1 w2"), ((3,), "w3"), ((4, 5, 6), "w4 w5 w6")):
            talk.append(said(*levels))
            talk.commit()
            events = talk.turn()
            self.assertEqual(transcript(events), expected)
            committed = of(events, "input_audio_buffer.committed")
            self.assertEqual((committed.previous_item_id, committed.item_id), (before, events[-1].item_id))
            before = committed.item_id

    def test_a_commit_without_audio_has_an_empty_transcript(self):
        self.start()
        talk = self.talk()
        for audio in (b"", said(1), b""):
            if audio:
                talk.append(audio)
            talk.commit()
            events = talk.turn()
            self.assertEqual([event.type for event in events if event.type != DELTA], TURN)
            self.assertEqual(transcript(events), "w1" if audio else "")

    def test_cleared_audio_has_no_transcript(self):
        self.start()
        talk = self.talk()
        talk.clear()
        self.assertEqual(talk.next().type, "input_audio_buffer.cleared")
        talk.append(said(1, 2, 3))
        talk.clear()
        talk.append(said(4))
        talk.commit()
        events = talk.until("input_audio_buffer.cleared")
        self.assertLessEqual({event.type for event in events}, {DELTA, "input_audio_buffer.cleared"})
        self.assertEqual(transcript(talk.turn()), "w4")

    def test_a_message_may_have_seconds_of_audio(self):
        self.start()
        talk = self.talk()
        talk.append(said(*[1, 2, 3, 4] * 10))
        talk.commit()
        self.assertEqual(transcript(talk.turn()), " ".join(["w1 w2 w3 w4"] * 10))

    def test_streams_at_the_same_time_get_their_own_words(self):
        self.start()
        talks = [self.talk() for _ in range(4)]
        for step in range(3):
            for number, talk in enumerate(talks):
                talk.append(said(number + step))
        for talk in talks:
            talk.commit()
        self.assertEqual([transcript(talk.turn()) for talk in talks], ["w1 w2", "w1 w2 w3", "w2 w3 w4", "w3 w4 w5"])

    def test_telephone_audio_is_understood(self):
        self.start()
        for name, encode in ("audio/pcmu", audioop.lin2ulaw), ("audio/pcma", audioop.lin2alaw):
            talk = self.talk(audio_format={"type": name})
            talk.append(encode(said(1, 2, 3, rate=8000), 2))
            talk.commit()
            self.assertEqual(transcript(talk.turn()), "w1 w2 w3", name)

    def test_the_options_of_the_session_reach_the_worker(self):
        self.start()
        told = {"model": "m", "language": "de", "languages": ["de", "en"], "keywords": ["Millrace"], "prompt": "Names: \"Ä\""}
        talk = self.talk(transcription=told)
        talk.append(said(OPTIONS))
        talk.commit()
        self.assertLessEqual(told.items(), json.loads(transcript(talk.turn())).items())
        talk.update(transcription={**told, "prompt": "other"})
        talk.append(said(OPTIONS))
        talk.commit()
        self.assertEqual(json.loads(transcript(talk.turn()))["prompt"], "other")

    def test_a_model_has_the_pipeline_that_the_configuration_names(self):
        other = PIPELINE.replace('"default"', '"loud"')
        protocol = '[[protocol]]\nname = "openai"\npipeline = "default"\nmodels = { "gpt-loud" = "loud" }\n'
        self.start(PIPELINE + other, protocol)
        self.worker("--pipeline", "loud", "--shout")
        for model, expected in ("gpt-loud", "W1"), ("gpt-unknown", "w1"):
            talk = self.connect(model=model)
            talk.append(said(1))
            talk.commit()
            self.assertEqual(transcript(talk.turn()), expected)

    def check_voice(self, turn_detection):
        self.start()
        talk = self.talk(turn_detection)
        end = 0
        for name in ("0870", "0930"):
            for packet in packets(speech(name, 24000), 24000):
                talk.append(packet)
        later = []
        for previous in range(2):
            events = later + talk.turn()
            # The speech of the next turn may begin before the transcript of this one.
            later = [event for event in events if event.item_id != events[-1].item_id]
            events = [event for event in events if event.item_id == events[-1].item_id]
            order = [event.type.removeprefix("input_audio_buffer.") for event in events if event.type != DELTA]
            self.assertEqual(order, ["speech_started", "speech_stopped", "committed", COMPLETED])
            started, stopped = (of(events, f"input_audio_buffer.speech_{what}") for what in ("started", "stopped"))
            self.assertLessEqual(end, started.audio_start_ms)
            self.assertLess(started.audio_start_ms, stopped.audio_end_ms)
            end = stopped.audio_end_ms
            self.assertTrue(transcript(events).startswith(deltas(events)))

    def test_voice_detection_ends_turns_at_a_pipeline_without_endpoint(self):
        self.check_voice(VOICE)

    def test_semantic_voice_detection_counts_as_voice_detection(self):
        self.check_voice({"type": "semantic_vad", "eagerness": "high"})

    def test_without_voice_detection_a_pause_ends_no_turn(self):
        self.start(PIPELINE + 'endpoint = { silence = "500ms" }\n')
        talk = self.talk(None)
        for packet in packets(speech("0930", 24000), 24000):
            talk.append(packet)
        talk.append(said(15, 15))
        talk.commit()
        events = talk.turn()
        self.assertEqual([event.type for event in events if event.type != DELTA], TURN)
        self.assertIn(" w15", transcript(events))

    def test_a_pipeline_of_features_has_no_voice_detection(self):
        self.serve(FEATURES)
        talk = self.connect()
        talk.update(VOICE)
        self.assertIsNone(talk.until("session.updated")[-1].session.audio.input.turn_detection)

    def test_a_failed_row_is_a_failed_item_and_the_next_turn_works(self):
        self.start()
        talk = self.talk()
        talk.append(said(1, FAILS))
        talk.commit()
        failed = talk.until(FAILED)[-1]
        self.assertTrue(failed.error.message)
        talk.append(said(2, 3))
        talk.commit()
        events = talk.turn()
        while events[-1].item_id == failed.item_id:
            events = talk.turn()
        self.assertEqual(transcript(events), "w2 w3")

    def test_a_turn_whose_last_row_has_no_answer_is_completed(self):
        self.start()
        talk = self.talk()
        talk.append(said(1, 2, SILENT))
        talk.commit()
        events = talk.turn()
        self.assertTrue(transcript(events).startswith(deltas(events)))
        talk.append(said(3))
        talk.commit()
        self.assertEqual(transcript(talk.turn()), "w3")

    def test_the_text_so_far_stays_without_an_error_if_the_worker_is_killed(self):
        first = self.start()
        talk = self.talk()
        talk.append(said(1, 2, 3))
        talk.until(DELTA)
        first.kill()
        self.worker()
        talk.append(said(4, 5, 6))
        talk.commit()
        events = talk.turn()
        self.assertEqual({event.type for event in events}, {DELTA, *TURN})
        self.assertTrue(transcript(events).startswith("w1 "), transcript(events))
        self.assertTrue(transcript(events).endswith("w5 w6"), transcript(events))

    def test_a_stopping_service_completes_the_turn(self):
        self.start()
        talk = self.talk()
        talk.append(said(1, 2, 3))
        talk.until(DELTA)
        self.served.process.terminate()
        self.assertEqual(transcript(talk.turn()), "w1 w2 w3")
        with self.assertRaises(ConnectionClosed):
            talk.next()
        self.assertEqual(self.served.wait(), 0)

    def test_an_event_of_another_protocol_is_an_error_that_names_it(self):
        self.start()
        talk = self.connect()
        talk.next()
        talk.call(talk.connection.send_raw, '{"type":"KeepAlive","event_id":"mine"}')
        error = talk.next()
        self.assertEqual((error.type, error.error.event_id), ("error", "mine"))
        self.assertTrue(error.error.message)

    def test_a_wrong_token_is_refused(self):
        with tempfile.NamedTemporaryFile() as empty:  # it accepts no token
            self.serve(extra=f'[access]\ntokens = "{empty.name}"\n')
        with self.assertRaises(InvalidStatus) as refused:
            self.connect()
        self.assertEqual(refused.exception.response.status_code, 401)

    @with_moonshine
    def test_speech_gets_the_words_that_the_command_stream_gets(self):
        self.recognise()
        for rate in (16000, 24000):
            audio = speech("0870", rate) + speech("0880", rate)
            expected = self.words(audio, rate)
            self.assertEqual(len(expected), 2)
            talk = self.connect()
            talk.checked = rate == 24000
            talk.update(VOICE, audio_format={"type": "audio/pcm", "rate": rate})
            talk.until("session.updated")
            for packet in packets(audio, rate):
                talk.append(packet)
            self.assertEqual([transcript(talk.turn()) for _ in expected], expected)


class OpenAIBlocking(Realtime, Served):
    def test_the_program_of_the_document_prints_what_was_said(self):
        self.start()
        program = printed.programs()["protocols_openai"].text
        done = subprocess.run([sys.executable, "-c", program, f"ws://{self.host}/v1"], input=said(1, 2, 3), capture_output=True,
                              timeout=4 * PATIENCE)
        self.assertEqual((done.stderr, done.stdout), (b"", b"w1 w2 w3\n"))


class OpenAIWithAsyncio(Realtime, Served):
    Talk = WithAsyncio

    # Not with blocking calls: the SDK reads in one thread and writes in another, and Python before 3.13 then loses writes.
    def test_a_turn_over_tls_with_a_token_has_its_transcript(self):
        self.serve_with_tls("secret")
        talk = self.connect(key="secret", tls="s")
        talk.update(None)
        talk.until("session.updated")
        talk.append(said(1, 2))
        talk.commit()
        self.assertEqual(transcript(talk.turn()), "w1 w2")
        with self.assertRaises(InvalidStatus):
            self.connect(key="other", tls="s")


if __name__ == "__main__":
    unittest.main()
