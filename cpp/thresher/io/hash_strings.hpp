// The keys of many strings, such as a column of an Arrow table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace thresher::io {

// out[i] is the key of prefix + data[offsets[i]:offsets[i + 1]]. Offset: std::int32_t or std::int64_t.
template <class Offset>
void hash_strings(const Offset* offsets, std::size_t count, std::string_view data,
                  std::string_view prefix, std::uint64_t* out);

}  // namespace thresher::io
