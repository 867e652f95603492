// Parses any bytes as VW text, with options that the size of the input chooses; see text.hpp.
#include "thresher/io/vw.hpp"

#include <array>

#include "text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using thresher::io::Options;
  static const std::array<Options, 5> options{
      Options{}, Options{.names = true}, Options{.single = false, .bits = 5, .sketch = true},
      Options{.interactions = {{'a', 'b'}, {':', ' '}, {'c', 'c'}}, .names = true},
      Options{.single = false, .bits = 40, .interactions = {{':', ':'}}}};
  // The number of interactions is quadratic in the length of a line.
  const std::size_t way = size % (size > 256 ? 3 : options.size());
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  fuzz::read_two_ways(text, thresher::io::make_vw, options[way], size / options.size());
  return 0;
}
