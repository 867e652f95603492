// Converts a learner's state to bytes and back. A class lists its fields once, in `archive(io)`:
// the same list saves and restores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace thresher {

// Distinguishes the states of one rule and number type from all others: FNV-1a of the type's name.
std::uint64_t signature_of(const std::type_info& type);
template <class T>
std::uint64_t signature_of() {
  return signature_of(typeid(T));
}

class Saver {
 public:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void operator()(const T& value) {
    add(&value, sizeof(T));
  }
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void operator()(const std::vector<T>& values) {
    (*this)(std::uint64_t{values.size()});
    add(values.data(), values.size() * sizeof(T));
  }
  void reserve(std::size_t more) { bytes_.reserve(bytes_.size() + more); }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void add(const void* from, std::size_t size);

  std::vector<std::byte> bytes_;
};

class Restorer {
 public:
  explicit Restorer(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
    requires std::is_trivially_copyable_v<T>
  void operator()(T& value) {
    get(&value, sizeof(T));
  }
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void operator()(std::vector<T>& values) {
    values.resize(count(sizeof(T)));
    get(values.data(), values.size() * sizeof(T));
  }
  bool finished() const { return bytes_.empty(); }
  std::size_t left() const { return bytes_.size(); }

 private:
  void get(void* to, std::size_t size);  // throws if there are fewer bytes
  std::size_t count(std::size_t size);   // of a vector whose numbers have this size

  std::span<const std::byte> bytes_;
};

}  // namespace thresher
