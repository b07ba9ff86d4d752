// SPDX-License-Identifier: Apache-2.0
#include "commands/console/commands.h"

#include <algorithm>
#include <csignal>
#include <exception>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>

#include "commands/console/command_line.h"
#include "commands/train_serve/served_function.h"
#include "commands/train_serve/train_options.h"
#include "commands/train_serve/train_server.h"
#include "service/log/log_writer.h"
#include "training/keys/open_dataset.h"
#include "training/plans/make_plan.h"

namespace millrace {

namespace {

using training::OpenedDataset;
using training::PlanError;

training::ServedPlan served_plan(OpenedDataset opened, const PlanTable& plan) {
  return {.catalog = opened.catalog,
          .options = opened.options,
          .epochs = plan.epochs,
          .format = format_of(*opened.catalog, opened.settings),
          .threads = std::max(opened.settings.threads, 1u),
          .skip_failed = opened.settings.skip_failed};
}

// The plan is made once for a world of 1, so that wrong options are reported at the start.
Result<training::ServedPlan, PlanError> open(const PlanTable& plan,
                                             const training::CatalogWarning& warn) {
  auto opened = training::open_dataset(plan.keys, {}, warn);
  if (!opened) return opened.error();
  ServedFunction served;
  if (!plan.augment.function.empty())
    served = start_function(plan.augment, plan.keys.plan.seed, opened->catalog);
  if (served.changes_lengths)
    opened->options.frames =
        training::lengths_after(served.function, opened->catalog, opened->settings.skip_failed);
  const auto checked = make_plan(*opened->catalog, opened->options, {});
  if (!checked) return checked.error();
  auto made = served_plan(std::move(*opened), plan);
  if (served.function) made.threads = std::max(made.threads, plan.augment.processes);
  made.function = std::move(served.function);
  return made;
}

void run(const TrainOptions& options, training::ServedPlan served) {
  const std::uint64_t streams = served.catalog->size();
  LogWriter writer(options.log);
  TrainServer server(options, std::move(served), writer);
  std::ostringstream admin;
  admin << server.admin();
  server.log().info("listening", {{"workers", server.workers()},
                                  {"workers_remote", server.workers_remote()},
                                  {"admin", admin.str()},
                                  {"streams", std::to_string(streams)}});
  server.run();
  server.log().info("stopped", {});
}

struct Arguments {
  std::string config;
  bool check = false;
};

int train_serve(const Arguments& arguments, Console& console) {
  const std::string& config = arguments.config;
  const auto options = load_train_options(config);
  if (!options) {
    console.err << "millrace: " << options.error() << "\n";
    return 1;
  }
  if (arguments.check) return 0;
  for (const int number : {SIGPIPE, SIGXFSZ}) std::signal(number, SIG_IGN);
  // Only processes that are waited for have a status of their end.
  std::signal(SIGCHLD, options->plan.augment.function.empty() ? SIG_IGN : SIG_DFL);
  try {
    auto served = open(options->plan, [&](const std::string& sentence) {
      console.err << "millrace: " << config << ": " << sentence << std::endl;
    });
    if (!served) {
      console.err << "millrace: " << config << ": [plan] " << served.error().message << "\n";
      return 1;
    }
    run(*options, std::move(*served));
    return 0;
  } catch (const std::exception& error) {
    console.err << "millrace: " << error.what() << "\n";
    return 1;
  }
}

}  // namespace

void add_train_serve_command(CommandLine& program, Console& console) {
  Command command = program.add("train-serve", "Give the batches of a plan to trainers");
  auto arguments = std::make_shared<Arguments>();
  command.add("FILE", &arguments->config, "Configuration file (TOML)").required();
  command.add("--check", &arguments->check, "Check the file, open no streams, and end");
  command.run([arguments, &console] { console.exit_code = train_serve(*arguments, console); });
}

}  // namespace millrace
