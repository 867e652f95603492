// Built as svmlight.cpp, with cpp/thresher/io/vw.cpp.
#include "../thresher/io/vw.hpp"

#include "invariants.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2 || size > 4096) return 0;  // interactions are quadratic
  thresher::io::Options options = fuzz::options(data[0], data[1]);
  constexpr std::array<char, 2> pairs[] = {{'a', 'b'}, {'a', 'a'}, {':', ':'}, {'a', ':'}};
  for (int i = 0; i < 4; ++i)
    if (data[1] >> (4 + i) & 1) options.interactions.push_back(pairs[i]);
  if (data[0] & 64) {
    const std::uint64_t keys[] = {0, 1, 7, 1000};
    options.wanted = std::make_shared<const thresher::io::KeySet>(keys);
  }
  const auto parser = thresher::io::make_vw(options);
  fuzz::run(*parser, data + 2, size - 2);
  return 0;
}
