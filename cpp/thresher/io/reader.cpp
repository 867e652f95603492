#include "thresher/io/reader.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "thresher/io/hash.hpp"

namespace thresher::io {

namespace {

std::string too_long(std::size_t limit) {
  constexpr std::size_t mebi = std::size_t{1} << 20;
  return "line longer than " +
         (limit % mebi ? std::to_string(limit) + " bytes" : std::to_string(limit / mebi) + " MiB");
}

}  // namespace

Reader::Reader(std::unique_ptr<ByteSource> source, const MakeParser& make_parser,
               const Reading& reading, bool keep_going, InOrder in_order)
    : source_(std::move(source)),
      cutter_(*source_, reading.offset, reading.block_bytes, reading.max_line),
      pool_(std::make_shared<Pool>(static_cast<std::size_t>(std::max(1, reading.threads)) + 4)),
      line_(reading.first_line),
      keep_going_(keep_going),
      ahead_(static_cast<std::uint64_t>(std::max(1, reading.threads)) + 2),
      in_order_(std::move(in_order)),
      results_(ahead_) {
  // The caller's thread counts as one of the threads; another worker would only compete with it.
  const int workers = std::max(1, reading.threads - 1);
  for (int i = 0; i < workers; ++i) parsers_.push_back(make_parser());
  if (reading.threads > 1) start();
}

void Reader::start() {
  workers_.reserve(parsers_.size());
  try {
    for (const auto& parser : parsers_) workers_.emplace_back([this, &parser] { run(*parser); });
  } catch (const std::exception&) {
    // No memory, or the system starts no more threads: those that have started parse all blocks.
    // Without any, the caller's thread does.
  }
}

std::unique_ptr<Block> Reader::next(const Waiting& waiting) {
  if (done_) return nullptr;
  Result result = workers_.empty() ? work(chunk_, *parsers_[0], nullptr, nullptr) : wait(waiting);
  if (result.error) {
    done_ = true;
    std::rethrow_exception(std::move(result.error));
  }
  if (!result.block) {
    done_ = true;
    return nullptr;
  }
  Block& block = *result.block;
  block.first_line = line_;
  line_ += block.line_count;
  if (in_order_ && parsers_.size() > 1) in_order_(block);
  done_ = !keep_going_ && !block.bad.empty();
  return std::move(result.block);
}

// Reads and parses one block. If `turn` is given, it is locked: it is unlocked when the bytes are
// read, and `number` is set to the block's number.
Reader::Result Reader::work(Chunk& chunk, Parser& parser, std::unique_lock<std::mutex>* turn,
                            std::uint64_t* number) {
  try {
    bool more = false;
    try {
      more = cutter_.next(chunk);
    } catch (...) {
      exhausted_ = true;
      if (turn) *number = started_++, turn->unlock();
      throw;
    }
    if (!more) exhausted_ = true;
    if (turn) *number = started_++, turn->unlock();
    if (!more) return {};

    auto block = std::make_unique<Block>();
    block->offset = chunk.offset, block->bytes = chunk.bytes;
    block->digest = hash64(chunk.text());
    if (chunk.too_long) {
      parser.parse(chunk.text().substr(0, 0), pool_->take(), *block);  // no rows
      block->digest = mix(block->digest, chunk.skipped);
      block->line_count = 1;
      block->bad.push_back({0, cutter_.max_line() + 1, too_long(cutter_.max_line()),
                            std::string(chunk.begin(), std::min(chunk.size, shown_bytes))});
    } else {
      parser.parse(chunk.text(), pool_->take(), *block);
    }
    if (in_order_ && parsers_.size() == 1) in_order_(*block);
    return {std::move(block), nullptr};
  } catch (...) {
    return {nullptr, std::current_exception()};
  }
}

void Reader::run(Parser& parser) {
  Chunk chunk;
  for (;;) {
    std::unique_lock turn(turn_);
    if (exhausted_) return;
    {
      std::unique_lock lock(mutex_);
      room_.wait(lock, [&] { return stopping_ || started_ < delivered_ + ahead_; });
      if (stopping_) return;
    }
    std::uint64_t number = 0;
    Result result = work(chunk, parser, &turn, &number);
    std::lock_guard lock(mutex_);
    results_[number % ahead_] = std::move(result);
    if (number == delivered_) ready_.notify_one();
  }
}

Reader::Result Reader::wait(const Waiting& waiting) {
  std::unique_lock lock(mutex_);
  const auto due = [&] { return stopping_ || results_[delivered_ % ahead_]; };
  if (!waiting) ready_.wait(lock, due);
  while (!ready_.wait_for(lock, std::chrono::milliseconds(100), due)) {
    lock.unlock();
    waiting();
    lock.lock();
  }
  if (stopping_) return {};
  Result found = *std::exchange(results_[delivered_ % ahead_], std::nullopt);
  ++delivered_;
  room_.notify_one();
  return found;
}

void Reader::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
  ready_.notify_all();
  workers_.clear();  // joins
  done_ = true;
}

}  // namespace thresher::io
