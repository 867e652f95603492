// Kernels on the lines of a row, for each vector level: tables of functions, chosen at run time.
//
// A cell holds the numbers of all lanes for one feature, in lines of 4, 8 or 16 lanes. A kernel
// processes one line of every cell of a row. The arithmetic per coordinate is that of the rule
// (rules/coordinate_steps.hpp); the elements of a vector are lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>

#include "thresher/rules/coordinate_steps.hpp"

namespace thresher::lanes {

constexpr std::size_t widest = 16;  // maximum number of numbers in a line

// The numbers of all lanes for one feature.
template <class Real>
struct Cell {
  Real* numbers;
  Real* stamps;  // of groups whose lines have no free slot for a stamp
};

// The cells of a row's features, by number, and their values; and the same number of cells of later
// rows to prefetch.
template <class Real>
struct RowOfCells {
  Cell<Real> first;                  // cell 0
  std::size_t stride, stamp_stride;  // distance between cells
  const std::uint32_t* numbers;
  const Real* x;
  std::size_t n;
  const std::uint32_t* later;

  Cell<Real> cell(std::size_t k) const {
    return {first.numbers + numbers[k] * stride, first.stamps + numbers[k] * stamp_stride};
  }
};

// A row of one cell with x = 1.
template <class Real>
RowOfCells<Real> alone(const Cell<Real>& cell) {
  static constexpr std::uint32_t zero = 0;
  static constexpr Real one = 1;
  return {cell, 0, 0, &zero, &one, 1, &zero};
}

// What truncated gradient needs to apply the pending events of a line (shrinkage/ledger.hpp). Sums
// of the ledger are in units that each lane multiplies by its own pull.
template <class Real>
struct Debt {
  const double* Q;  // Q[e]: the sum up to event e
  const double* B;  // the same for l2; null without l2
  double Q_now, B_now, B_before;
  double even;  // Pay::even: the amount of all events (Ledger::even_amount)
  std::uint64_t now;
  const Real* pull;   // per lane, in units of Q
  const Real* theta;  // ceiling per lane
  bool last;          // whether this is the last line of the group
  bool l2;            // whether events also divide
};

// The step of lane l is pace rates[l] (scale g[l]), rounded to the number type.
struct Steps {
  double pace, scale;
  const double *rates, *g;
};

// even: truncation where all events subtract the same amount, without reading the ledger. round:
// with l2 or without.
enum class Pay { truncate, ceiling, truncate_l2, round, even };
constexpr std::size_t pays = 5;

// Sums over a row have two chains, for even and odd positions. Each block of 4096 is added in
// double precision. This is the same at every level.
template <class Real>
struct TruncatedKernels {
  // Applies the pending events of the lines at `line` of all cells and computes the inner products
  // with x. If `writes`, it stores the weights and sets the stamp to `now`. The stamp is the last
  // number of the line, or number `stamp` of the cell's stamps, which the last line of a group
  // sets.
  void (*open)(const RowOfCells<Real>&, std::size_t line, std::size_t stamp, const Debt<Real>&,
               bool writes, double* dot);
  // w += step x
  void (*close)(const RowOfCells<Real>&, std::size_t line, std::uint64_t now, const Steps&);
  // As `open` without writing, but counts the nonzero weights of each lane.
  void (*count)(const RowOfCells<Real>&, std::size_t line, std::size_t stamp, const Debt<Real>&,
                bool writes, double* counts);
};

// Rules with two numbers per coordinate: a line is the first numbers of its lanes, then the second.
// The constants of the arithmetic are `stride` numbers apart.
template <class Real>
struct PairKernels {
  // Stores the weights in `w` unless it is null: for each cell, one per lane of the line.
  void (*open)(const RowOfCells<Real>&, std::size_t line, const Real* constants, std::size_t stride,
               Real* w, double* dot);
  void (*close)(const RowOfCells<Real>&, std::size_t line, const Real* constants,
                std::size_t stride, const Real* slope, const Real* w);
  // Counts the nonzero weights of each lane.
  void (*count)(const RowOfCells<Real>&, std::size_t line, const Real* constants,
                std::size_t stride, double* counts);
};

// The rule one-pass (one_pass/bank.hpp): a cell has the weights of a line's lanes, then their n or c.
// All arrays have a number per lane or per nonzero of the row.
template <class Real>
struct Bank {
  const Real *own,
      *common;  // per lane: 1 and 0 if its inputs are x / s_j; 0 and 1 if they are x / s
  const Real *top,
      *floor;             // 1 / R = top / sqrt(n + floor) for AdaGrad, top / (c + floor) for Newton
  const Real* newton;     // 1 for a lane of Newton, else 0
  const Real *u, *ratio;  // per nonzero: x / s_j, and s_j / s
};

template <class Real>
struct BankKernels {
  // dot: the inner products. mixed: four numbers per nonzero; their sum is the mixed weight, sum
  // mixture w in units of x / s_j.
  void (*open)(const RowOfCells<Real>&, std::size_t at, const Bank<Real>&, const Real* mixture,
               Real* mixed, double* dot);
  // q = sum u^2 / R. `growth` is what u^2 adds to n before the step; 0 for Newton. Stores 1 / R.
  void (*reach)(const RowOfCells<Real>&, std::size_t at, const Bank<Real>&, const Real* growth,
                Real* inverses, double* q);
  // w -= step u / R; n or c += growth u^2.
  void (*close)(const RowOfCells<Real>&, std::size_t at, const Bank<Real>&, const Real* step,
                const Real* growth, const Real* inverses);
};

// Predictions, targets and losses of all lanes for one row; n is a multiple of 16.
struct LossesOfRow {
  std::size_t n;
  const double *p, *y, *alive;  // alive: 1 if the slot has a lane that learns, else 0
  // as in loss/loss.hpp; g: the slope times the weight of the row
  double *value, *slope, *factor, *g;
};

struct Weighed {
  bool fits;  // all steps are below the bound
  bool any;   // some g is not 0
};

struct LossKernels {
  // p = scale dot + bias; n is a multiple of 16.
  void (*predict)(std::size_t n, double scale, const double* dot, const double* bias, double* p);
  // Compute g, and whether |g| rate < bound in all lanes. Lanes that do not learn have loss 0.
  // `logistic` computes values, slopes and factors of the logistic loss; `given` takes those of
  // another loss from the row.
  Weighed (*logistic)(const LossesOfRow&, double weight, const double* rates, double bound);
  Weighed (*given)(const LossesOfRow&, double weight, const double* rates, double bound);
  // sum += value, product *= factor; returns the largest product.
  double (*add)(const LossesOfRow&, double* sum, double* product);
  // product *= the probability of the label, 1 or -1, for n raw predictions; n is a multiple of 16.
  // A probability is clipped to [eps, 1 - eps]. `mark` becomes NaN if a prediction is not finite.
  void (*likelihoods)(const double* p, std::size_t n, bool is_one, double* product, double* mark);
};

// What the rule one-pass does once for a row (one_pass/). Arrays have 16 numbers, and rows of the
// matrix S, too.
struct StackKernels {
  // For each prediction m: the slope g = L'(m - q g) of the logistic loss, and the probability of y
  // there. Null q: all are 0.
  void (*land)(const double* m, double y, const double* q, double* slope, double* probability);
  void (*multiply)(const double* S, const double* f, std::size_t rows, double* Sf);  // Sf = S f
  void (*shrink)(double* S, const double* Sf, std::size_t rows, double c);  // S -= c Sf Sf'
};

// All kernels of one level, for lines of 4, 8 and 16 lanes.
template <class Real>
struct Table {
  TruncatedKernels<Real> truncated[3][2][pays];  // [size][is the last lane the stamp?][Pay]
  PairKernels<Real> pairs[std::tuple_size_v<PairArithmetics>][3];
  // Inner products of the lines with x.
  void (*inner[3])(const RowOfCells<Real>&, std::size_t line, double* dot);
  // A line is v, then u: v += gv x, u += gu x.
  void (*averaged_close[3])(const RowOfCells<Real>&, std::size_t line, const Real* gv,
                            const Real* gu);
  // w = S(w + step x, lambda) where x is not 0
  void (*perceptron_close[3])(const RowOfCells<Real>&, std::size_t line, const Real* step,
                              const Real* lambda);
  BankKernels<Real> banks[2];  // of 4 and of 12 lanes
  StackKernels stacks[2];      // the same
  LossKernels losses;
};

// Index in a table for lines of this number of lanes, and back.
inline std::size_t size_number(std::size_t lanes) { return lanes <= 4 ? 0 : lanes <= 8 ? 1 : 2; }
inline std::size_t size_of_number(std::size_t number) { return std::size_t{4} << number; }

// level: "avx512" | "avx2" | "portable", or "auto" for the widest level of this machine.
template <class Real>
const Table<Real>& kernels(const std::string& level);

// The level that "auto" selects on this machine.
std::string widest_level();

}  // namespace thresher::lanes
