// Sums in one fixed order, whatever the width of the machine's vectors: element k goes to partial sum
// k mod 8, the eight are added in pairs, and blocks of 4096 elements are added in double precision.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace thresher {

// Eight numbers as an array of 16-byte vectors, which every 64-bit machine has. Left to itself the
// compiler vectorises across the partial sums with shuffles, several times slower.
template <class Real>
struct EightLanes {
  typedef Real Vector __attribute__((vector_size(16)));
  static constexpr std::size_t width = 16 / sizeof(Real), vectors = 8 / width;

  Vector part[vectors] = {};

  void add(const Real* a) {
    for (std::size_t i = 0; i < vectors; ++i) part[i] += load(a + i * width);
  }
  void add_product(const Real* a, const Real* b) {
    for (std::size_t i = 0; i < vectors; ++i) part[i] += load(a + i * width) * load(b + i * width);
  }
  void add_one(std::size_t lane, Real value) { part[lane / width][lane % width] += value; }

  double total() const {
    const auto lane = [this](std::size_t k) { return static_cast<double>(part[k / width][k % width]); };
    return ((lane(0) + lane(1)) + (lane(2) + lane(3))) + ((lane(4) + lane(5)) + (lane(6) + lane(7)));
  }

 private:
  static Vector load(const Real* from) {
    Vector v;
    std::memcpy(&v, from, sizeof v);
    return v;
  }
};

constexpr std::size_t sum_block = 4096;

template <class Real>
inline double dot(const Real* a, const Real* b, std::size_t n) {
  double total = 0.0;
  for (std::size_t k = 0; k < n;) {
    const std::size_t end = std::min(n, k + sum_block);
    EightLanes<Real> lanes;
    for (; k + 8 <= end; k += 8) lanes.add_product(a + k, b + k);
    for (std::size_t lane = 0; k < end; ++k, ++lane) lanes.add_one(lane, a[k] * b[k]);
    total += lanes.total();
  }
  return total;
}

template <class Real>
inline double sum(const Real* a, std::size_t n) {
  double total = 0.0;
  for (std::size_t k = 0; k < n;) {
    const std::size_t end = std::min(n, k + sum_block);
    EightLanes<Real> lanes;
    for (; k + 8 <= end; k += 8) lanes.add(a + k);
    for (std::size_t lane = 0; k < end; ++k, ++lane) lanes.add_one(lane, a[k]);
    total += lanes.total();
  }
  return total;
}

}  // namespace thresher
