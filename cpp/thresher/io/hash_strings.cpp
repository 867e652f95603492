#include "thresher/io/hash_strings.hpp"

#include <cstring>
#include <stdexcept>

#include "thresher/io/hash.hpp"

namespace thresher::io {

template <class Offset>
void hash_strings(const Offset* offsets, std::size_t count, std::string_view data,
                  std::string_view prefix, std::uint64_t* out) {
  const std::string padded = std::string(prefix) + std::string(16, '\0');
  PrefixHash hash;
  hash.set_prefix({padded.data(), prefix.size()});
  char last[16] = {};
  for (std::size_t i = 0; i < count; ++i) {
    const auto from = static_cast<std::uint64_t>(offsets[i]);
    const auto to = static_cast<std::uint64_t>(offsets[i + 1]);
    if (from > to || to > data.size())
      throw std::invalid_argument("offsets must not decrease, and lie within the data");
    const char* text = data.data() + from;
    const std::size_t size = to - from;
    if (size == 0) {
      out[i] = hash64(prefix);
      continue;
    }
    if (from + 16 > data.size()) {  // 16 bytes must be readable
      std::memcpy(last, text, size);
      text = last;
    }
    out[i] = hash(text, size);
  }
}

template void hash_strings(const std::int32_t*, std::size_t, std::string_view, std::string_view,
                           std::uint64_t*);
template void hash_strings(const std::int64_t*, std::size_t, std::string_view, std::string_view,
                           std::uint64_t*);

}  // namespace thresher::io
