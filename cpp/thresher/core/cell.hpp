// The numbers of one coordinate, next to each other: a coordinate is in one cache line.
//
// In single precision two numbers are one 8-byte word, which is loaded and stored as a whole. If
// the halves were stored one by one, the next row's load of the whole word would stall: the store
// buffer cannot forward it.
#pragma once

#include <bit>
#include <cstdint>

namespace thresher {

// A coordinate with one number.
template <class Real>
class Single {
 public:
  Single() = default;
  explicit Single(Real value) : value_(value) {}
  Real value() const { return value_; }
  bool operator==(const Single&) const = default;

 private:
  Real value_ = 0;
};

template <class A, class B>
class Pair {
 public:
  Pair() = default;
  Pair(A a, B b) : a_(a), b_(b) {}
  A first() const { return a_; }
  B second() const { return b_; }
  bool operator==(const Pair&) const = default;

 private:
  A a_{};
  B b_{};
};

template <class A, class B>
  requires(sizeof(A) == 4 && sizeof(B) == 4)
class Pair<A, B> {
 public:
  Pair() = default;
  Pair(A a, B b)
      : word_(std::uint64_t{std::bit_cast<std::uint32_t>(b)} << 32 |
              std::bit_cast<std::uint32_t>(a)) {}
  A first() const { return std::bit_cast<A>(static_cast<std::uint32_t>(word_)); }
  B second() const { return std::bit_cast<B>(static_cast<std::uint32_t>(word_ >> 32)); }
  // Both numbers, for vectors: gcc 12 writes a bit_cast of a cell to the stack as well.
  std::int64_t word() const { return static_cast<std::int64_t>(word_); }
  bool operator==(const Pair&) const = default;

 private:
  std::uint64_t word_ = 0;
};

}  // namespace thresher
