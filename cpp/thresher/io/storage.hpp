// Memory for the rows of a block. A reader makes thousands of blocks, so it reuses the memory of
// released blocks: new pages cost more than a tenth of the time of parsing into them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace thresher::io {

// A vector that leaves its elements uninitialized and allows writing beyond its size, within its
// capacity.
template <class T>
class Column {
 public:
  T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  void resize(std::size_t size) { size_ = size; }  // within the reserved capacity
  void clear() { size_ = 0; }

  void reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    capacity = std::max(capacity, 2 * capacity_);
    auto larger = std::make_unique_for_overwrite<T[]>(capacity);
    std::copy_n(data_.get(), size_, larger.get());
    data_ = std::move(larger), capacity_ = capacity;
  }
  void push(T value) {
    if (size_ == capacity_) [[unlikely]]
      reserve(size_ + 64);
    data_[size_++] = value;
  }
  T& operator[](std::size_t i) const { return data_[i]; }

 private:
  std::unique_ptr<T[]> data_;
  std::size_t size_ = 0, capacity_ = 0;
};

struct Storage {
  Column<std::int64_t> starts, keys_64, label_starts;
  Column<std::int32_t> keys_32;
  Column<float> values_32;
  Column<double> values_64, labels, weights, label_values;
  Column<std::uint32_t> tag_starts, lines;
  Column<char> tags;

  template <class Key>
  Column<Key>& keys() {
    if constexpr (sizeof(Key) == 4) return keys_32;
    else return keys_64;
  }
  template <class Real>
  Column<Real>& values() {
    if constexpr (sizeof(Real) == 4) return values_32;
    else return values_64;
  }
  void clear() {
    starts.clear(), keys_64.clear(), label_starts.clear(), keys_32.clear(), values_32.clear();
    values_64.clear(), labels.clear(), weights.clear(), label_values.clear(), tag_starts.clear();
    lines.clear(), tags.clear();
  }
};

// Memory that no block uses: storages, or single columns. Memory in use returns to the pool when its
// block is released, if the pool still exists.
template <class Memory>
class PoolOf : public std::enable_shared_from_this<PoolOf<Memory>> {
 public:
  // Room for all of it: memory returns while a block is released, and that may not fail.
  explicit PoolOf(std::size_t most) : most_(most) { free_.reserve(most); }

  std::shared_ptr<Memory> take() {
    std::unique_ptr<Memory> storage;
    {
      std::lock_guard lock(mutex_);
      if (!free_.empty()) storage = std::move(free_.back()), free_.pop_back();
    }
    if (!storage) storage = std::make_unique<Memory>();
    storage->clear();
    return {storage.release(), [pool = this->weak_from_this()](Memory* used) {
              std::unique_ptr<Memory> back(used);
              if (const auto home = pool.lock()) home->give(std::move(back));
            }};
  }

 private:
  void give(std::unique_ptr<Memory> storage) {
    std::lock_guard lock(mutex_);
    if (free_.size() < most_) free_.push_back(std::move(storage));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Memory>> free_;
  std::size_t most_;
};
using Pool = PoolOf<Storage>;

}  // namespace thresher::io
