// The first name of each feature, collected while a text is read for another purpose, so that the
// text need not be read again for the names of a model. Memory is bounded: if there are too many
// names, all are dropped, and the names of a model need a second reading.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <mutex>
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
  std::size_t known = 0;  // bytes of the set of all keys that had names then; see FirstNames

  bool empty() const { return keys.empty(); }
  std::size_t bytes() const {
    return 8 * keys.capacity() + 4 * sizes.capacity() + text.capacity() + sizeof(NameList);
  }

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

  const std::uint64_t* words() const { return words_.data(); }

  void prefetch(std::uint64_t key) const { __builtin_prefetch(&words_[key / 64], 1); }

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
    if (4 * count_ >= 3 * slots_.size()) grow();
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
    slots_.assign(std::max<std::size_t>(2 * before.size(), std::size_t{1} << 12), 0);
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
    else grow(std::size_t{1} << 8);
  }

  void prefetch(std::uint64_t key) const {
    if (!exact_.empty()) exact_.prefetch(key);
    else __builtin_prefetch(&recent_[key & (recent_.size() - 1)], 1);
  }

  bool is_new(std::uint64_t key) {
    if (!exact_.empty()) return exact_.add(key);
    std::uint64_t& recent = recent_[key & (recent_.size() - 1)];
    if (recent == key) return false;
    recent = key;
    if (++count_ == recent_.size() && count_ < most_slots) grow(4 * recent_.size());
    return true;
  }

  // What vectors of keys are compared with, until the next new key. With `exact`: a bit for each
  // key; otherwise the last key per value of its lower bits, which `mask` selects.
  struct View {
    bool exact;
    const std::uint64_t* words;
    std::uint64_t mask;
  };
  View view() const {
    if (!exact_.empty()) return {true, exact_.words(), 0};
    return {false, recent_.data(), recent_.size() - 1};
  }

 private:
  static constexpr std::size_t most_slots = std::size_t{1} << 18;  // 2 MiB

  void grow(std::size_t slots) {
    const std::vector<std::uint64_t> before = std::move(recent_);
    recent_.assign(slots, 0);
    recent_[0] = 1;  // marks slot 0 as empty, as 0 marks the others: neither is a key of its slot
    for (std::size_t i = 0; i < before.size(); ++i)
      if (before[i] % before.size() == i) recent_[before[i] & (slots - 1)] = before[i];
  }

  KeyBits exact_;
  std::vector<std::uint64_t> recent_;  // the last key per value of its lower bits
  std::size_t count_ = 0;              // keys reported since the beginning
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

  std::size_t size() const { return size_; }

  // All features that have a name, in increasing order.
  std::vector<std::uint64_t> keys() const {
    std::vector<std::uint64_t> found;
    found.reserve(size_);
    for (const NameList& list : lists_)
      found.insert(found.end(), list.keys.begin(), list.keys.end());
    std::sort(found.begin(), found.end());
    return found;
  }

  // Removes the names of a block whose keys had names before. Must be called for blocks in file
  // order; another thread may call take() for blocks before it.
  void remove_known(NameList& names) {
    const std::lock_guard lock(mutex_);
    if (full() || names.empty()) return;
    if (few_.empty()) keep_new(names, many_);
    else keep_new(names, few_);
    names.known = few_.bytes() + many_.bytes();
  }
  // Stores the names of a block, after remove_known(), also in file order. The names that count are
  // those that were taken, however far a thread has read ahead.
  void take(NameList names) {
    if (full() || names.empty()) return;
    size_ += names.keys.size(), bytes_ += names.bytes();
    const std::size_t known = names.known;
    lists_.push_back(std::move(names));
    if (bytes_ + known <= most_bytes_) return;
    const std::lock_guard lock(mutex_);
    full_.store(true, std::memory_order_relaxed);
    lists_.clear(), size_ = bytes_ = 0, few_ = {}, many_ = {};
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
      const char* name = nullptr;  // null: it has none
      std::uint32_t size = 0;
    };
    std::vector<Place> places(keys.size());
    std::size_t bytes = 0, count = 0;
    for (const NameList& list : lists_) {
      const char* name = list.text.data();
      const std::vector<std::uint64_t>& own = list.keys;
      for (std::size_t i = 0; i < own.size(); name += list.sizes[i++]) {
        if (i + 2 * ahead < own.size()) sorted.prefetch_range(own[i + 2 * ahead]);
        if (i + ahead < own.size()) sorted.prefetch_keys(own[i + ahead]);
        const std::uint32_t place = sorted.find(own[i]);
        if (place == SortedKeys::none) continue;
        places[place] = {name, list.sizes[i]};
        bytes += list.sizes[i], ++count;
      }
    }
    Selected selected;
    selected.keys.reserve(count), selected.ends.reserve(count), selected.text.reserve(bytes);
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (i + ahead < places.size()) __builtin_prefetch(places[i + ahead].name);
      if (!places[i].name) continue;
      selected.keys.push_back(keys[i]);
      selected.text.insert(selected.text.end(), places[i].name, places[i].name + places[i].size);
      selected.ends.push_back(static_cast<std::int64_t>(selected.text.size()));
    }
    return selected;
  }

 private:
  static constexpr std::size_t ahead = 16;  // keys between a prefetch and its use

  // Removes the names whose keys are in the set, and adds the other keys to it.
  template <class Set>
  static void keep_new(NameList& names, Set& set) {
    std::size_t kept = 0, from = 0, to = 0;
    for (std::size_t i = 0; i < names.keys.size(); ++i) {
      if (i + ahead < names.keys.size()) set.prefetch(names.keys[i + ahead]);
      const std::uint32_t size = names.sizes[i];
      if (set.add(names.keys[i])) {
        if (i != kept) {
          names.keys[kept] = names.keys[i], names.sizes[kept] = size;
          std::memmove(names.text.data() + to, names.text.data() + from, size);
        }
        to += size, ++kept;
      }
      from += size;
    }
    names.keys.resize(kept), names.sizes.resize(kept), names.text.resize(to);
    names.keys.shrink_to_fit(), names.sizes.shrink_to_fit(), names.text.shrink_to_fit();
  }

  std::size_t most_bytes_, size_ = 0, bytes_ = 0;
  std::atomic<bool> full_ = false;
  std::vector<NameList> lists_;  // of blocks, in file order
  std::mutex mutex_;             // guards the members below
  KeyBits few_;                  // the keys that had names; empty if there may be too many bits
  KeyTable many_;
};

}  // namespace thresher::io
