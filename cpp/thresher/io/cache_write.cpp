#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "thresher/io/cache.hpp"
#include "thresher/io/cache_format.hpp"
#include "thresher/io/cache_values.hpp"
#include "thresher/io/keys.hpp"
#include "thresher/io/retry.hpp"

namespace thresher::io {

using namespace format;

namespace {

bool row_by_row(const std::uint32_t* lines, std::size_t rows) {
  for (std::size_t row = 0; row < rows; ++row)
    if (lines[row] != row) return false;
  return true;
}

std::span<const std::byte> bytes_of(const auto& object) {
  return std::as_bytes(std::span(&object, 1));
}

using Kept = std::vector<const Name*>;  // the names of a block that are written

// The header of a block, except its size and checksum. Also makes the decimals of the values.
BlockHeader header_of(const Block& block, const Kept& names, std::vector<std::int16_t>& made) {
  const Batch& batch = block.batch;
  if (!batch.distinct) throw std::invalid_argument("a cache takes rows without repeated keys");
  BlockHeader header;
  header.rows = static_cast<std::uint64_t>(batch.rows);
  const auto rows = static_cast<std::size_t>(batch.rows);
  std::visit(
      [&](auto starts) {
        if constexpr (std::is_same_v<decltype(starts), std::monostate>)
          throw std::invalid_argument("a cache takes CSR rows");
        else if (starts[0] != 0)
          throw std::invalid_argument("the row starts of a block must begin at 0");
        else header.nonzeros = static_cast<std::uint64_t>(starts[batch.rows]);
      },
      batch.starts);
  const auto nonzeros = static_cast<std::size_t>(header.nonzeros);
  header.starts = header.nonzeros <= INT32_MAX ? Kind::narrow : Kind::wide;
  std::visit(
      [&](auto keys) {
        if constexpr (std::is_same_v<decltype(keys), std::monostate>) {
          throw std::invalid_argument("a cache takes CSR rows");
        } else {
          const std::uint64_t largest = largest_key(keys, nonzeros);
          header.keys = largest <= INT32_MAX ? Kind::narrow : Kind::wide;
          header.columns = static_cast<std::uint64_t>(batch.columns);
          // Learners do not check the bound, so replace it if a key exceeds it.
          if (nonzeros > 0 && largest >= header.columns)
            header.columns = static_cast<std::uint64_t>(bound_of(largest));
        }
      },
      batch.keys);
  header.values =
      std::visit([&](auto values) { return kind_of(values, nonzeros, made); }, batch.values);
  if (batch.labels) header.labels = Kind::wide;
  if (batch.weights && !all_one(batch.weights, rows)) header.weights = Kind::wide;
  if (block.label_starts) {
    header.lists = Kind::wide;
    header.label_count = static_cast<std::uint64_t>(block.label_starts[rows]);
  }
  if (block.tag_starts) {
    header.tags = Kind::narrow;
    header.tag_bytes = block.tag_starts[rows];
  }
  if (block.lines && !row_by_row(block.lines, rows)) header.lines = Kind::narrow;
  header.name_count = names.size();
  for (const Name* name : names) header.name_bytes += name->name.size();
  header.offset = block.offset, header.bytes = block.bytes;
  header.first_line = block.first_line, header.line_count = block.line_count;
  header.digest = block.digest;
  return header;
}

// The arrays of a block in the order of the file. Arrays of the types that a cache has are not
// copied.
class Arrays {
 public:
  Arrays(const Block& block, const Kept& names, const std::vector<std::int16_t>& made,
         const BlockHeader& header, const Layout& layout) {
    const Batch& batch = block.batch;
    std::visit([&](auto starts) { add(starts, header.starts, layout.starts); }, batch.starts);
    std::visit([&](auto keys) { add(keys, header.keys, layout.keys); }, batch.keys);
    if (is_decimal(header.values)) add_bytes(made.data(), layout.values);
    else
      std::visit([&](auto values) { add_values(values, header.values, layout.values); },
                 batch.values);
    add_bytes(batch.labels, layout.labels), add_bytes(batch.weights, layout.weights);
    add_bytes(block.label_starts, layout.label_starts);
    add_bytes(block.label_values, layout.label_values);
    add_bytes(block.tag_starts, layout.tag_starts), add_bytes(block.tags, layout.tags);
    add_bytes(block.lines, layout.lines);
    if (header.name_count > 0) add_names(names, layout);
  }

  // f(bytes) for each array, which padding to a multiple of `alignment` follows.
  template <class F>
  void each(F&& f) const {
    for (const auto& array : arrays_) f(array);
  }

  std::uint64_t sum() const {
    Checksum checksum;
    each([&](std::span<const std::byte> array) {
      checksum.take_padded(array.data(), array.size());
    });
    return checksum.sum();
  }

 private:
  void add_bytes(const void* from, const Layout::Array& to) {
    if (to.size > 0) arrays_.emplace_back(static_cast<const std::byte*>(from), to.size);
  }

  template <class To, class From>
  void add_as(const From* from, const Layout::Array& to) {
    if constexpr (std::is_same_v<To, From>) {
      add_bytes(from, to);
    } else {
      std::vector<std::byte>& copy = copies_.emplace_back(to.size);
      auto* into = reinterpret_cast<To*>(copy.data());
      for (std::size_t i = 0; i < to.size / sizeof(To); ++i) into[i] = static_cast<To>(from[i]);
      add_bytes(copy.data(), to);
    }
  }

  template <class From>
  void add(const From& from, Kind kind, const Layout::Array& to) {  // header_of() refused others
    if constexpr (std::is_same_v<From, std::monostate>) return;
    else if (kind == Kind::narrow) add_as<std::int32_t>(from, to);
    else add_as<std::int64_t>(from, to);
  }

  template <class From>
  void add_values(const From& from, Kind kind, const Layout::Array& to) {
    if (kind == Kind::narrow) add_as<float>(from, to);
    else add_as<double>(from, to);
  }

  void add_names(const Kept& names, const Layout& layout) {
    std::vector<std::byte>& keys = copies_.emplace_back(layout.name_keys.size);
    std::vector<std::byte>& starts = copies_.emplace_back(layout.name_starts.size);
    std::vector<std::byte>& text = copies_.emplace_back(layout.names.size);
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string& name = names[i]->name;
      std::memcpy(keys.data() + 8 * i, &names[i]->key, 8);
      std::memcpy(starts.data() + 8 * i, &end, 8);
      std::ranges::copy(std::as_bytes(std::span(name)), text.data() + end);
      end += name.size();
    }
    std::memcpy(starts.data() + 8 * names.size(), &end, 8);
    add_bytes(keys.data(), layout.name_keys), add_bytes(starts.data(), layout.name_starts);
    add_bytes(text.data(), layout.names);
  }

  std::vector<std::span<const std::byte>> arrays_;
  std::deque<std::vector<std::byte>> copies_;  // of arrays of other types; they keep their place
};

}  // namespace

struct CacheWriter::Open {
  Open(int file_, std::string path_) : file(file_), path(std::move(path_)) {}

  void write(std::span<const std::byte> bytes) {
    at += bytes.size();
    while (!bytes.empty()) {
      const std::size_t most = std::min<std::size_t>(bytes.size(), 1u << 30);
      const ssize_t n = retried([&] { return ::write(file, bytes.data(), most); });
      if (n < 0) throw SystemError(errno, path, "cannot write");
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }

  void write_padded(std::span<const std::byte> bytes) {
    static constexpr std::byte zeros[alignment] = {};
    write(bytes);
    write(std::span(zeros).first(aligned(bytes.size()) - bytes.size()));
  }

  // Starts writing to the disk now, so that the caller's fsync() waits less.
  void flush_early(std::uint64_t from, std::uint64_t size) const {
    ::sync_file_range(file, static_cast<off_t>(from), static_cast<off_t>(size),
                      SYNC_FILE_RANGE_WRITE);
  }

  // The names of a block without those that were written recently: once per file is enough, and a
  // frequent name would otherwise be in every block.
  Kept new_names(const Block& block) {
    if (written.empty() && !block.names.empty()) written.assign(std::size_t{1} << 20, 0);
    constexpr std::size_t ahead = 16;  // names between a prefetch and its use
    const auto place = [this](const Name& name) {
      return written.data() + (name.key * 0x9E3779B97F4A7C15u >> 44);
    };
    Kept kept;
    for (std::size_t i = 0; i < block.names.size(); ++i) {
      if (i + ahead < block.names.size()) __builtin_prefetch(place(block.names[i + ahead]), 1);
      const Name& name = block.names[i];
      std::uint64_t& last = *place(name);
      if (name.key == 0 || std::exchange(last, name.key) != name.key) kept.push_back(&name);
    }
    return kept;
  }

  int file;
  std::string path;
  std::uint64_t at = 0;
  std::vector<Entry> entries;
  std::vector<std::uint64_t> written;  // hash table: last key per slot whose name was written
  Trailer totals;
  bool bounded = true;  // all keys are below totals.width
};

CacheWriter::CacheWriter(int file, std::string path, std::string about)
    : open_(std::make_unique<Open>(file, std::move(path))) {
  FileHeader header;
  header.about_bytes = about.size();
  about.resize(aligned(about.size()), '\0');
  header.size = sizeof header + about.size();
  const auto text = std::as_bytes(std::span(about));
  header.sum = sum_of(header, text);
  open_->write(bytes_of(header));
  open_->write(text);
}

CacheWriter::~CacheWriter() = default;

CacheWriter::Open& CacheWriter::open() {
  if (!open_) throw std::invalid_argument("the cache was finished or abandoned");
  return *open_;
}

void CacheWriter::abandon() noexcept {
  const std::lock_guard lock(mutex_);
  open_.reset();
}

void CacheWriter::add(const Block& block) {
  const std::lock_guard lock(mutex_);
  Open& file = open();
  const Kept names = file.new_names(block);
  std::vector<std::int16_t> made;
  BlockHeader header = header_of(block, names, made);
  const Layout layout(header, UINT64_MAX / 2);
  header.size = layout.size;
  try {
    const Arrays arrays(block, names, made, header, layout);
    header.sum = sum_of(header, arrays.sum());
    Entry entry;
    entry.at = file.at, entry.size = layout.size;
    entry.rows = header.rows, entry.nonzeros = header.nonzeros, entry.columns = header.columns;
    file.entries.push_back(entry);
    file.write(bytes_of(header));
    arrays.each([&](std::span<const std::byte> array) { file.write_padded(array); });
    file.flush_early(entry.at, entry.size);
  } catch (...) {
    open_.reset();
    throw;
  }
  Trailer& totals = file.totals;
  ++totals.blocks;
  totals.rows += header.rows, totals.nonzeros += header.nonzeros;
  totals.width = std::max(totals.width, header.columns);
  totals.named |= header.name_count > 0;
  if (header.nonzeros > 0 && header.columns == 0) file.bounded = false;
}

void CacheWriter::finish(std::span<const std::uint8_t> sketch) {
  const std::lock_guard lock(mutex_);
  Open& file = open();
  try {
    Trailer& totals = file.totals;
    if (!file.bounded) totals.width = 0;
    totals.index = file.at;
    totals.sketch_bytes = sketch.size();
    const auto entries = std::as_bytes(std::span(file.entries));
    std::vector<std::byte> index(entries.begin(), entries.end());
    const auto sketch_bytes = std::as_bytes(sketch);
    index.insert(index.end(), sketch_bytes.begin(), sketch_bytes.end());
    index.resize(aligned(index.size()));
    totals.file_bytes = file.at + index.size() + sizeof totals;
    totals.sum = sum_of(totals, index);
    file.write(index);
    file.write(bytes_of(totals));
  } catch (...) {
    open_.reset();
    throw;
  }
  open_.reset();
}

}  // namespace thresher::io
