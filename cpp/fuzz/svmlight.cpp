// Parses any bytes as svmlight text, with options that the size of the input chooses; see text.hpp.
#include "thresher/io/svmlight.hpp"

#include <array>

#include "text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using thresher::io::Options;
  static const std::array<Options, 3> options{
      Options{}, Options{.single = false, .bits = 5, .zero_based = true},
      Options{.multilabel = true, .sketch = true}};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  fuzz::read_two_ways(text, thresher::io::make_svmlight, options[size % options.size()],
                      size / options.size());
  return 0;
}
