// The gravity of the next stage: the beta-quantile of the ratios of this one, exactly.
//
// Gravity changes little from stage to stage. So the workers collect the ratios near the last
// gravity, and count the smaller ones, while they are in the cache. Usually the quantile is among
// those collected. If not, a histogram over the leading bits of all ratios shows where it is.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "thresher/core/pack.hpp"
#include "thresher/core/threads.hpp"

namespace thresher {

// The rank, from 0, of the beta-quantile among `count` numbers: the least value that a share beta
// of them does not exceed.
inline std::size_t rank_of(double beta, std::size_t count) {
  const double rank = std::ceil(beta * static_cast<double>(count) - 1e-12);
  return std::min(count, static_cast<std::size_t>(std::max(1.0, rank))) - 1;
}

// The number with this rank among numbers >= 0. Their bits have the same order as the numbers. A
// histogram over ten leading bits of the differences from the least number shows in which bin it
// is, and only that bin is searched.
template <class Real>
double nth(std::vector<Real>& values, std::size_t rank) {
  using Bits = std::make_unsigned_t<Whole<Real>>;
  const auto bits = [](Real value) { return std::bit_cast<Bits>(value); };
  Bits least = ~Bits{0}, most = 0;
  for (const Real value : values)
    least = std::min(least, bits(value)), most = std::max(most, bits(value));
  const int shift = std::max(0, static_cast<int>(std::bit_width(Bits(most - least))) - 10);
  std::uint32_t counts[1 << 10] = {};
  for (const Real value : values) ++counts[(bits(value) - least) >> shift];
  std::size_t bin = 0;
  for (; rank >= counts[bin]; ++bin) rank -= counts[bin];
  std::size_t n = 0;
  for (const Real value : values) {  // without branches; never writes ahead of what it reads
    values[n] = value;
    n += (bits(value) - least) >> shift == bin;
  }
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(values.begin(), at, values.begin() + static_cast<std::ptrdiff_t>(n));
  return static_cast<double>(*at);
}

// The ratios |change of w_j| / k_j of one worker in a stage.
template <class Real>
struct Ratios {
  std::vector<Real> all;
  std::size_t size = 0;   // number of ratios
  std::size_t below = 0;  // number of ratios below the interval
  std::size_t n_within = 0;
  std::vector<Real> within;
  std::vector<std::uint32_t> histogram;

  // Makes room for n more, and a pack. The caller writes there, and then adds to `size`.
  Real* room(std::size_t n) {
    if (all.size() < size + n + pack_size) all.resize(2 * (size + n + pack_size));
    return all.data() + size;
  }

  void collect(Real low, Real high) {
    if (within.size() < size + 1) within.resize(all.size() + 1);
    std::size_t n = 0, less = 0;
    Real* out = within.data();
    for (std::size_t i = 0; i < size; ++i) {  // without branches
      const Real ratio = all[i];
      out[n] = ratio;
      n += (ratio >= low) & (ratio <= high);
      less += ratio < low;
    }
    n_within = n, below = less;
  }

  // Bins of ratios by their bits, which have the same order: the numbers of a bin differ only in
  // the lowest `shift` bits, and the first bin starts with the bits `first`.
  using Bits = std::make_unsigned_t<Whole<Real>>;
  static constexpr std::size_t bins = 1 << 11;
  static constexpr int widest = 8 * sizeof(Real) - 12;  // without the sign (0) and 11 leading bits
  static Bits bin(Real ratio, Bits first, int shift) {
    return static_cast<Bits>(std::bit_cast<Bits>(ratio) - first) >> shift;
  }

  void count_bins(Bits first = 0, int shift = widest) {
    histogram.assign(bins + 1, 0);
    for (std::size_t i = 0; i < size; ++i)  // ratios outside all bins go to the last
      ++histogram[std::min<Bits>(bin(all[i], first, shift), bins)];
  }
  void take_bin(std::size_t wanted, Bits first = 0, int shift = widest) {
    if (within.size() < size + 1) within.resize(all.size() + 1);
    n_within = 0;
    for (std::size_t i = 0; i < size; ++i) {
      within[n_within] = all[i];
      n_within += bin(all[i], first, shift) == wanted;
    }
  }
};

template <class Real>
class Quantile {
 public:
  // The interval where the next quantile is expected.
  Real low() const { return static_cast<Real>(last_ * (1 - reach_)); }
  Real high() const { return static_cast<Real>(last_ * (1 + reach_)); }

  // The quantile of all ratios, after collect(); 0 if beta is 0, or if there are none. of(w)
  // returns the ratios of worker w.
  template <class Of>
  double find(Team& team, const Of& of, double beta) {
    std::size_t total = 0, below = 0, within = 0;
    for (std::size_t w = 0; w < team.size(); ++w)
      total += of(w).size, below += of(w).below, within += of(w).n_within;
    if (beta <= 0 || total == 0) return 0.0;
    std::size_t rank = rank_of(beta, total);
    if (rank >= below && rank - below < within) {
      rank -= below;
      reach_ *= within > total / 64 + 64 ? 0.8 : 0.99;  // as narrow as possible
    } else {
      rank = search(team, of, rank);
      reach_ = std::min(0.5, 2 * reach_);
    }
    std::vector<Real>& among = among_;
    among.clear();
    for (std::size_t w = 0; w < team.size(); ++w)
      among.insert(among.end(), of(w).within.begin(),
                   of(w).within.begin() + static_cast<std::ptrdiff_t>(of(w).n_within));
    return last_ = nth(among, rank);
  }

 private:
  // Collects the ratios of the bin that has the rank, and returns the rank within it.
  template <class Of>
  static std::size_t search(Team& team, const Of& of, std::size_t rank) {
    team.together([&](std::size_t w) { of(w).count_bins(); });
    std::size_t bin = 0;
    for (;; ++bin) {
      std::size_t here = 0;
      for (std::size_t w = 0; w < team.size(); ++w) here += of(w).histogram[bin];
      if (rank < here) break;
      rank -= here;
    }
    team.together([&](std::size_t w) { of(w).take_bin(bin); });
    return rank;
  }

  double last_ = 0.0, reach_ = 0.1;
  std::vector<Real> among_;
};

}  // namespace thresher
