// SPDX-License-Identifier: Apache-2.0
#include "commands/console/commands.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/time.h"
#include "commands/console/command_line.h"
#include "commands/console/console.h"
#include "commands/console/progress.h"
#include "commands/datasets/verify_streams.h"
#include "training/catalogs/open_catalog.h"

namespace millrace {
namespace {

struct IndexArguments {
  std::string path, pipeline;
  bool verify = false;
  std::optional<double> rate;  // with a rate or channels, files are converted
  std::uint32_t channels = 0;  // 0: none are given
  std::string good;            // the manifest of the good files; empty: bad files are an error
};

// A bar like "reading [########            ] 400 of 1000".
std::string bar(const std::string& what, std::uint64_t done, std::uint64_t total) {
  constexpr std::uint64_t width = 30;
  const auto filled = static_cast<std::size_t>(done * width / total);
  return what + " [" + std::string(filled, '#') + std::string(width - filled, ' ') + "] " +
         std::to_string(done) + " of " + std::to_string(total);
}

void print_total(const training::Catalog& catalog, std::ostream& out) {
  std::uint64_t frames = 0;
  for (std::uint64_t i = 0; i < catalog.size(); ++i) frames += catalog.frames(i);
  const FrameType& type = catalog.frame_type();
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(),
                "streams   %llu\nhours     %.2f\nrate      %g\n%s%u\ndigest    %016llx\n",
                static_cast<unsigned long long>(catalog.size()),
                static_cast<double>(frames) / type.rate / 3600, type.rate,
                type.features ? "values    " : "channels  ", type.values,
                static_cast<unsigned long long>(catalog.digest()));
  out << text.data();
}

// The streams that are not good.
std::vector<std::uint64_t> verify(const training::Catalog& catalog, std::ostream& out,
                                  Progress& progress) {
  const auto show = [&](std::uint64_t done) {
    const Time now = Clock::now();
    if (progress.due(now)) progress.show(bar("verifying", done, catalog.size()), now);
  };
  show(0);
  const auto bad = verify_streams(catalog, show);
  progress.clear();
  for (const BadStream& one : bad) out << one.message << '\n';
  if (bad.empty())
    out << "all streams are good\n";
  else
    out << counted(bad.size(), "stream") << " of " << catalog.size()
        << (bad.size() == 1 ? " is" : " are") << " not good\n";
  std::vector<std::uint64_t> streams;
  for (const BadStream& one : bad) streams.push_back(one.stream);
  return streams;
}

// True: all is good. The error is one line.
Result<bool, std::string> run(const IndexArguments& arguments, std::ostream& out,
                              Progress& progress) {
  training::CatalogSettings settings;
  settings.path = arguments.path;
  settings.pipeline = arguments.pipeline;
  settings.check_all = true;
  settings.rate = arguments.rate;
  if (arguments.channels > 0) settings.channels = arguments.channels;
  settings.convert = settings.rate || settings.channels;
  settings.warn = [&](const std::string& sentence) { out << sentence << '\n'; };
  settings.progress = [&progress](std::uint64_t done, std::uint64_t total) {
    const Time now = Clock::now();
    if (progress.due(now)) progress.show(bar("reading", done, total), now);
  };
  if (!arguments.good.empty())
    settings.skips = [&](const std::string& text) {
      progress.clear();
      out << text << '\n';
    };
  const auto catalog = training::open_catalog(settings);
  if (!catalog) return catalog.error().message;
  progress.clear();
  print_total(**catalog, out);
  if (const auto text = training::empty_streams_text(**catalog)) out << *text << '\n';
  std::vector<std::uint64_t> bad;
  if (arguments.verify) bad = verify(**catalog, out, progress);
  if (arguments.good.empty()) return bad.empty();
  if (const auto written = training::write_manifest(**catalog, arguments.good, bad); !written)
    return written.error().message;
  return true;
}

}  // namespace

void add_index_command(CommandLine& program, Console& console) {
  auto arguments = std::make_shared<IndexArguments>();
  Command command = program.add(
      "index", "Make or check the index of training streams; print their number, hours and digest");
  command
      .add("PATH", &arguments->path,
           "A folder of audio files, a manifest (.tsv, .csv, .jsonl), or a directory of recordings")
      .type(" ")
      .required();
  command.add("--pipeline", &arguments->pipeline, "Only recordings of this pipeline").type("NAME");
  command.add("--verify", &arguments->verify,
              "Read every stream to its end, and print those that are damaged; exit code 1 then");
  command.add("--rate", &arguments->rate, "Convert audio files to this rate, as convert = true")
      .type("HZ");
  command.add("--channels", &arguments->channels, "Convert audio files to these channels")
      .type("N");
  command
      .add("--good", &arguments->good,
           "Leave out audio files that cannot be used, and write a manifest of the others")
      .type("FILE.jsonl");
  command.run([arguments, &console] {
    run_with_progress(console, "millrace index", arguments->path,
                      [&](Progress& progress) { return run(*arguments, console.out, progress); });
  });
}

}  // namespace millrace
