# SPDX-License-Identifier: Apache-2.0
"""Events of clients of /v1/realtime that are wrong, unusual or of another protocol, and workers that do not answer."""
import unittest

from raw_client import BINARY, TEXT, closing, frame
from raw_worker import Honest, RawWorker
from realtime_client import CLEAR, COMMIT, COMPLETED, HEARD, MOST, RealtimeClient, RealtimeTest, append, event, update, update_input

AUDIO = bytes(4800)  # 100 ms
INVALID = "invalid_value"
INPUT = "session.audio.input."
EVENTS = {  # the message, and the parameter that its error names
    # A17
    **{repr(text)[:20]: (frame(TEXT, text), None) for text in
       (b"hello", b"", b"[]", b"1", b'"input_audio_buffer.commit"', b"null", b'{"type":"input_audio_buffer.commit"}x',
        b'{"type":' + b"[" * 5000, b'{"type":"input_audio_buffer.commit"}\0')},
    "deep nesting": (frame(TEXT, b'{"type":' + b"[" * 5000 + b"]" * 5000 + b"}"), None),
    "no type": (frame(TEXT, b"{}"), "type"),
    "a type that is a number": (event(1), "type"),
    "an unknown type": (event("dance"), "type"),
    "an event of the conversation": (event("response.create"), "type"),
    "binary": (frame(BINARY, AUDIO), None),
    "empty binary": (frame(BINARY), None),  # Deepgram's end
    # Other protocols
    **{f"Deepgram's {kind}": (event(kind), "type") for kind in ("KeepAlive", "Finalize", "CloseStream")},
    **{f"millrace.v1's {kind}": (event(kind), "type") for kind in ("end", "flush", "reset", "keepalive", "gap", "set")},
    "FunASR's first message": (frame(TEXT, b'{"mode":"2pass","wav_name":"a","is_speaking":true}'), "type"),
    "vosk's end": (frame(TEXT, b'{"eof":1}'), "type"),
    # Audio
    "an append without audio": (event("input_audio_buffer.append"), "audio"),
    **{f"audio that is {audio!r}": (event("input_audio_buffer.append", audio=audio), "audio")
       for audio in (7, None, [], {}, True)},
    **{f"base64 {text!r}": (append(text), "audio") for text in
       ("?", "A", "AA", "AAA", "AA=A", "A===", "====", "AAAA=", "AA A", "AAAA\n", "AAA-", "AA-_", "A\u00e9AA", "data:,AAAA", "AAAA----")},
    "a first half of base64": (append("A" * 4799), "audio"),
    "base64 of 1 MiB with a wrong end": (append("A" * (1 << 19) + "-AAA"), "audio"),
    # Settings
    "an update without a session": (event("session.update"), "session"),
    **{f"session {value!r}": (event("session.update", session=value), "session") for value in (7, "transcription", [], None)},
    "a session of speech": (update(type="realtime"), "session.type"),
    "audio that is a list": (update(audio=[]), "session.audio"),
    "input that is a text": (update(audio={"input": "pcm"}), "session.audio.input"),
    "the format of the beta": (update_input(format="pcm16"), INPUT + "format"),
    "a format of Opus": (update_input(format={"type": "audio/opus"}), INPUT + "format.type"),
    **{f"a rate of {rate!r}": (update_input(format={"type": "audio/pcm", "rate": rate}), INPUT + "format.rate")
       for rate in (0, -1, 1e300, 7999, 192001, "24000", [])},
    "a transcription that is a text": (update_input(transcription="whisper-1"), INPUT + "transcription"),
    "a model that is a number": (update_input(transcription={"model": 1}), INPUT + "transcription.model"),
    "a language that is a list": (update_input(transcription={"language": ["en"]}), INPUT + "transcription.language"),
    "keywords that are a text": (update_input(transcription={"keywords": "a"}), INPUT + "transcription.keywords"),
    "a prompt of 4 KiB": (update_input(transcription={"prompt": "p" * 4096}), INPUT + "transcription"),
    "a prompt of 1 MiB": (update_input(transcription={"prompt": "p" * (MOST - 200)}), INPUT + "transcription"),
    "a detection that is a text": (update_input(turn_detection="server_vad"), INPUT + "turn_detection"),
    "an unknown detection": (update_input(turn_detection={"type": "magic"}), INPUT + "turn_detection.type"),
    **{f"a silence of {ms!r}": (update_input(turn_detection={"type": "server_vad", "silence_duration_ms": ms}),
                                INPUT + "turn_detection.silence_duration_ms") for ms in (-1, 1e9, "500")},
}
IGNORED = {
    "an update twice": update_input() + update_input(),
    "1 MiB of unknown members": event("session.update", session={"type": "transcription", "x": "a" * (MOST - 100)}),
    "unknown members of any type": update_input(noise_reduction=[1, {}], delay=None) + update(type="transcription", x=[[]]),
    "nulls": update(type=None, audio=None) + update_input(format=None, transcription=None),
    "an empty append": append(b""),
    "a clear of nothing": CLEAR + CLEAR,
    "an odd number of bytes": append(bytes(4801)) + append(bytes(4799)),
    "settings as they are, within a turn": append(AUDIO) + update_input() + append(AUDIO),
    "other options within a turn": append(AUDIO) + update_input(transcription={"language": "en"}) + append(AUDIO),
    "an empty id": event("input_audio_buffer.append", audio="", event_id=""),
    "an id that is no text": event("input_audio_buffer.append", audio="", event_id={"a": 1}),
}


class Events(RealtimeTest):
    def test_an_event_that_is_none_gets_an_error_and_the_session_goes_on(self):
        def error_of(service, sent):
            with RealtimeClient(service) as client:
                error = client.opened().updated().send(sent).error()
                self.is_whole(client)
                self.assertEqual(client.send(sent).error(), error)  # within a stream too
                self.is_whole(client)
                self.assertEqual(client.send(closing(1000)).ended()[1], 1000)
            return error

        rejected = "messages_rejected", "schema"
        self.each(self.heard(), {name: (sent, (INVALID, parameter)) for name, (sent, parameter) in EVENTS.items()}, error_of,
                  rejected, rejected)

    def test_an_event_that_only_says_more_or_again_is_no_error(self):
        def errors_after(service, sent):
            with RealtimeClient(service) as client:
                client.opened().updated().send(sent)
                self.is_whole(client)
                return client.send(closing(1000)).ended()

        self.each(self.heard(), {name: (sent, (None, 1000)) for name, sent in IGNORED.items()}, errors_after)

    def test_audio_needs_no_settings_and_a_commit_no_audio(self):
        service = self.heard()
        with self.moved(service, {}), self.unharmed(service):
            client = self.client(service)
            self.assertEqual(client.turn(), "")
            self.is_whole(client)
            client.send(COMMIT * 3)
            self.assertEqual([client.until(COMPLETED)["type"] for _ in range(3)], [COMPLETED] * 3)
            client.socket.close()

    def test_other_settings_within_a_turn_end_its_stream_and_open_the_next(self):
        service = self.heard()
        with self.moved(service, {}), self.unharmed(service):
            client = self.client(service).updated()
            for rate in (8000, 16000, 48000):
                client.send(append(AUDIO) + update_input(format={"type": "audio/pcm", "rate": rate}))
                self.is_whole(client)
            client.socket.close()

    def test_half_a_sample_waits_for_its_other_half_and_is_dropped_with_its_stream(self):
        service = self.heard()
        with self.moved(service, {}), self.unharmed(service):
            client = self.client(service).updated()
            for _ in range(2):
                client.send(append(bytes(9601)))
                self.assertEqual(client.turn(), "heard")
            client.send(append(bytes(9601)) + update_input(format={"type": "audio/pcmu"}))
            client.until("session.updated")
            self.is_whole(client)
            client.socket.close()


class Workers(RealtimeTest):
    def test_a_worker_that_hangs_is_replaced_and_the_turn_is_completed(self):
        service = self.service('[[pipeline]]\nchunk = { size = 1600 }\nfirst_answer_wait = "200ms"\nanswer_wait = "200ms"\n')
        with self.moved(service, {("worker_failures", "timeout"): 1}):
            hangs = RawWorker(service.workers).attached().beat()
            self.addCleanup(hangs.close)
            client = self.client(service).updated().send(append(bytes(9600)))
            hangs.batch()
            self.addCleanup(Honest(RawWorker(service.workers).attached().beat(), HEARD).close)
            self.assertEqual(hangs.ended(), "timeout")
            self.assertEqual(client.turn(), "heard")
            client.socket.close()

    def test_if_no_worker_takes_the_stream_the_session_ends_with_an_error(self):
        service = self.heard(more='[[pipeline]]\nname = "deserted"\nchunk = { size = 1600 }\nworker_wait = "300ms"\n'
                                  '[[protocol]]\nname = "openai"\nmodels = { "m" = "deserted" }\n')
        with self.moved(service, {("connections_closed", "policy"): 1, ("streams_closed", "no_worker"): 1}), self.unharmed(service):
            client = self.client(service, "?model=m").updated().send(append(bytes(9600)))
            self.assertEqual(client.ended(), ("no_worker", 1013))


if __name__ == "__main__":
    unittest.main()
