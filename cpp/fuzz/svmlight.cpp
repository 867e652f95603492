// Parses any bytes as svmlight text; see text.hpp.
#include "thresher/io/svmlight.hpp"

#include "text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using thresher::io::Options;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto make = thresher::io::make_svmlight;
  fuzz::read_each_way(text, make, Options{});
  fuzz::read_each_way(text, make, Options{.single = false, .bits = 5, .zero_based = true});
  fuzz::read_each_way(text, make, Options{.multilabel = true, .sketch = true});
  return 0;
}
