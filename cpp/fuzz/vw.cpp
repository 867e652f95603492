// Parses any bytes as VW text; see text.hpp.
#include "thresher/io/vw.hpp"

#include "text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using thresher::io::Options;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto make = thresher::io::make_vw;
  fuzz::read_each_way(text, make, Options{.names = true});
  fuzz::read_each_way(text, make, Options{.single = false, .bits = 5, .sketch = true});
  if (size > 1024) return 0;  // the number of interactions is quadratic in the length of a line
  fuzz::read_each_way(text, make,
                      Options{.interactions = {{'a', 'b'}, {':', ' '}, {'c', 'c'}}, .names = true});
  fuzz::read_each_way(text, make,
                      Options{.single = false, .bits = 40, .interactions = {{':', ':'}}});
  return 0;
}
