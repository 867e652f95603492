// What is done to the lines of a row, for every level of vectors: tables of functions, chosen at run time.
//
// A cell holds what all lanes keep of one feature: lines of 4, 8 or 16 numbers, a number a lane. A kernel
// takes one line of every cell of a row. The arithmetic of a coordinate is the rule's own
// (core/coordinate.hpp), the vectors are of lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace thresher::lanes {

constexpr std::size_t widest = 16;  // numbers of a line

// What all lanes keep of a feature.
template <class Real>
struct Cell {
  Real* numbers;
  Real* stamps;  // of groups that have no room for theirs among the numbers
};

// The cells of a row's features, by number, and their values; and as many cells of later rows, to prefetch
// meanwhile.
template <class Real>
struct RowOfCells {
  Cell<Real> first;                  // cell 0
  std::size_t stride, stamp_stride;  // from one cell to the next
  const std::uint32_t* numbers;
  const Real* x;
  std::size_t n;
  const std::uint32_t* later;

  Cell<Real> cell(std::size_t k) const {
    return {first.numbers + numbers[k] * stride, first.stamps + numbers[k] * stamp_stride};
  }
};

// One cell, as a row with x = 1.
template <class Real>
RowOfCells<Real> alone(const Cell<Real>& cell) {
  static constexpr std::uint32_t zero = 0;
  static constexpr Real one = 1;
  return {cell, 0, 0, &zero, &one, 1, &zero};
}

// What truncated gradient needs to pay a line of a row: its events (shrinkage/ledger.hpp), counted in units that a
// lane multiplies with its own pull.
template <class Real>
struct Debt {
  const double* Q;  // Q[e]: paid up to event e
  const double* B;  // the same for l2; none without
  double Q_now, B_now, B_before;
  std::uint64_t now;
  const Real* pull;   // of each lane, in units of Q
  const Real* theta;  // ceiling of each lane
  bool last;          // line of the group
  bool l2;
};

enum class Pay { truncate, ceiling, truncate_l2, round };  // round: with l2 or without

// Sums over a row are taken in two chains, even and odd places, each block of 4096 added in double
// precision: the same at every level.
template <class Real>
struct TruncatedKernels {
  // Applies the pending events of the lines at `line` of all cells, and takes the inner products with
  // x. With `writes` it stores the weights, and `now` as the stamp: the last number of the line, or
  // number `stamp` of the cell's stamps, which the last line of a group sets.
  void (*open)(const RowOfCells<Real>&, std::size_t line, std::size_t stamp, const Debt<Real>&,
               bool writes, double* dot);
  // w += step x
  void (*close)(const RowOfCells<Real>&, std::size_t line, std::uint64_t now, const Real* step);
};

template <class Real>
struct FTRLKernels {
  // A line is z, then n. Keeps the weights in `w`, if given: as many for each cell as there are lanes.
  void (*open)(const RowOfCells<Real>&, std::size_t line, const Real* l1, const Real* a,
               const Real* c, Real* w, double* dot);
  void (*close)(const RowOfCells<Real>&, std::size_t line, const Real* slope, const Real* a,
                const Real* w);
};

// What lanes predict, are told and suffer in a row; n is a multiple of 16.
struct LossesOfRow {
  std::size_t n;
  const double *p, *y, *alive;  // alive: 1, or 0 for slots without a lane that learns
  double *value, *slope, *factor,
      *g;  // as in loss/loss.hpp; g: the slope times the weight of the row
};

struct Weighed {
  bool fits;  // all steps are within bounds
  bool any;   // is not 0
};

struct LossKernels {
  // g, and whether |g| rate < bound in all lanes. Lanes that do not learn suffer nothing. Of the logistic
  // loss values, slopes and factors are found here; of others, they are given.
  Weighed (*logistic)(const LossesOfRow&, double weight, const double* rates, double bound);
  Weighed (*given)(const LossesOfRow&, double weight, const double* rates, double bound);
  // sum += value, product *= factor; the largest product.
  double (*add)(const LossesOfRow&, double* sum, double* product);
};

// All kernels of one level, for lines of 4, 8 and 16 lanes.
template <class Real>
struct Table {
  TruncatedKernels<Real> truncated[3][2][4];  // [size][is the last lane the stamp?][Pay]
  FTRLKernels<Real> ftrl[3];
  // Inner products of the lines with x.
  void (*inner[3])(const RowOfCells<Real>&, std::size_t line, double* dot);
  // A line is v, then u: v += gv x, u += gu x.
  void (*averaged_close[3])(const RowOfCells<Real>&, std::size_t line, const Real* gv,
                            const Real* gu);
  // w = S(w + step x, lambda) where x is not 0
  void (*perceptron_close[3])(const RowOfCells<Real>&, std::size_t line, const Real* step,
                              const Real* lambda);
  LossKernels losses;
};

// The number of a line of so many lanes in a table.
inline std::size_t size_number(std::size_t lanes) { return lanes <= 4 ? 0 : lanes <= 8 ? 1 : 2; }
inline std::size_t size_of_number(std::size_t number) { return std::size_t{4} << number; }

// level: "avx512" | "avx2" | "portable", or "auto" for the widest that this machine has.
template <class Real>
const Table<Real>& kernels(const std::string& level);

// What "auto" stands for here.
std::string widest_level();

}  // namespace thresher::lanes
