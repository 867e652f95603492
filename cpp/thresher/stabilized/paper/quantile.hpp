// The gravity of the next stage: the beta-quantile of the ratios of this one, exactly.
//
// Gravity changes little from stage to stage. So the ratios near the last one are set aside and the
// smaller ones counted while they are at hand; mostly the quantile is among those set aside. Where
// it is not, a histogram over the leading bits of all ratios shows where it is.
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

// The place, from 0, of the beta-quantile among so many numbers: the least value that a share beta of
// them does not exceed.
inline std::size_t rank_of(double beta, std::size_t count) {
  const double rank = std::ceil(beta * static_cast<double>(count) - 1e-12);
  return std::min(count, static_cast<std::size_t>(std::max(1.0, rank))) - 1;
}

// The number of that rank among numbers >= 0, by their bits, whose order is theirs: ten leading bits of
// what is above the least show where it is, and few remain to be sorted.
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
  for (const Real value : values) {  // free of branches; writes behind what it reads
    values[n] = value;
    n += (bits(value) - least) >> shift == bin;
  }
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(values.begin(), at, values.begin() + static_cast<std::ptrdiff_t>(n));
  return static_cast<double>(*at);
}

// Ratios |change of w_j| / k_j that one worker has found in a stage.
template <class Real>
struct Ratios {
  std::vector<Real> all;
  std::size_t size = 0;   // of them
  std::size_t below = 0;  // those below the interval
  std::size_t n_within = 0;
  std::vector<Real> within;
  std::vector<std::uint32_t> histogram;

  // Room for n more, and a pack. What is written there counts when size says so.
  Real* room(std::size_t n) {
    if (all.size() < size + n + pack_size) all.resize(2 * (size + n + pack_size));
    return all.data() + size;
  }

  void sift(Real low, Real high) {
    if (within.size() < size + 1) within.resize(all.size() + 1);
    std::size_t n = 0, less = 0;
    Real* out = within.data();
    for (std::size_t i = 0; i < size; ++i) {  // free of branches
      const Real ratio = all[i];
      out[n] = ratio;
      n += (ratio >= low) & (ratio <= high);
      less += ratio < low;
    }
    n_within = n, below = less;
  }

  // Ratios by their bits, whose order is theirs: a bin has those that are alike but for `shift` bits,
  // and the first bin begins with the bits `first`.
  using Bits = std::make_unsigned_t<Whole<Real>>;
  static constexpr std::size_t bins = 1 << 11;
  static constexpr int widest = 8 * sizeof(Real) - 12;  // of the sign, always 0, and the next 11
  static Bits bin(Real ratio, Bits first, int shift) {
    return static_cast<Bits>(std::bit_cast<Bits>(ratio) - first) >> shift;
  }

  void count_bins(Bits first = 0, int shift = widest) {
    histogram.assign(bins + 1, 0);
    for (std::size_t i = 0; i < size; ++i)  // those outside are in the last
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

  // The quantile of all ratios, which have been sifted; 0 if beta is, or if there are none. of(w) are
  // those of worker w.
  template <class Of>
  double find(Team& team, const Of& of, double beta) {
    std::size_t total = 0, below = 0, within = 0;
    for (std::size_t w = 0; w < team.size(); ++w)
      total += of(w).size, below += of(w).below, within += of(w).n_within;
    if (beta <= 0 || total == 0) return 0.0;
    std::size_t rank = rank_of(beta, total);
    if (rank >= below && rank - below < within) {
      rank -= below;
      reach_ *= within > total / 64 + 64 ? 0.8 : 0.99;  // as near as it may be
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
  // Sets aside the ratios of the bin that has the rank, and returns the rank within it.
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
