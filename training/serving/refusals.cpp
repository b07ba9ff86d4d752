// SPDX-License-Identifier: Apache-2.0
#include "training/serving/refusals.h"

namespace millrace::training {

namespace wp = worker_protocol;

wp::Refused refusal_of(const DataError& error) {
  wp::Refused refused;
  refused.code = "data";
  refused.message = printable_line("stream " + std::to_string(error.stream) + " \"" +
                                   printable_line(error.name) + "\": " + error.error.message);
  refused.details = to_json(error);
  return refused;
}

DataError error_of(const LengthFailure& failure) {
  return {.error = {DataFault::function, failure.what()},
          .stream = failure.stream,
          .name = failure.name,
          .epoch = failure.epoch,
          .step = 0};
}

std::string place_text(const wp::TrainerHello& trainer) {
  std::string text = "rank " + std::to_string(trainer.rank) + " of " +
                     std::to_string(trainer.world) + " from epoch " +
                     std::to_string(trainer.epoch) + ", step " + std::to_string(trainer.step);
  if (trainer.stride > 1) text += ", every " + std::to_string(trainer.stride) + " steps";
  return text;
}

}  // namespace millrace::training
