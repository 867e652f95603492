// Reads any bytes as a cache: either they are rejected, or every block matches the index and can be
// read completely.
//
// Random bytes never have the right checksum, so the checksums of most mutated inputs are
// corrected.
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <variant>

#include "must.hpp"
#include "thresher/io/cache.hpp"
#include "thresher/io/cache_format.hpp"

namespace {

using fuzz::must;
using namespace thresher::io;

template <class T>
T at(std::span<const std::byte> bytes, std::size_t where) {
  T found;
  std::memcpy(static_cast<void*>(&found), bytes.data() + where, sizeof found);
  return found;
}

// Corrects the checksum of a header and the bytes between it and `end`.
template <class Header>
void seal(std::span<std::byte> bytes, std::size_t where, std::size_t end) {
  auto header = at<Header>(bytes, where);
  const std::span rest(bytes.data() + where + sizeof header, end - where - sizeof header);
  header.sum = format::sum_of(header, rest);
  std::memcpy(bytes.data() + where, &header, sizeof header);
}

void put_sums_right(std::span<std::byte> bytes) {
  using namespace format;
  if (bytes.size() < sizeof(FileHeader) + sizeof(Trailer)) return;
  const auto header = at<FileHeader>(bytes, 0);
  const std::size_t end = bytes.size() - sizeof(Trailer);
  if (header.size < sizeof header || header.size > end) return;
  seal<FileHeader>(bytes, 0, header.size);
  auto trailer = at<Trailer>(bytes, end);
  trailer.magic = end_magic, trailer.file_bytes = bytes.size();
  if (trailer.index <= end) {
    for (std::size_t i = trailer.index; i + sizeof(Entry) <= end; i += sizeof(Entry)) {
      const auto entry = at<Entry>(bytes, i);
      if (entry.at <= end && entry.size <= end - entry.at && entry.size >= sizeof(BlockHeader))
        seal<BlockHeader>(bytes, entry.at, entry.at + entry.size);
    }
    trailer.sum = sum_of(trailer, std::span(bytes.data() + trailer.index, end - trailer.index));
  }
  std::memcpy(bytes.data() + end, &trailer, sizeof trailer);
}

void walk(const Block& block) {
  const auto& batch = block.batch;
  std::visit(
      [&](auto starts, auto keys, auto values) {
        if constexpr (!std::is_same_v<decltype(starts), std::monostate> &&
                      !std::is_same_v<decltype(keys), std::monostate>) {
          must(starts[0] == 0);
          [[maybe_unused]] volatile double sum = 0;
          for (std::int64_t row = 0; row < batch.rows; ++row) {
            must(starts[row] <= starts[row + 1]);
            for (auto k = starts[row]; k < starts[row + 1]; ++k) {
              const auto key = static_cast<std::uint64_t>(std::int64_t{keys[k]});
              must(batch.columns == 0 || key < static_cast<std::uint64_t>(batch.columns));
              sum = static_cast<double>(values[k]);
            }
            if (batch.labels) sum = batch.labels[row];
            if (batch.weights) sum = batch.weights[row];
            if (block.lines) sum = block.lines[row];
            if (block.label_starts)
              for (auto i = block.label_starts[row]; i < block.label_starts[row + 1]; ++i)
                sum = block.label_values[i];
            if (block.tag_starts)
              for (auto i = block.tag_starts[row]; i < block.tag_starts[row + 1]; ++i)
                sum = block.tags[i];
          }
        }
      },
      batch.starts, batch.keys, batch.values);
}

void read_all(std::span<const std::byte> bytes) {
  try {
    CacheReader reader = CacheReader::from_memory(bytes);
    std::uint64_t rows = 0;
    for (std::size_t number = 0; number < reader.blocks(); ++number) {
      const Block block = reader.block(number, number % 2 ? Real::float32 : Real::float64);
      must(static_cast<std::uint64_t>(block.batch.rows) == reader.rows_of(number));
      rows += reader.rows_of(number);
      walk(block);
    }
    must(rows == reader.rows());
  } catch (const CacheError&) {
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t room);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t room, unsigned int seed) {
  size = LLVMFuzzerMutate(data, size, room);
  if (seed % 8 != 0) put_sums_right(std::as_writable_bytes(std::span(data, size)));
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read_all(std::as_bytes(std::span(data, size)));
  return 0;
}
