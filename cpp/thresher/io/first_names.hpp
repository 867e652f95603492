// The first name of each feature, collected while a text is read for another purpose, so that the
// text need not be read again for the names of a model. Memory is bounded: if there are too many
// names, all are dropped, and the names of a model need a second reading.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace thresher::io {

// Names in few allocations.
struct NameList {
  std::vector<std::uint64_t> keys;
  std::vector<std::uint32_t> sizes;  // of the names in `text`
  std::string text;

  bool empty() const { return keys.empty(); }
  std::size_t bytes() const { return 12 * keys.size() + text.size(); }

  template <class... Parts>
  void add(std::uint64_t key, Parts... parts) {
    const std::size_t before = text.size();
    ((text += parts), ...);
    keys.push_back(key);
    sizes.push_back(static_cast<std::uint32_t>(text.size() - before));
  }
};

// A bit for each key: a set of keys that have few bits.
class KeyBits {
 public:
  static constexpr int most_bits = 24;  // 2 MiB

  KeyBits() = default;
  explicit KeyBits(int bits) : words_(((std::size_t{1} << bits) + 63) / 64, 0) {}
  bool empty() const { return words_.empty(); }
  std::size_t bytes() const { return 8 * words_.size(); }

  // Adds a key; returns whether it is new.
  bool add(std::uint64_t key) {
    std::uint64_t& word = words_[key / 64];
    const std::uint64_t bit = std::uint64_t{1} << key % 64;
    if (word & bit) return false;
    word |= bit;
    return true;
  }

 private:
  std::vector<std::uint64_t> words_;
};

inline bool has_key_bits(int bits) { return bits > 0 && bits <= KeyBits::most_bits; }

// A set of keys of 64 bits. Keys are hashes, so their lowest bits choose the slot.
class KeyTable {
 public:
  std::size_t bytes() const { return 8 * slots_.size(); }

  void prefetch(std::uint64_t key) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[key & (slots_.size() - 1)]);
  }

  // Adds a key; returns whether it is new.
  bool add(std::uint64_t key) {
    if (key == 0) return !std::exchange(zero_, true);  // 0 marks an empty slot
    if (2 * count_ >= slots_.size()) grow();
    std::uint64_t& slot = find(key);
    if (slot == key) return false;
    slot = key, ++count_;
    return true;
  }

 private:
  std::uint64_t& find(std::uint64_t key) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = key & mask;
    while (slots_[at] != 0 && slots_[at] != key) at = (at + 1) & mask;
    return slots_[at];
  }

  void grow() {
    const std::vector<std::uint64_t> before = std::move(slots_);
    slots_.assign(std::max<std::size_t>(4 * before.size(), std::size_t{1} << 12), 0);
    for (const std::uint64_t key : before)
      if (key != 0) find(key) = key;
  }

  std::vector<std::uint64_t> slots_;
  std::size_t count_ = 0;
  bool zero_ = false;
};

// Tells a parser which names it has probably reported before. With few bits it is exact; otherwise
// it forgets keys. It never says so of a key that is new.
class ReportedKeys {
 public:
  explicit ReportedKeys(int bits) {
    if (has_key_bits(bits)) exact_ = KeyBits(bits);
    else {
      recent_.assign(slots, 0);
      recent_[0] = 1;  // marks slot 0 as empty, as 0 marks the others: neither is a key of its slot
    }
  }

  bool is_new(std::uint64_t key) {
    if (!exact_.empty()) return exact_.add(key);
    std::uint64_t& recent = recent_[key % slots];
    if (recent == key) return false;
    recent = key;
    return true;
  }

 private:
  static constexpr std::size_t slots = std::size_t{1} << 17;
  KeyBits exact_;
  std::vector<std::uint64_t> recent_;
};

// Finds keys among sorted ones in two steps: the highest bits choose a short range.
class SortedKeys {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  explicit SortedKeys(std::span<const std::uint64_t> keys) : keys_(keys) {
    if (keys.empty()) return;
    const auto ranges = static_cast<int>(std::bit_width(keys.size()));
    shift_ = std::max(0, static_cast<int>(std::bit_width(keys.back())) - ranges);
    starts_.assign((keys.back() >> shift_) + 2, 0);
    for (const std::uint64_t key : keys) ++starts_[(key >> shift_) + 1];
    for (std::size_t i = 1; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
  }

  void prefetch_range(std::uint64_t key) const {
    if (in_range(key)) __builtin_prefetch(&starts_[key >> shift_]);
  }
  void prefetch_keys(std::uint64_t key) const {
    if (in_range(key)) __builtin_prefetch(keys_.data() + starts_[key >> shift_]);
  }

  // The position of a key, or none.
  std::uint32_t find(std::uint64_t key) const {
    if (!in_range(key)) return none;
    const auto first = keys_.begin() + starts_[key >> shift_];
    const auto last = keys_.begin() + starts_[(key >> shift_) + 1];
    const auto at = last - first < 8 ? std::find_if(
                                           first, last, [&](auto k) { return k >= key; })
                                     : std::lower_bound(first, last, key);
    return at != last && *at == key ? static_cast<std::uint32_t>(at - keys_.begin()) : none;
  }

 private:
  bool in_range(std::uint64_t key) const { return !keys_.empty() && key <= keys_.back(); }

  std::span<const std::uint64_t> keys_;
  int shift_ = 0;
  std::vector<std::uint32_t> starts_;
};

class FirstNames {
 public:
  // `bits`: number of lower bits of a key that are kept; 0: all.
  FirstNames(int bits, std::size_t most_bytes) : most_bytes_(most_bytes) {
    if (has_key_bits(bits)) few_ = KeyBits(bits);
  }
  FirstNames(const FirstNames&) = delete;  // parsers keep pointers to it
  FirstNames& operator=(const FirstNames&) = delete;

  // Whether there were too many names. Parsers ask it.
  bool full() const { return full_.load(std::memory_order_relaxed); }

  std::size_t size() const { return names_.keys.size(); }

  // Stores the names of a block. Must be called for blocks in file order.
  void take(const NameList& names) {
    if (full()) return;
    constexpr std::size_t ahead = 16;
    const char* text = names.text.data();
    for (std::size_t i = 0; i < names.keys.size(); text += names.sizes[i++]) {
      if (few_.empty() && i + ahead < names.keys.size()) many_.prefetch(names.keys[i + ahead]);
      const std::uint64_t key = names.keys[i];
      if (few_.empty() ? many_.add(key) : few_.add(key))
        names_.add(key, std::string_view(text, names.sizes[i]));
    }
    if (names_.bytes() + few_.bytes() + many_.bytes() <= most_bytes_) return;
    full_.store(true, std::memory_order_relaxed);
    names_ = {}, few_ = {}, many_ = {};
  }

  // The names of given keys, in the order of the keys.
  struct Selected {
    std::vector<std::uint64_t> keys;  // without those that have no name
    std::vector<std::int64_t> ends;
    std::vector<std::uint8_t> text;
  };

  // `keys` must be increasing.
  Selected of(std::span<const std::uint64_t> keys) const {
    const SortedKeys sorted(keys);
    struct Place {
      std::size_t at = 0;
      std::uint32_t size = 0, found = 0;
    };
    std::vector<Place> places(keys.size());
    constexpr std::size_t ahead = 16;
    std::size_t at = 0, bytes = 0, count = 0;
    const std::vector<std::uint64_t>& own = names_.keys;
    for (std::size_t i = 0; i < own.size(); at += names_.sizes[i++]) {
      if (i + 2 * ahead < own.size()) sorted.prefetch_range(own[i + 2 * ahead]);
      if (i + ahead < own.size()) sorted.prefetch_keys(own[i + ahead]);
      const std::uint32_t place = sorted.find(own[i]);
      if (place == SortedKeys::none) continue;
      places[place] = {at, names_.sizes[i], 1};
      bytes += names_.sizes[i], ++count;
    }
    Selected selected;
    selected.keys.reserve(count), selected.ends.reserve(count), selected.text.reserve(bytes);
    const auto* const text = reinterpret_cast<const std::uint8_t*>(names_.text.data());
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (i + ahead < places.size()) __builtin_prefetch(text + places[i + ahead].at);
      if (!places[i].found) continue;
      const std::uint8_t* const name = text + places[i].at;
      selected.keys.push_back(keys[i]);
      selected.text.insert(selected.text.end(), name, name + places[i].size);
      selected.ends.push_back(static_cast<std::int64_t>(selected.text.size()));
    }
    return selected;
  }

 private:
  std::size_t most_bytes_;
  std::atomic<bool> full_ = false;
  NameList names_;
  KeyBits few_;  // the keys of `names_`; empty if there may be too many bits
  KeyTable many_;
};

}  // namespace thresher::io
