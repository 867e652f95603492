// The layout of a cache file, shared by writer and reader.
//
//   FileHeader, about (JSON)
//   BlockHeader, arrays          for each block
//   Entry                        for each block
//   sketch
//   Trailer                      the last bytes of the file
//
// Every section begins at a multiple of 64 bytes and is little-endian. A checksum covers every
// byte, including padding: the sum in a header covers the header itself (with sum = 0) and
// everything up to the next header; the sum in the trailer covers the trailer, the entries and the
// sketch.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "thresher/io/checksum.hpp"

namespace thresher::io::format {

constexpr std::uint32_t version = 2, oldest = 1;            // format 1 has no decimals
constexpr std::uint64_t file_magic = 0x0A65686361435489u;   // "\x89TCache\n"
constexpr std::uint64_t block_magic = 0x0A6B636F6C425489u;  // "\x89TBlock\n"
constexpr std::uint64_t end_magic = 0x0A646E4568635489u;    // "\x89TchEnd\n"
constexpr std::size_t alignment = 64;

constexpr std::uint64_t aligned(std::uint64_t size) {
  return (size + alignment - 1) / alignment * alignment;
}

struct FileHeader {
  std::uint64_t magic = file_magic;
  std::uint32_t version = format::version;
  std::uint32_t unused = 0;
  std::uint64_t size = 0;  // of header, text and padding: the offset of the first block
  std::uint64_t about_bytes = 0;
  std::uint64_t more[3] = {};
  std::uint64_t sum = 0;
};
static_assert(sizeof(FileHeader) == alignment);

// How an array is stored: with 4 bytes each (narrow), 8 (wide), or 2 (decimals). Decimals are whole
// numbers of 16 bits, which are divided by parts() to give the values exactly.
enum class Kind : std::uint8_t {
  none = 0,
  narrow = 1,
  wide = 2,
  whole = 3,
  tenths = 4,
  hundredths = 5,
  thousandths = 6
};
constexpr std::array decimals{Kind::whole, Kind::tenths, Kind::hundredths, Kind::thousandths};
constexpr bool is_decimal(Kind kind) { return kind >= Kind::whole; }
constexpr double parts(Kind kind) {
  return kind == Kind::whole        ? 1
         : kind == Kind::tenths     ? 10
         : kind == Kind::hundredths ? 100
                                    : 1000;
}

struct BlockHeader {
  std::uint64_t magic = block_magic;
  std::uint64_t size = 0;  // includes all arrays
  std::uint64_t sum = 0;
  std::uint64_t rows = 0, nonzeros = 0, columns = 0;
  std::uint64_t label_count = 0;  // for multilabel rows: the number of labels of all rows
  std::uint64_t tag_bytes = 0, name_count = 0, name_bytes = 0;
  std::uint64_t offset = 0, bytes = 0, first_line = 0, line_count = 0, digest = 0;  // as in Block
  Kind starts = Kind::none;
  Kind keys = Kind::none;
  Kind values = Kind::none;  // none: all are 1; the only array that may have decimals
  Kind labels = Kind::none;
  Kind weights = Kind::none;  // none: all are 1
  Kind lists = Kind::none;
  Kind tags = Kind::none;
  Kind lines = Kind::none;  // none: row r is line r
};
static_assert(sizeof(BlockHeader) == 2 * alignment);

struct Entry {
  std::uint64_t at = 0, size = 0;  // position and size of the block in the file
  std::uint64_t rows = 0, nonzeros = 0, columns = 0;
  std::uint64_t more[3] = {};
};
static_assert(sizeof(Entry) == alignment);

struct Trailer {
  std::uint64_t index = 0;  // where the entries begin
  std::uint64_t blocks = 0, rows = 0, nonzeros = 0, width = 0;
  std::uint64_t named = 0;
  std::uint64_t sketch_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t more[6] = {};
  std::uint64_t sum = 0;
  std::uint64_t magic = end_magic;
};
static_assert(sizeof(Trailer) == 2 * alignment);

template <class Header>
std::uint64_t sum_of(Header header, std::uint64_t sum_of_rest) {
  static_assert(std::is_trivially_copyable_v<Header>);
  header.sum = 0;
  // A change of only one of the two sums changes the result.
  return std::rotl(checksum(&header, sizeof header), 31) ^ sum_of_rest;
}
template <class Header>
std::uint64_t sum_of(const Header& header, std::span<const std::byte> rest) {
  return sum_of(header, checksum(rest.data(), rest.size()));
}

// Position of each array relative to the block's first byte; size 0 if the block does not have it.
struct Layout {
  struct Array {
    std::uint64_t at = 0, size = 0;
  };
  Array starts, keys, values, labels, weights, label_starts, label_values, tag_starts, tags, lines;
  Array name_keys, name_starts, names;
  std::uint64_t size = sizeof(BlockHeader);
  bool fits = true;  // the arrays stay within the limit

  // A damaged header can contain any numbers, so no array is placed beyond `limit` bytes.
  Layout(const BlockHeader& header, std::uint64_t limit) : limit_(limit) {
    const auto width = [](Kind kind) -> std::uint64_t {
      return kind == Kind::narrow ? 4 : is_decimal(kind) ? 2 : 8;
    };
    const auto optional = [&](Array& array, Kind kind, std::uint64_t count) {
      if (kind != Kind::none) place(array, count, width(kind));
    };
    if (header.rows >= limit || header.name_count >= limit) fits = false;
    place(starts, header.rows + 1, width(header.starts));
    place(keys, header.nonzeros, width(header.keys));
    optional(values, header.values, header.nonzeros);
    optional(labels, header.labels, header.rows);
    optional(weights, header.weights, header.rows);
    if (header.lists != Kind::none) {
      place(label_starts, header.rows + 1, 8);
      place(label_values, header.label_count, 8);
    }
    if (header.tags != Kind::none) {
      place(tag_starts, header.rows + 1, 4);
      place(tags, header.tag_bytes, 1);
    }
    optional(lines, header.lines, header.rows);
    if (header.name_count > 0) {
      place(name_keys, header.name_count, 8);
      place(name_starts, header.name_count + 1, 8);
      place(names, header.name_bytes, 1);
    }
  }

 private:
  void place(Array& array, std::uint64_t count, std::uint64_t width) {
    if (!fits || size > limit_ || count > (limit_ - size) / width) {
      fits = false;
      return;
    }
    array = {size, count * width};
    size += aligned(array.size);
  }

  std::uint64_t limit_;
};

}  // namespace thresher::io::format
