#include "thresher/io/cutter.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "thresher/io/bytes.hpp"
#include "thresher/io/hash.hpp"

namespace thresher::io {

namespace {

// The size up to and including the last newline of [data + from, data + size); 0 if there is none.
std::size_t whole_lines(const char* data, std::size_t from, std::size_t size) {
  while (size > from && data[size - 1] != '\n') --size;
  return size > from ? size : 0;
}

}  // namespace

char* Chunk::begin() const { return data_.get() + padding; }

void Chunk::reserve(std::size_t capacity) {
  if (capacity <= capacity_) return;
  capacity = std::max(capacity, capacity_ + capacity_ / 2);
  auto larger = std::make_unique_for_overwrite<char[]>(capacity + 2 * padding);
  std::memset(larger.get(), 0, padding);
  if (data_) std::memcpy(larger.get() + padding, begin(), size);
  data_ = std::move(larger), capacity_ = capacity;
}

Cutter::Cutter(ByteSource& source, std::uint64_t offset, std::size_t block_bytes,
               std::size_t max_line)
    : source_(source), offset_(offset), block_bytes_(block_bytes), max_line_(max_line) {
  if (block_bytes == 0 || max_line == 0 || max_line >= std::size_t{1} << 30)
    throw std::invalid_argument(
        "block_bytes and max_line must be at least 1 and max_line below 2^30");
  block_bytes_ = std::min(block_bytes_, max_line_ + 1);  // so that no block holds a longer line
}

bool Cutter::next(Chunk& chunk) {
  std::size_t size = std::exchange(chunk.size, 0);
  chunk.reserve(std::max(block_bytes_, carried_.size()));
  std::memcpy(chunk.begin(), carried_.data(), carried_.size());
  size = carried_.size();
  carried_.clear();
  chunk.offset = offset_, chunk.too_long = false, chunk.skipped = 0;

  std::size_t seen = 0, cut = 0, target = block_bytes_;
  for (;; target = std::min(target + block_bytes_, max_line_ + 1)) {
    chunk.size = size;
    chunk.reserve(target);
    if (!ended_) {  // fewer bytes than a block were carried, so there is room
      const std::size_t count = fill(chunk.begin() + size, target - size);
      ended_ = count < target - size;
      size += count;
    }
    cut = whole_lines(chunk.begin(), seen, size);
    if (cut == 0 && size == max_line_ + 1) {
      chunk.size = size;
      skip_line(chunk);
      break;
    }
    if (cut == 0 && ended_) cut = size;  // the last line, which has no newline
    if (cut != 0 || size == 0) {
      chunk.size = chunk.bytes = cut;
      carried_.assign(chunk.begin() + cut, size - cut);
      break;
    }
    seen = size;
  }
  offset_ += chunk.bytes;
  std::memset(chunk.begin() + chunk.size, 0, padding);
  chunk.begin()[chunk.size] = '\n';
  return chunk.bytes != 0;
}

std::size_t Cutter::fill(char* into, std::size_t size) {
  std::size_t count = 0;
  while (count < size) {
    const std::size_t more = source_.read(into + count, size - count);
    if (more == 0) break;
    count += more;
  }
  return count;
}

// The chunk holds the beginning of a line that is too long. Skips to the end of that line.
void Cutter::skip_line(Chunk& chunk) {
  chunk.too_long = true;
  chunk.bytes = chunk.size;
  std::string piece(block_bytes_, '\0');
  for (bool found = false; !found && !ended_;) {
    const std::size_t count = fill(piece.data(), piece.size());
    ended_ = count < piece.size();
    const std::size_t newline = std::string_view(piece.data(), count).find('\n');
    found = newline != std::string_view::npos;
    const std::size_t size = found ? newline + 1 : count;
    chunk.skipped = mix(chunk.skipped, hash64(piece.data(), size));
    chunk.bytes += size;
    if (found) carried_.assign(piece.data() + size, count - size);
  }
}

}  // namespace thresher::io
