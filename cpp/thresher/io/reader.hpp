// Bytes to blocks, in order, by one thread or several.
//
// Workers take turns at the source: each reads one block's bytes, lets the next one read, and parses. Blocks
// are handed over in the order of the file, and only a few are ahead of the caller.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
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
  std::uint64_t offset = 0;      // where the source stands in its file
  std::uint64_t first_line = 1;  // which line that is
  std::size_t block_bytes = std::size_t{1} << 20;
  std::size_t max_line = std::size_t{32} << 20;
  std::uint64_t end = FileBytes::all;  // of a file: where to stop
};

class Reader {
 public:
  using MakeParser = std::function<std::unique_ptr<Parser>()>;
  using Waiting = std::function<void()>;

  Reader(std::unique_ptr<ByteSource> source, const MakeParser& make_parser, const Reading& reading,
         bool keep_going = true);
  ~Reader() { stop(); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // The next block, or none at the end, or behind a block with a bad line where the parser does not keep
  // going. Throws what source and parser threw, in its turn. For one thread at a time. While it waits for
  // the workers it calls `waiting` ten times a second, and throws what that throws: nothing is lost then,
  // and the block can be asked for again.
  std::unique_ptr<Block> next(const Waiting& waiting = {});

  // Ends the workers. Nothing can be read afterwards.
  void stop();

 private:
  struct Result {
    std::unique_ptr<Block> block;  // none at the end
    std::exception_ptr error;
  };

  Result work(Chunk& chunk, Parser& parser, std::unique_lock<std::mutex>* turn,
              std::uint64_t* number);
  void run(Parser& parser);
  Result wait(const Waiting& waiting);

  std::unique_ptr<ByteSource> source_;
  Cutter cutter_;
  std::shared_ptr<Pool> pool_;
  std::uint64_t line_;
  bool keep_going_, done_ = false;
  std::uint64_t ahead_;  // so many blocks at most are read and not delivered

  std::vector<std::unique_ptr<Parser>> parsers_;
  Chunk chunk_;  // of the caller's thread, where it works alone

  std::mutex turn_;            // to read from the source
  std::uint64_t started_ = 0;  // blocks whose bytes were read
  bool exhausted_ = false;     // under turn_: nothing more to read
  std::mutex mutex_;           // of all below
  std::condition_variable room_, ready_;
  std::map<std::uint64_t, Result> results_;
  std::uint64_t delivered_ = 0;
  bool stopping_ = false;
  std::vector<std::jthread> workers_;
};

}  // namespace thresher::io
