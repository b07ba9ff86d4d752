// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/error_code.h"
#include "base/event.h"
#include "base/frame_type.h"
#include "base/ids.h"
#include "base/time.h"
#include "chunker/chunker.h"
#include "chunker/spec.h"
#include "input/frame_converter.h"
#include "streams/block_pool.h"
#include "streams/clamp_watch.h"
#include "streams/ends.h"
#include "streams/frame_buffer.h"
#include "streams/outstanding_rows.h"
#include "streams/stats.h"
#include "streams/unwritten_results.h"
#include "streams/waiting_events.h"

namespace millrace {

struct StreamSettings {
  StreamId id{};
  FrameType type{};       // of the pipeline
  SampleFormat format{};  // of the client
  Spec spec{};
  // Held from which on it is paused; at least the spec's width. While blocks are scarce it is
  // paused from a width on that is in no batch.
  std::uint64_t frames_limit = 0;
  // Held above that after long pauses: what may be held grows at twice real time while the stream
  // is paused, by this at most, until half of frames_limit is held.
  std::uint64_t pause_frames = 0;
  std::optional<Duration> shed_after = {};  // that frames wait in front of the chunker
  bool explain = false;                     // results come with their Explanation
  Time opened{};
};

// What a stream works with. All of it outlives the stream and is of its thread.
struct StreamLinks {
  RowSink& rows;
  ClientEnd& client;
  BlockPool& blocks;  // as FrameBuffer::block_bytes says, for the pipeline's frames and width
  StreamStats& stats;
};

// One live stream: takes what its client sends and what its lane says, gives rows to the lane and
// results to the client, in order. It has no clock and does no I/O: every input says when it came,
// and calls the links before it returns. They must not call back into the stream from inside, but
// may ask it.
//
// Rows are bounded: while max_ready_rows are in no batch, what comes after them waits in front of
// the chunker, in order and with the instant it was read. So are frames: paused() asks not to read
// from the client for now. What is given all the same is kept. A client's pings stand behind its
// frames and have a timeout, so a paused client is read on slowly (`pause_frames`). A frame is held
// until no row that is not done and no row to come shows it.
//
// Results are never dropped while the client is there. While ClientEnd::full(), no row is given to
// the lane: the results of a client that reads slowly are bounded by what was full, and the answers
// to the rows that the lane had by then. closed() follows when all of them were written.
//
// With `shed_after`, frames that have waited longer than that when the next input or word of the
// lane comes, or tick(), are dropped: a gap of exactly as many, with reason `overflow`. Not one is
// dropped earlier, and late by a sixteenth of it at most. Rows are never dropped.
//
// Confined to one thread. No allocation per message or row in steady state.
class Stream {
 public:
  // Frames are told apart by when they were read so coarsely, as parts of `shed_after`.
  static constexpr int shed_grains = 16;

  Stream(const StreamSettings& settings, const StreamLinks& links);

  // What the client sends. After its end() it is rejected, after any other end ignored.
  void frames(Bytes message, Time now);  // any length; a frame may straddle messages
  void flush(std::optional<std::uint64_t> mark, Time now);
  void reset(Time now);
  void gap(std::uint64_t client_frames, Time now);  // in the client's own frames
  void end(Time now);                               // a second one is ignored
  // A message that is none; the frames that it should have brought are a gap.
  void refuse(ErrorCode code, std::string_view message, std::uint64_t client_frames, Time now);

  // So many more results, in order, were written to the client's socket, or something else was.
  void written(std::size_t results, Time now);

  // What becomes of the connection. The client is told nothing any more, its results are dropped.
  void left(Time now);  // closed with 1000: counts as end()
  void lost(Time now);  // any other loss: the stream is aborted
  // The stream cannot go on: the client gets the error, then it is as lost.
  void fail(ErrorCode code, std::string_view message, Time now);

  // The same, for want of memory: what waits in front of the chunker is dropped at once. Behind
  // what a client has ended its end waits, and it becomes rows.
  void evict(ErrorCode code, std::string_view message, Time now);

  // The service stops: counts as end(), and nothing more is taken.
  void drain(Time now);

  // What its lane says. So many of its rows were put into a batch; its oldest row is done; it was
  // forgotten with all its rows, and why if the client is to know.
  void taken(std::size_t rows, Time now);
  void done(DoneRow row, Time now);
  void dropped(std::optional<ErrorCode> code, Time now);

  // Time has passed. Wanted now and then while it is paused, for who does not read sheds nothing.
  void tick(Time now) { settle(now); }

  // Nothing should be read from the client until ClientEnd::resume().
  bool paused() const { return paused_; }

  // Frames of the client that it can hold more: whoever sends no more than it was told, and is
  // told when there is more, is never paused for frames. 0 while more than half of the limit is
  // held and rows are outstanding, so that it is not told of every row; with `shed_after` always
  // what is left. While blocks are scarce it is half of the limit at most, and 0 while rows are in
  // no batch.
  std::uint64_t room() const;

  // So much waits in front of the chunker, as only a client that is paused and sends on brings
  // about, that what comes next had better not be taken.
  bool overrun() const { return waiting_.size() >= WaitingEvents::overrun; }

  // Its client is still told of results: it was not told the end, nor is its connection gone.
  bool client_listens() const { return client_listens_; }

  // Its last row is done, or it was dropped: no row refers to its frames, it may be destroyed. If
  // its client is connected, every result was written too.
  bool finished() const { return finished_; }

  // Bytes of frames that it holds.
  std::uint64_t held_bytes() const { return held() * settings_.type.bytes(); }
  // Those that evict() would give back, when rows that are ready are done.
  std::uint64_t reclaimable() const { return input_ == Input::open ? held_bytes() : 0; }

  // Behind the last frame received or lost, in frames of the pipeline.
  std::uint64_t position() const { return position_; }

 private:
  enum class Input : std::uint8_t { open, ended, over };

  bool takes_input();
  void reject_partial();
  void lose(std::uint64_t frames, Cause cause, Time now);
  void close_input(Input how, const Event& event, Time now);
  void abort(Time now);
  void deafen(StreamClosing why);
  bool has_room_for(std::uint64_t frames) const;

  void settle(Time now);
  void shed(Time now);
  void cut_rows(Time now);
  bool hands_over();
  void feed_chunker();
  void fetch(std::uint64_t frames);
  std::uint64_t unfed() const;
  std::uint64_t held() const { return buffer_.held() + backlog_.held(); }
  void use_up_event();
  void give(const Row& row, Time now);
  void count(const Row& row);
  void measure_pause(Time now);
  std::uint64_t pause_frames() const;
  bool full() const;
  bool relieved(std::uint64_t at_most) const;
  void update_pause();
  void finish(Time now);

  const StreamSettings settings_;
  const StreamLinks links_;
  FrameConverter converter_;
  ClampWatch clamps_{settings_.type.rate, settings_.type.values};
  FrameBuffer buffer_;   // frames of rows; the chunker has yet to see the last unfed() of them
  FrameBuffer backlog_;  // those behind them that may be shed
  WaitingEvents waiting_;
  Chunker chunker_;
  OutstandingRows rows_;
  UnwrittenResults unwritten_;

  std::uint64_t position_ = 0;  // behind everything, what waits included
  Time arrived_;                // of the event that the chunker was given last
  std::uint64_t gap_ = 0;       // frames that this event lost
  std::uint64_t skipped_ = 0;   // frames lost by the events before: position minus buffer index
  std::uint64_t keep_ = 0;      // index of the first frame that rows to come may show
  std::uint64_t chunks_ = 0;    // rows with frames

  Input input_ = Input::open;
  bool cuts_all_ = false;  // rows are not bounded: it was aborted before a worker began
  bool client_listens_ = true;
  bool held_up_ = false;   // by what waits to be written to the client
  bool all_done_ = false;  // the last row is
  bool paused_ = false;
  Duration paused_for_{};  // in all, since half of the limit was held
  Time settled_{};
  bool has_room_ = false;
  bool finished_ = false;
  StreamClosing closing_ = StreamClosing::end;
  ResultLoss loss_ = ResultLoss::stream_closed;  // of results that are not written
};

}  // namespace millrace
