// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/budget.h"
#include "base/bytes.h"
#include "base/error_code.h"
#include "base/message_room.h"
#include "base/result_head.h"
#include "base/returned.h"
#include "base/time.h"
#include "streams/client_output.h"
#include "streams/client_posts.h"
#include "streams/intake.h"
#include "streams/resume_points.h"
#include "streams/row_cutter.h"
#include "streams/row_waits.h"
#include "streams/stats/stats.h"
#include "streams/stream_input.h"
#include "streams/stream_settings.h"
#include "streams/stream_tap.h"
#include "streams/unwritten_results.h"

namespace millrace {

// One live stream between its client's connection and its lane: receives the messages of the client
// and of the lane, gives rows to the lane and results to the client, in order. It lives until its
// rows are done; its connection may end before. It has no clock and does no I/O: every input
// carries its time, and calls the host and the client's output before it returns. These must not
// call back into the stream, except for its const functions.
//
// Rows are bounded: while max_ready_rows are in no batch, later events wait before the chunker,
// each with the instant of reading. Frames are bounded too: while paused() the client should not be
// read. Frames that arrive anyway are kept. A client's pings wait behind its frames and have a
// timeout, so a paused client is read slowly (`pause_frames`). A frame is held while an outstanding
// row or a later row shows it. A client of Opus is also paused while it is too fast (InputPace).
//
// Results and messages of workers are never dropped while the client is connected. While
// ClientOutput::full(), no row is given to the lane. The unwritten results are therefore bounded:
// by the limit of full(), plus the answers to the rows that the lane already had, plus the room of
// messages. closed() follows when all results were written.
//
// With `shed_after`, frames that have waited longer than that become a gap of the same number of
// frames, with reason `overflow`. This happens at the next input, the next message of the lane, or
// tick(). Rows are never dropped.
//
// Messages of the client to the worker are kept until the row that carries them is done. They count
// as frames once a row carries them, and have a bound of their own (`kept_posts`): the client is
// paused while rows keep too many. A message beyond the bound is rejected: the client has sent no
// row for `waiting_posts`, its transport does not pause, or the stream sheds.
//
// Confined to one thread. Does not allocate in steady state, except for these messages.
class Stream final : public StreamInput {
 public:
  // `connection` and `tenant` are the stream's shares of the limits on connections and on streams
  // of its tenant, held until it is destroyed.
  // `tap` sees the stream's events until it is finished; null: the stream is not recorded.
  // `resume`: the stream may be resumed; null: it may not.
  Stream(StreamSettings settings, const StreamLinks& links, ClientOutput& client,
         Share connection = {}, std::unique_ptr<StreamTap> tap = {},
         const ResumeSettings* resume = nullptr, Share tenant = {});
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void frames(Bytes message, Time now) override;
  std::size_t piece(Bytes message) override { return intake_.piece(message); }
  void flush(std::optional<std::uint64_t> mark, Time now) override;
  void reset(Time now) override;
  void gap(std::uint64_t client_frames, Time now) override;
  void post(std::string_view data, Time now) override;
  void set(std::string_view options, Time now) override;
  // This stream does not resume: it fails.
  void acknowledge(std::uint64_t n, Time now) override;
  void end(Time now) override;
  void reject(ErrorCode code, std::string_view message, std::uint64_t client_frames,
              Time now) override;
  void reject_command(ErrorCode code, std::string_view message, Time now) override;
  void fail(ErrorCode code, std::string_view message, Time now) override;
  void drain(Time now) override;
  void disconnected(ConnectionEnd how, Time now) override;
  // The client frames that surely fit into the rest of the limit, rounded down; but 0 while more
  // than half of the limit is held and rows are outstanding, so that not every row causes a
  // message. With `shed_after` always the rest. While blocks are scarce it is at most half of the
  // limit, and 0 while rows are in no batch. At least 1 while only the client can complete the next
  // row. At most what InputPace allows: tick() then makes credit available.
  std::uint64_t credit() const override;
  bool overrun() const override { return waiting_events() >= WaitingEvents::overrun; }
  bool has_ended() const override { return input_ != Input::open; }
  void tick(Time now) override { settle(now); }
  void written(std::size_t results, Time now) override;
  void release(Time now) override;

  // From its lane. message(): a worker has sent a message for the client. batched(): the row with
  // this number, and those before it, were put into batches. done(): its oldest row is done.
  // dropped(): the lanes dropped the stream with all its rows; if it failed, `code` is the error
  // for the client.
  void batched(std::uint64_t seq, Time now);
  void done(RowDone row, Time now);
  void message(WorkerMessage message, Time now);
  void dropped(std::optional<ErrorCode> code, Time now);

  // For a stream that may be resumed. received(): the frames and commands of the client that have
  // arrived. resume_point(): where the stream can be continued without a loss.
  // drop_partial_frame(): the connection was lost in the middle of a frame, which will come again.
  struct Received {
    std::uint64_t frames = 0;
    std::uint64_t commands = 0;
  };
  Received received() const { return {intake_.client_frames(), points_->commands()}; }
  ResumePoint resume_point() const;
  void drop_partial_frame() { intake_.drop_partial_frame(); }
  std::uint64_t next_row() const { return points_->next_row(); }
  // The client has received this place: no earlier one is returned.
  void forget_before(const ResumePoint& point) { intake_.forget(point.begin); }
  // Its client's connection is lost, and may come back.
  void set_detached(bool detached, Time now);
  bool detached() const { return detached_; }
  // False once its last row is done.
  bool has_slot() const { return !all_done_ && !finished_; }
  void count_resumed(bool kept) const {
    links_.stats.resumed[kept ? ResumedState::kept : ResumedState::lost].add();
  }

  // Sends `goaway` to the client, at most once; the stream continues.
  void goaway();
  bool has_goaway() const { return has_goaway_; }

  // Ends the stream because memory is short and it holds the most: drops the frames that wait
  // before the chunker and the unwritten results, and fails. Its frames stay if the client has
  // ended the stream; its messages stay if an error or `closed` is queued.
  void evict(Time now);
  // Bytes that evict() frees, once the ready rows are done.
  std::size_t reclaimable() const;

  // True once its last row is done, or it was dropped: no row refers to its frames. If its client
  // is connected, every result was written too.
  bool finished() const { return finished_; }
  // True until release().
  bool connected() const { return client_ != nullptr; }
  // The client's address; empty if it is not connected or unknown.
  std::string peer() const { return client_ ? client_->peer() : std::string(); }

  const StreamSettings& settings() const { return settings_; }
  std::uint64_t position() const { return intake_.position(); }
  // The current size of the stream's bodies, in frames.
  std::uint32_t body_size() const { return cutter_.body_size(); }
  std::uint64_t held_bytes() const;

 private:
  enum class Input : std::uint8_t { open, ended, over };

  bool takes_input();
  void count_command(bool waits) {
    if (points_) points_->received(waits);
  }
  void settle_or_fail(bool in_range, Time now);
  bool has_room_for(std::string_view text);
  bool merges(std::string_view options);
  void add_post(Event::Kind kind, std::string_view text, Time now);
  void drop_waiting();
  void end_input(Input how, Cause cause, Time now);
  void abort(Time now);
  void stop_output(StreamClosing why);
  void send_error(ErrorCode code, std::string_view message);

  void settle(Time now);
  void cut_rows(Time now);
  bool hands_over();
  bool client_follows() const { return client_listens_ && client_->follows_rows(); }
  template <class Call>
  void report(Call call, Time now);
  void report_segment(const Row& last);
  void report_speech();
  void report_settled();
  bool needs_batched() const;
  void deliver(const Row& row, const RowDone& done);
  void free_room(std::uint32_t bytes);
  void finish(Time now);

  std::uint64_t held() const;  // frames, and messages as frames
  bool waits_for_client() const;
  bool posts_full() const;
  bool posts_relieved() const;
  std::size_t waiting_events() const;
  void measure_pause(Time now);
  std::uint64_t pause_frames() const;
  bool full() const;
  bool relieved(std::uint64_t at_most) const;
  void update_pause();

  const StreamSettings settings_;
  const StreamLinks links_;
  const Share connection_, tenant_;
  ClientOutput* client_;  // null after release()
  RowCutter cutter_;
  Intake intake_;
  std::unique_ptr<StreamTap> tap_;        // null: not recorded, or finished
  std::unique_ptr<ResumePoints> points_;  // null: the stream cannot be resumed
  UnwrittenResults unwritten_;
  std::unique_ptr<ClientPosts> posts_;  // null before the client's first message to the worker
  std::uint64_t messages_ = 0;          // messages of workers to the client
  FreedRoom freed_room_;
  RowWaits waits_;

  Input input_ = Input::open;
  bool cuts_all_ = false;       // rows are not bounded: aborted before a worker had a row
  bool client_listens_ = true;  // until error(), closed() or the loss of the connection
  bool has_goaway_ = false, draining_ = false;
  bool held_up_ = false;   // unwritten results keep rows from the lane
  bool ended_ = false;     // the last row is cut
  bool all_done_ = false;  // the last row is done
  bool finished_ = false;
  bool has_credit_ = false;
  bool detached_ = false;
  bool has_much_ = false;  // was full, and not relieved since: a reason to be paused
  StreamClosing closing_ = StreamClosing::end;
  ResultLoss loss_ = ResultLoss::stream_closed;  // reason for results that are not written
  Duration paused_for_{};  // total time paused for this since at most half of the limit was held
  Time settled_{};
};

}  // namespace millrace
