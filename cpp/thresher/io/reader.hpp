// Turns bytes into blocks, in order, with one or more threads.
//
// Workers take turns at the source: each reads the bytes of one block, passes the source to the
// next worker, and parses. Blocks are returned in file order; only a few are read ahead.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "thresher/io/block.hpp"
#include "thresher/io/cutter.hpp"
#include "thresher/io/parser.hpp"
#include "thresher/io/source.hpp"

namespace thresher::io {

struct Reading {
  int threads = 1;
  std::uint64_t offset = 0;      // position of the source in its file
  std::uint64_t first_line = 1;  // line number at that position
  std::size_t block_bytes = std::size_t{1} << 20;
  std::size_t max_line = std::size_t{32} << 20;
  std::uint64_t end = FileBytes::all;  // position in the file where reading stops
};

class Reader {
 public:
  using MakeParser = std::function<std::unique_ptr<Parser>()>;
  using Waiting = std::function<void()>;
  using InOrder = std::function<void(Block&)>;

  // `in_order`, if not null, is called for each block in file order, before next() returns it: by
  // the thread that parsed it if only one does, else by the thread that calls next().
  Reader(std::unique_ptr<ByteSource> source, const MakeParser& make_parser, const Reading& reading,
         bool keep_going = true, InOrder in_order = {});
  ~Reader() { stop(); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Returns the next block, or null at the end; without keep_going, also null after a block with a
  // bad line. Rethrows errors of source and parser at the block where they occurred. Only one
  // thread may call it at a time. While it waits for the workers, it calls `waiting` ten times a
  // second; if `waiting` throws, the error is passed on and no block is lost: call next() again.
  std::unique_ptr<Block> next(const Waiting& waiting = {});

  // Stops the workers. No block can be read afterwards.
  void stop();

 private:
  struct Result {
    std::unique_ptr<Block> block;  // null at the end
    std::exception_ptr error;
  };

  Result work(Chunk& chunk, Parser& parser, std::unique_lock<std::mutex>* turn,
              std::uint64_t* number);
  void start();
  void run(Parser& parser);
  Result wait(const Waiting& waiting);

  std::unique_ptr<ByteSource> source_;
  Cutter cutter_;
  std::shared_ptr<Pool> pool_;
  std::uint64_t line_;
  bool keep_going_, done_ = false;
  std::uint64_t ahead_;  // maximum number of blocks that are read but not yet delivered

  InOrder in_order_;
  std::vector<std::unique_ptr<Parser>> parsers_;
  Chunk chunk_;  // used by the caller's thread if there are no workers

  std::mutex turn_;            // held while reading from the source
  std::uint64_t started_ = 0;  // blocks whose bytes were read
  bool exhausted_ = false;     // guarded by turn_: the source has no more bytes
  std::mutex mutex_;           // guards the members below
  std::condition_variable room_, ready_;
  std::vector<std::optional<Result>> results_;  // of block n at n modulo ahead_: no allocation
  std::uint64_t delivered_ = 0;
  bool stopping_ = false;
  std::vector<std::jthread> workers_;
};

}  // namespace thresher::io
