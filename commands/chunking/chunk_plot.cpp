// SPDX-License-Identifier: Apache-2.0
#include "commands/chunking/chunk_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "base/half.h"

namespace millrace {
namespace {

// Pixels.
constexpr double left = 10, right = 990, width = 1000;
constexpr double wave_middle = 62, wave_height = 50;  // the height of one half
constexpr double speech_top = 116, speech_height = 6;
constexpr double chunks_top = 126, chunks_height = 22;
constexpr double labels_top = 152, label_line = 13;
constexpr std::size_t label_lines = 4;
constexpr double axis_top = labels_top + label_line * label_lines + 8;
constexpr double height = axis_top + 24;
constexpr double letter = 6.1;  // width of a letter of a label

constexpr std::uint64_t peak_frames = 64;  // frames of one peak

[[gnu::format(printf, 2, 3)]] void append(std::string& out, const char* format, ...) {
  std::array<char, 512> text;
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  out.append(text.data(), static_cast<std::size_t>(length));
}

float first_value(const std::byte* frame, Element element) {
  std::uint16_t half;
  std::int16_t integer;
  float value;
  switch (element) {
    case Element::s16:
      std::memcpy(&integer, frame, sizeof integer);
      return static_cast<float>(integer) / 32768;
    case Element::f16: std::memcpy(&half, frame, sizeof half); return half_to_float(half);
    case Element::f32: std::memcpy(&value, frame, sizeof value); return value;
  }
  return 0;
}

// The markers that the plot shows where a row begins. SEGMENT is left out: LAST is there.
std::string begin_of(const Row& row) {
  std::string text;
  const auto add = [&](std::string_view word) {
    text.append(text.empty() ? "" : " ").append(word);
  };
  if (row.is(flag::gap)) add("GAP");
  if (row.is(flag::reset)) add("RESET " + std::string(name_of(row.reason)));
  return text;
}

}  // namespace

void ChunkPlot::add(Bytes frames) {
  for (; !frames.empty(); frames = frames.subspan(frames_.bytes()), ++position_) {
    const float value = std::clamp(first_value(frames.data(), frames_.element), -1.0f, 1.0f);
    if (position_ % peak_frames == 0) peaks_.push_back({value, value});
    peaks_.back().low = std::min(peaks_.back().low, value);
    peaks_.back().high = std::max(peaks_.back().high, value);
  }
}

void ChunkPlot::add(const Event& event, const SegmentEndpoints* endpoints) {
  if (event.kind == Event::Kind::frames) {
    cut_ += event.count;
    if (endpoints && endpoints->speech()) add_piece(*endpoints->speech());
  } else if (event.kind != Event::Kind::size) {
    const bool endpoint = event.cause == Cause::endpoint;
    closing_ = endpoint ? name_of(endpoints->reason()) : name_of(event.cause);
    if (event.kind == Event::Kind::reset) piece_ = cut_;
  }
}

// A piece of the voice detector has ended.
void ChunkPlot::add_piece(bool speech) {
  const std::uint64_t begin = std::exchange(piece_, cut_);
  if (!speech) return;
  if (!speech_.empty() && speech_.back().second == begin)
    speech_.back().second = cut_;
  else
    speech_.emplace_back(begin, cut_);
}

void ChunkPlot::add(const Row& row) {
  if (row.has_frames()) chunks_.push_back({row.begin, row.end(), row.seq});
  if (const std::string text = begin_of(row); row.has_frames() && !text.empty())
    labels_.push_back({row.begin, text});
  if (row.is(flag::end))
    labels_.push_back({row.end(), "LAST END"});
  else if (row.is(flag::last))
    labels_.push_back({row.end(), "LAST " + closing_});
}

std::string ChunkPlot::svg() const {
  std::string out;
  append(out,
         "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" "
         "height=\"%g\" font-family=\"sans-serif\" font-size=\"10\">\n",
         width, height, width, height);
  append(out, "<rect width=\"%g\" height=\"%g\" fill=\"#fff\"/>\n", width, height);
  draw_waveform(out);
  draw_speech(out);
  draw_chunks(out);
  draw_labels(out);
  draw_axis(out);
  return out + "</svg>\n";
}

double ChunkPlot::x(std::uint64_t position) const {
  const double all = static_cast<double>(std::max<std::uint64_t>(position_, 1));
  return left + (right - left) * static_cast<double>(position) / all;
}

// One vertical line per pixel. The loudest frame has the whole height.
void ChunkPlot::draw_waveform(std::string& out) const {
  out += "<path stroke=\"#556\" stroke-width=\"1\" d=\"";
  float loudest = 1e-6f;
  for (const Peak& peak : peaks_) loudest = std::max({loudest, -peak.low, peak.high});
  const double scale = wave_height / static_cast<double>(loudest);
  const auto columns = static_cast<std::size_t>(right - left);
  for (std::size_t column = 0; column < columns && !peaks_.empty(); ++column) {
    const std::size_t from = column * peaks_.size() / columns;
    const std::size_t to = std::max(from + 1, (column + 1) * peaks_.size() / columns);
    Peak peak = peaks_[from];
    for (std::size_t i = from; i < to; ++i)
      peak = {std::min(peak.low, peaks_[i].low), std::max(peak.high, peaks_[i].high)};
    append(out, "M%g %.1fV%.1f", left + static_cast<double>(column) + 0.5,
           wave_middle - scale * static_cast<double>(peak.high) - 0.5,
           wave_middle - scale * static_cast<double>(peak.low) + 0.5);
  }
  out += "\"/>\n";
}

void ChunkPlot::draw_speech(std::string& out) const {
  for (const auto& [begin, end] : speech_)
    append(out, "<rect x=\"%.1f\" y=\"%g\" width=\"%.1f\" height=\"%g\" fill=\"#4a4\"/>\n",
           x(begin), speech_top, x(end) - x(begin), speech_height);
  if (!speech_.empty())
    append(out, "<text x=\"%g\" y=\"12\" fill=\"#373\">green: speech</text>\n", right - 70);
}

void ChunkPlot::draw_chunks(std::string& out) const {
  for (const Chunk& chunk : chunks_) {
    const double from = x(chunk.begin), to = x(chunk.end);
    append(out,
           "<rect x=\"%.1f\" y=\"%g\" width=\"%.1f\" height=\"%g\" fill=\"%s\" "
           "stroke=\"#357\" stroke-width=\"0.5\"/>\n",
           from, chunks_top, to - from, chunks_height, chunk.seq % 2 == 0 ? "#bcd8f2" : "#e4effa");
    const std::string number = std::to_string(chunk.seq);
    if (to - from > letter * static_cast<double>(number.size()) + 2)
      append(out, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\" fill=\"#246\">%s</text>\n",
             (from + to) / 2, chunks_top + 15, number.c_str());
  }
}

// Each label is on the first line where it does not cover another one, or else on the last line.
void ChunkPlot::draw_labels(std::string& out) const {
  std::array<double, label_lines> used;
  used.fill(-1);
  for (const Label& label : labels_) {
    const double length = letter * static_cast<double>(label.text.size());
    const double at = x(label.position);
    const bool at_right = at + length + 3 > right;
    const double begin = at_right ? at - length - 3 : at + 3;
    const auto free = std::ranges::find_if(used, [&](double end) { return end < begin - 2; });
    const std::size_t line =
        free == used.end() ? label_lines - 1 : static_cast<std::size_t>(free - used.begin());
    used[line] = begin + length;
    const double y = labels_top + label_line * (static_cast<double>(line) + 1);
    append(out,
           "<path stroke=\"#b33\" stroke-width=\"1\" d=\"M%.1f %gV%.1f\"/>"
           "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"#822\">%s</text>\n",
           at, wave_middle - wave_height, y, at_right ? at - 3 : at + 3, y - 2,
           at_right ? "end" : "start", label.text.c_str());
  }
}

// Ticks at 1, 2 or 5 times a power of ten of seconds, at most 12.
void ChunkPlot::draw_axis(std::string& out) const {
  const double all = seconds(position_);
  if (all <= 0) return;
  const double base = std::pow(10, std::floor(std::log10(all / 12)));
  double step = base;
  for (const double factor : {1.0, 2.0, 5.0, 10.0})
    if (all / (step = base * factor) <= 12) break;
  append(out, "<path stroke=\"#999\" d=\"M%g %gH%g\"/>\n", left, axis_top, right);
  for (int tick = 0; tick * step <= all; ++tick) {
    const double at = left + (right - left) * tick * step / all;
    append(out,
           "<path stroke=\"#999\" d=\"M%.1f %gv4\"/><text x=\"%.1f\" y=\"%g\" "
           "text-anchor=\"%s\" fill=\"#555\">%g s</text>\n",
           at, axis_top, at, axis_top + 15, tick == 0 ? "start" : "middle", tick * step);
  }
}

}  // namespace millrace
