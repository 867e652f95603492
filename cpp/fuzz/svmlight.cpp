// With clang, from cpp:
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined fuzz/svmlight.cpp thresher/io/svmlight.cpp
// With g++ fuzz/replay_main.cpp is added, and -fsanitize=address,undefined; it runs files.
#include "../thresher/io/svmlight.hpp"

#include "invariants.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto parser = thresher::io::make_svmlight(fuzz::options(data[0], data[1]));
  fuzz::run(*parser, data + 2, size - 2);
  return 0;
}
