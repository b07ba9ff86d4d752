// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/openai/utterances.h"

#include <utility>

#include "chunker/row.h"

namespace millrace {

void Utterances::result(const ResultHead& head, const Answer& answer) {
  Ended* ended = segments_.of(head.seq, [this](Ended& before) { finish(before); });
  const bool is_last = ended && ended->at.seq == head.seq;
  const bool failed = answer.kind == Answer::Kind::error;
  Utterance& utterance = ended ? ended->segment : segments_.current();
  if ((head.flags & flag::reset) != 0) utterance.text.begin_anew();
  if (auto transcript = transcript_of(answer, is_last); transcript && !utterance.is_cleared) {
    utterance.text.add(std::move(*transcript));
    if (!utterance.text.empty())
      start_speech(utterance, opened_ + static_cast<double>(head.begin) / head.rate);
    if (is_last && !utterance.text.empty()) commit(utterance);
    if (const std::string delta = utterance.text.take_stable(); !delta.empty())
      report(UtteranceEvent::delta, utterance, delta);
  }
  if (!is_last) return;
  finish(*ended, failed);
  segments_.pop();
}

void Utterances::speech_began(double seconds) {
  start_speech(segments_.current(), opened_ + seconds);
}

// A clear is a flush and a reset, which ends a segment of what conversion still held.
void Utterances::segment_ended(const SegmentEnd& end) {
  Utterance& utterance = segments_.current();
  utterance.end = opened_ + static_cast<double>(end.position) / end.rate;
  utterance.is_cleared = std::exchange(resets_, end.mark == clear_mark) || resets_;
  if (resets_)
    report(UtteranceEvent::cleared, utterance);
  else if (!utterance.is_cleared && (utterance.spoken || !utterance.text.empty() || end.mark))
    commit(utterance);
  segments_.end(end, next(utterance.end));
}

void Utterances::settled(std::uint64_t frames) {
  segments_.settled(frames, [this](Ended& ended) { finish(ended); });
}

// The segment in progress is over too: its stream has ended.
void Utterances::close() {
  segments_.finish_all([this](Ended& ended) { finish(ended); });
  opened_ = segments_.current().begin;
  segments_.current() = next(opened_);
}

void Utterances::commit_nothing() {
  Utterance& utterance = segments_.current();
  commit(utterance);
  report(UtteranceEvent::completed, utterance);
  utterance = next(utterance.begin);
}

void Utterances::clear_nothing() { report(UtteranceEvent::cleared, segments_.current()); }

Utterance Utterances::next(double begin) {
  return {.number = segments_.current().number + 1, .begin = begin, .end = begin};
}

void Utterances::start_speech(Utterance& utterance, double seconds) {
  if (utterance.spoken) return;
  utterance.spoken = seconds;
  if (reports_speech_) report(UtteranceEvent::speech_started, utterance);
}

void Utterances::commit(Utterance& utterance) {
  if (std::exchange(utterance.is_committed, true)) return;
  utterance.previous = std::exchange(committed_, utterance.number);
  if (reports_speech_ && utterance.spoken) report(UtteranceEvent::speech_stopped, utterance);
  report(UtteranceEvent::committed, utterance);
}

void Utterances::finish(Ended& ended, bool failed) {
  Utterance& utterance = ended.segment;
  if (utterance.is_cleared) return;
  if (!utterance.text.empty() || failed) commit(utterance);
  if (!utterance.is_committed) return;
  if (failed) return report(UtteranceEvent::failed, utterance);
  if (const std::string rest = utterance.text.take_stable(true); !rest.empty())
    report(UtteranceEvent::delta, utterance, rest);
  report(UtteranceEvent::completed, utterance);
}

}  // namespace millrace
