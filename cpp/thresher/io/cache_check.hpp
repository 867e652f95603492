// Checks that a block of a cache is intact before it is used.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "thresher/io/cache_format.hpp"
#include "thresher/io/keys.hpp"

namespace thresher::io::format {

// Whether starts begin at 0, never decrease, and end at `end`.
template <class Start>
bool are_starts(const Start* starts, std::uint64_t rows, std::uint64_t end) {
  if (starts[0] != 0 || static_cast<std::uint64_t>(starts[rows]) != end) return false;
  bool ordered = true;
  for (std::uint64_t row = 0; row < rows; ++row) ordered &= starts[row] <= starts[row + 1];
  return ordered;
}

struct Digest {
  std::uint64_t sum;      // checksum of the arrays
  std::uint64_t largest;  // largest key
};

// The checksum of a block's arrays and its largest key. Works in pieces, so that they are still in
// the processor's cache when they are used: `fill(end)` reads the block at least up to `end`.
template <class Fill>
Digest digest_of(const std::byte* base, std::uint64_t size, const Layout::Array& keys, Kind kind,
                 const Fill& fill) {
  constexpr std::uint64_t piece = 1 << 14;
  Checksum sum;
  std::uint64_t largest = 0;
  for (std::uint64_t at = sizeof(BlockHeader); at < size; at += piece) {
    const std::uint64_t end = std::min(size, at + piece);
    fill(end);
    sum.take(base + at, end - at);
    const std::uint64_t from = std::max(at, keys.at), to = std::min(end, keys.at + keys.size);
    if (from >= to) continue;
    const auto* bytes = base + from;
    largest = std::max(
        largest, kind == Kind::narrow
                     ? largest_key(reinterpret_cast<const std::int32_t*>(bytes), (to - from) / 4)
                     : largest_key(reinterpret_cast<const std::int64_t*>(bytes), (to - from) / 8));
  }
  return {sum.sum(), largest};
}

// Describes what is wrong with the block that begins at `base`; null if it is valid. The header is
// read already; `fill` reads the rest. A checksum can be forged and learners do not check keys and
// starts, so these are checked as well.
template <class Fill>
const char* block_fault(const std::byte* base, const Entry& of, const BlockHeader& header,
                        const Layout& layout, const Fill& fill) {
  if (header.magic != block_magic || header.size != of.size || header.rows != of.rows ||
      header.nonzeros != of.nonzeros || header.columns != of.columns)
    return "its header does not match the index";
  const auto one_of = [](Kind kind, std::initializer_list<Kind> kinds) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  };
  if (!one_of(header.starts, {Kind::narrow, Kind::wide}) ||
      !one_of(header.keys, {Kind::narrow, Kind::wide}) ||
      !one_of(header.values, {Kind::none, Kind::narrow, Kind::wide, Kind::whole, Kind::tenths,
                              Kind::hundredths, Kind::thousandths}) ||
      !one_of(header.labels, {Kind::none, Kind::wide}) ||
      !one_of(header.weights, {Kind::none, Kind::wide}) ||
      !one_of(header.lists, {Kind::none, Kind::wide}) ||
      !one_of(header.tags, {Kind::none, Kind::narrow}) ||
      !one_of(header.lines, {Kind::none, Kind::narrow}))
    return "its header has unknown types";
  if (!layout.fits || layout.size != of.size) return "its sizes do not match";
  const Digest digest = digest_of(base, of.size, layout.keys, header.keys, fill);
  if (header.sum != sum_of(header, digest.sum)) return "its checksum does not match";

  const auto array = [base]<class T>(const Layout::Array& where, const T*) {
    return reinterpret_cast<const T*>(base + where.at);
  };
  const std::int32_t* narrow = nullptr;
  const std::int64_t* wide = nullptr;
  const bool starts = header.starts == Kind::narrow
                          ? are_starts(array(layout.starts, narrow), of.rows, of.nonzeros)
                          : are_starts(array(layout.starts, wide), of.rows, of.nonzeros);
  const bool unbounded = header.keys == Kind::wide && of.columns == 0;
  const bool keys = of.nonzeros == 0 || unbounded || digest.largest < of.columns;
  const bool lists = header.lists == Kind::none ||
                     are_starts(array(layout.label_starts, wide), of.rows, header.label_count);
  const bool tags = header.tags == Kind::none ||
                    are_starts(array(layout.tag_starts, static_cast<const std::uint32_t*>(nullptr)),
                               of.rows, header.tag_bytes);
  const bool names = header.name_count == 0 || are_starts(array(layout.name_starts, wide),
                                                          header.name_count, header.name_bytes);
  if (!starts || !lists || !tags || !names) return "its row starts are out of order";
  if (!keys) return "a key exceeds its number of columns";
  return nullptr;
}

}  // namespace thresher::io::format
