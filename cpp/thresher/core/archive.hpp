// Converts a learner's state to bytes and back. A class lists its fields once, in `archive(io)`:
// the same list saves and restores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <typeinfo>
#include <vector>

namespace thresher {

// Distinguishes the states of one rule and number type from all others: FNV-1a of the type's name.
template <class T>
std::uint64_t signature_of() {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char* c = typeid(T).name(); *c; ++c)
    hash = (hash ^ static_cast<unsigned char>(*c)) * 0x100000001B3u;
  return hash;
}

class Saver {
 public:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void operator()(const T& value) {
    const std::size_t end = bytes_.size();
    bytes_.resize(end + sizeof(T));
    std::memcpy(bytes_.data() + end, &value, sizeof(T));
  }
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void operator()(const std::vector<T>& values) {
    (*this)(std::uint64_t{values.size()});
    if (values.empty()) return;
    const std::size_t end = bytes_.size();
    bytes_.resize(end + values.size() * sizeof(T));
    std::memcpy(bytes_.data() + end, values.data(), values.size() * sizeof(T));
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class Restorer {
 public:
  explicit Restorer(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
    requires std::is_trivially_copyable_v<T>
  void operator()(T& value) {
    if (bytes_.size() < sizeof(T)) throw std::invalid_argument("the learner state is cut short");
    std::memcpy(static_cast<void*>(&value), bytes_.data(), sizeof(T));
    bytes_ = bytes_.subspan(sizeof(T));
  }
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void operator()(std::vector<T>& values) {
    std::uint64_t count = 0;
    (*this)(count);
    if (count > bytes_.size() / sizeof(T))
      throw std::invalid_argument("the learner state is cut short");
    values.resize(count);
    if (count == 0) return;
    std::memcpy(static_cast<void*>(values.data()), bytes_.data(), count * sizeof(T));
    bytes_ = bytes_.subspan(count * sizeof(T));
  }
  bool finished() const { return bytes_.empty(); }
  std::size_t left() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace thresher
