// SPDX-License-Identifier: Apache-2.0
#include "examples/pocketsphinx/decoder.h"

#include <pocketsphinx.h>
#include <sphinxbase/err.h>

#include <algorithm>
#include <cassert>
#include <cstdarg>
#include <cstdio>
#include <stdexcept>
#include <string_view>

namespace millrace::pocketsphinx {
namespace {

static_assert(std::is_same_v<mfcc_t, float>, "sphinxbase was built for fixed point");

constexpr std::size_t frame_rate = 100;  // frames of the front end per second
// One frame shift of the front end. With larger pieces, the library normalises several frames with
// one cepstral mean, and a long first piece gives its first frames less context. The scores would
// depend on the size of the pieces.
constexpr std::size_t quantum = sample_rate / frame_rate;

// The library reports every step. Only the errors that end the process are printed.
void report(void*, err_lvl_t level, const char* format, ...) {
  if (level < ERR_FATAL) return;
  std::va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
}

ps_decoder_t* load(const std::filesystem::path& model) {
  err_set_callback(report, nullptr);
  err_set_logfp(nullptr);  // otherwise the library prints its options
  const std::string hmm = model / "en-us", lm = model / "en-us.lm.bin",
                    dict = model / "cmudict-en-us.dict";
  for (const auto& file : {hmm + "/mdef", lm, dict})
    if (!std::filesystem::exists(file)) throw std::runtime_error("no PocketSphinx model: " + file);
  const std::unique_ptr<cmd_ln_t, int (*)(cmd_ln_t*)> options(
      cmd_ln_init(nullptr, ps_args(), TRUE, "-hmm", hmm.c_str(), "-lm", lm.c_str(), "-dict",
                  dict.c_str(), nullptr),
      cmd_ln_free_r);
  ps_decoder_t* decoder = options ? ps_init(options.get()) : nullptr;
  if (!decoder) throw std::runtime_error("PocketSphinx cannot load " + model.string());
  return decoder;
}

// Without silence and noise, which are in brackets, and without the number of a pronunciation.
std::vector<Word> words_of(ps_decoder_t* decoder) {
  std::vector<Word> words;
  for (ps_seg_t* segment = ps_seg_iter(decoder); segment; segment = ps_seg_next(segment)) {
    const std::string_view word = ps_seg_word(segment);
    if (word.starts_with('<') || word.starts_with('[') || word.starts_with("++")) continue;
    int first = 0, last = 0;
    ps_seg_frames(segment, &first, &last);
    words.push_back({.word = std::string(word.substr(0, word.find('('))),
                     .start = first / double{frame_rate},
                     .end = (last + 1) / double{frame_rate}});
  }
  return words;
}

Hypothesis hypothesis_of(ps_decoder_t* decoder) {
  int32 score = 0;
  const char* text = ps_get_hyp(decoder, &score);
  return text ? Hypothesis{text, words_of(decoder), score} : Hypothesis{};
}

}  // namespace

void Decoder::Free::operator()(ps_decoder_s* decoder) const { ps_free(decoder); }

Decoder::Decoder(const std::filesystem::path& model) : decoder_(load(model)) {
  const cmn_t* cmn = ps_get_feat(decoder_.get())->cmn_struct;
  initial_mean_.assign(cmn->cmn_mean, cmn->cmn_mean + cmn->veclen);
}

void Decoder::begin() {
  drop();
  if (ps_start_utt(decoder_.get()) < 0) throw std::runtime_error("PocketSphinx cannot start");
  open_ = true;
}

void Decoder::process(std::span<const std::int16_t> samples) {
  assert(open_);
  while (!samples.empty()) {
    const auto piece = samples.first(std::min(quantum, samples.size()));
    if (ps_process_raw(decoder_.get(), piece.data(), piece.size(), FALSE, FALSE) < 0)
      throw std::runtime_error("PocketSphinx cannot decode");
    samples = samples.subspan(piece.size());
  }
}

Hypothesis Decoder::partial() const { return hypothesis_of(decoder_.get()); }

Hypothesis Decoder::end() {
  assert(open_);
  open_ = false;
  if (ps_end_utt(decoder_.get()) < 0) throw std::runtime_error("PocketSphinx cannot finish");
  return hypothesis_of(decoder_.get());
}

void Decoder::drop() {
  if (open_) end();  // the library has no cheaper way to end an utterance
}

void Decoder::reset() {
  drop();
  ps_start_stream(decoder_.get());  // clears the noise level
  feat_t* features = ps_get_feat(decoder_.get());
  // Not cmn_live_set: it would count the initial mean as 500 received frames, unlike a new decoder.
  cmn_t* cmn = features->cmn_struct;
  std::ranges::copy(initial_mean_, cmn->cmn_mean);
  std::fill_n(cmn->sum, cmn->veclen, 0.0F);
  cmn->nframe = 0;
  // The first frames of an utterance use the end of the previous one: the first piece yields no
  // cepstra, so the library does not clear these.
  for (int i = 0; i < LIVEBUFBLOCKSIZE; ++i)
    std::fill_n(features->cepbuf[i], features->cepsize, 0.0F);
  features->bufpos = features->curpos = 0;
}

}  // namespace millrace::pocketsphinx
