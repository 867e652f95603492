// Builds a block while a parser runs: closes rows, records bad lines, and completes the block.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "thresher/io/parser.hpp"
#include "thresher/io/sketch.hpp"

namespace thresher::io {

// Sums the values of repeated keys in a row. A key keeps its first position, as in Rows::merge.
class Merger {
 public:
  // False only if no key repeats; hash collisions can make it true without a repetition. Rows of
  // names are rarely sorted, and this test takes a third of the time of merging.
  template <class Key>
  bool may_repeat(const Key* keys, std::size_t count) {
    if (count > 256) return true;
    if (++mark_ == 0) marks_.clear(), mark_ = 1;
    if (marks_.empty()) marks_.assign(std::size_t{1} << mark_bits, 0);
    std::uint8_t* const marks = marks_.data();
    const std::uint8_t mark = mark_;
    bool seen = false;
    for (std::size_t k = 0; k < count; ++k) {
      const std::uint64_t slot =
          static_cast<std::uint64_t>(keys[k]) * 0x9E3779B97F4A7C15u >> (64 - mark_bits);
      seen |= marks[slot] == mark;
      marks[slot] = mark;
    }
    return seen;
  }

  // Merges in place and returns the number of distinct keys. Sums may overflow Real.
  template <class Key, class Real>
  std::size_t operator()(Key* keys, Real* values, std::size_t count) {
    if (2 * count > table_.size()) grow(2 * count);
    if (++stamp_ == 0) table_.assign(table_.size(), 0), stamp_ = 1;
    const std::size_t mask = std::bit_ceil(2 * count) - 1;
    const std::uint64_t current = std::uint64_t{stamp_} << 32;
    std::size_t kept = 0;
    for (std::size_t k = 0; k < count; ++k) {
      const Key key = keys[k];
      std::size_t slot = (static_cast<std::uint64_t>(key) * 0x9E3779B97F4A7C15u >> 20) & mask;
      for (;; slot = (slot + 1) & mask) {
        const std::uint64_t entry = table_[slot];
        if (entry >> 32 != stamp_) {
          table_[slot] = current | kept;
          keys[kept] = key, values[kept] = values[k];
          ++kept;
          break;
        }
        if (keys[entry & 0xFFFFFFFFu] == key) {
          values[entry & 0xFFFFFFFFu] += values[k];
          break;
        }
      }
    }
    return kept;
  }

 private:
  void grow(std::size_t least) {
    table_.assign(std::bit_ceil(std::max<std::size_t>(least, 256)), 0);
    stamp_ = 0;
  }

  static constexpr int mark_bits = 15;
  std::vector<std::uint8_t> marks_;  // single bytes, so that the table fits into the L1 cache
  std::uint8_t mark_ = 0;
  std::vector<std::uint64_t> table_;  // high half: stamp of the row; low half: position in it
  std::uint32_t stamp_ = 0;
};

class Assembly {
 public:
  explicit Assembly(const Options& options)
      : bits_(options.bits),
        keep_going_(options.keep_going),
        mask_(options.bits ? (std::uint64_t{1} << options.bits) - 1 : ~std::uint64_t{0}) {
    if (options.sketch) registers_ = std::make_unique<std::uint8_t[]>(sketch_size + sketch_padding);
  }

  void begin(std::string_view text, std::shared_ptr<Storage> storage, Block& block) {
    storage_ = std::move(storage), block_ = &block;
    end_ = text.data() + text.size();
    line_ = 0, largest_ = 0, weighted_ = tagged_ = false;
    storage_->starts.push(0);
    if (registers_) ranks_.begin(registers_.get());
  }

  Storage& storage() const { return *storage_; }
  const char* end() const { return end_; }
  std::uint64_t mask() const { return mask_; }
  std::uint8_t* registers() const { return registers_.get(); }
  Ranks& ranks() { return ranks_; }
  bool folds() const { return bits_ != 0; }

  // Closes the row of `count` cells that starts at `first`. Returns the number of cells after
  // merging, or npos if the values of a repeated feature do not have a finite sum.
  static constexpr std::size_t npos = ~std::size_t{0};
  template <class Key, class Real>
  std::size_t close(Key* keys, Real* values, std::size_t first, std::size_t count) {
    using Unsigned = std::make_unsigned_t<Key>;
    keys += first, values += first;
    // 32-bit keys are never negative. Signed comparison is vectorized on all machines.
    using Compared = std::conditional_t<sizeof(Key) == 4, Key, Unsigned>;
    Compared falls = 0;
    for (std::size_t k = 1; k < count; ++k)
      falls |= static_cast<Compared>(keys[k - 1]) >= static_cast<Compared>(keys[k]);
    if (!falls) [[likely]] {
      if (count != 0) largest_ = std::max<std::uint64_t>(largest_, Unsigned(keys[count - 1]));
    } else {
      const std::size_t kept =
          merger_.may_repeat(keys, count) ? merger_(keys, values, count) : count;
      if (bits_ == 0)  // with bits_ set, the bits fix the number of columns
        for (std::size_t k = 0; k < kept; ++k)
          largest_ = std::max<std::uint64_t>(largest_, Unsigned(keys[k]));
      if (kept != count)
        for (std::size_t k = 0; k < kept; ++k)
          if (!std::isfinite(values[k])) return npos;
      count = kept;
    }
    storage_->starts.push(static_cast<std::int64_t>(first + count));
    storage_->lines.push(line_);
    return count;
  }

  // tag() and weigh() apply to the row that was closed last.
  void tag(std::string_view text) {
    if (!text.empty() && !tagged_) {  // the rows before it have no tag
      tagged_ = true;
      for (std::size_t row = 1; row < storage_->lines.size(); ++row) storage_->tag_starts.push(0);
    }
    if (!tagged_) return;
    Column<char>& tags = storage_->tags;
    storage_->tag_starts.push(static_cast<std::uint32_t>(tags.size()));
    tags.reserve(tags.size() + text.size());
    std::copy(text.begin(), text.end(), tags.data() + tags.size());
    tags.resize(tags.size() + text.size());
  }

  void weigh(double weight) {
    weighted_ |= weight != 1;
    storage_->weights.push(weight);
  }

  void next_line() { ++line_; }

  // Records a bad line and returns the position where parsing continues.
  const char* bad(const char* line, const Complaint& complaint) {
    const char* const stop = end_of_line(line, end_);
    auto size = static_cast<std::size_t>(stop - line);
    if (size > 0 && line[size - 1] == '\r') --size;
    if (!keep_going_) size = std::min(size, shown_bytes);
    const auto column = static_cast<std::uint64_t>(complaint.at - line) + 1;
    block_->bad.push_back({line_, column, complaint.what, std::string(line, size)});
    ++line_;
    if (keep_going_) return stop + 1;
    for (const char* p = stop + 1; p < end_; p = end_of_line(p, end_) + 1) ++line_;
    return end_;
  }

  template <class Key, class Real>
  void finish() {
    Storage& s = *storage_;
    Batch& batch = block_->batch;
    batch.rows = static_cast<std::int64_t>(s.lines.size());
    constexpr std::uint64_t bound = std::uint64_t{1} << 63;
    const std::uint64_t columns = bits_ ? mask_ + 1 : s.starts[s.lines.size()] ? largest_ + 1 : 0;
    // Without any key every bound holds. 0 would mean that no bound exists.
    batch.columns = largest_ + 1 >= bound || largest_ == ~std::uint64_t{0} ? 0
                    : columns == 0 ? 1
                                   : static_cast<std::int64_t>(columns);
    batch.starts = static_cast<const std::int64_t*>(s.starts.data());
    batch.keys = static_cast<const Key*>(s.keys<Key>().data());
    batch.values = static_cast<const Real*>(s.values<Real>().data());
    if (s.label_starts.size()) {
      block_->label_starts = s.label_starts.data();
      s.label_values.reserve(1);
      block_->label_values = s.label_values.data();
    } else {
      s.labels.reserve(1);
      batch.labels = s.labels.data();
    }
    if (weighted_) batch.weights = s.weights.data();
    if (tagged_) {
      s.tag_starts.push(static_cast<std::uint32_t>(s.tags.size()));
      block_->tag_starts = s.tag_starts.data(), block_->tags = s.tags.data();
    }
    batch.distinct = true;
    if (registers_) {
      ranks_.flush(registers_.get());
      block_->sketch.assign(registers_.get(), registers_.get() + sketch_size);
    }
    block_->line_count = line_;
    if (line_ != s.lines.size()) s.lines.reserve(1), block_->lines = s.lines.data();
    block_->owner = std::move(storage_);
  }

 private:
  int bits_;
  bool keep_going_;
  std::uint64_t mask_;

  std::shared_ptr<Storage> storage_;
  Block* block_ = nullptr;
  const char* end_ = nullptr;
  std::uint32_t line_ = 0;
  std::uint64_t largest_ = 0;
  bool weighted_ = false, tagged_ = false;
  std::unique_ptr<std::uint8_t[]> registers_;  // of all blocks so far: most keys change nothing
  Ranks ranks_;
  Merger merger_;
};

}  // namespace thresher::io
