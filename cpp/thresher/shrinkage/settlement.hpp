// A weight pays all shrink events that it owes, at once: by truncation, rounding or the l1 subgradient
// with what it adds to the sum of iterates meanwhile.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "thresher/shrinkage/ledger.hpp"

namespace thresher {

enum class Shrink { truncate, round, subgradient };

inline Shrink shrink_of(const std::string& name) {
  if (name == "truncate") return Shrink::truncate;
  if (name == "round") return Shrink::round;
  if (name == "subgradient") return Shrink::subgradient;
  throw std::invalid_argument("unknown shrink '" + name + "'");
}

template <bool Averaged>
struct Settlement {
  const Ledger& ledger;
  Shrink shrink;
  double theta, l2;
  double a;           // what every event takes; negative where that differs
  double pull = 1.0;  // events take so many times what the ledger says, by the subgradient

  struct Settled {
    double weight;   // now
    double account;  // its part of the sum of iterates, up to now; see account()
  };

  // The sum of iterates of an untouched weight v, taken from the beginning of the ledger: what it adds
  // between two moments is the difference of its accounts then. A cell is charged with the account at
  // the moment it is closed and credited with the account at the moment it is opened.
  double account(double v, double B) const {
    const double z = std::fabs(v) / B;
    const bool shrinks = shrink == Shrink::truncate && std::fabs(v) <= theta;
    // Written as settle_truncate writes it, so that a weight that dies at once leaves exactly nothing.
    const double sum = shrinks ? (z + ledger.Q()) * ledger.F() - ledger.G() : z * ledger.F();
    return std::copysign(v != 0 ? sum : 0.0, v);
  }

  // All events after e at once.
  Settled settle(double v, std::uint64_t e) const {
    if (v == 0.0) return {0.0, 0.0};
    if (e == ledger.now()) return {v, account(v, ledger.B())};
    switch (shrink) {
      case Shrink::truncate: return settle_truncate(v, e);
      case Shrink::round: return settle_round(v, e);
      case Shrink::subgradient: return settle_subgradient(v, e);
    }
    return {v, 0.0};
  }

 private:
  Settled settle_truncate(double v, std::uint64_t e) const {
    double z = std::fabs(v) / ledger.B(e), sum = 0.0;
    if (std::fabs(v) >
        theta) {  // only l2 brings it down, until an event finds it at theta or below
      const auto& L = ledger;
      const std::uint64_t first =
          l2 > 0 ? L.first_event(e, [&](std::uint64_t i) { return z * L.B(i - 1) <= theta; })
                 : std::uint64_t{L.now()} + 1;
      if (first > L.now()) return {std::copysign(z * L.B(), v), std::copysign(z * L.F(), v)};
      if constexpr (Averaged) sum = L.G_before(first) - L.Q(first - 1) * L.F_before(first);
      e = first - 1;
    }
    z += ledger.Q(e);
    const double left = z - ledger.Q();
    if constexpr (Averaged) {
      if (left > 0.0) {
        sum += z * ledger.F() - ledger.G();
      } else {
        const auto death = ledger.first_event(e, [&](std::uint64_t i) { return ledger.Q(i) >= z; });
        sum += z * ledger.F_before(death) - ledger.G_before(death);
      }
    }
    return {std::copysign(std::max(left, 0.0) * ledger.B(), v), std::copysign(sum, v)};
  }

  // T0 is idempotent, and l2 only lets |v| fall: the last rounding decides.
  Settled settle_round(double v, std::uint64_t e) const {
    const double z = std::fabs(v) / ledger.B(e);
    const auto dies = [&](std::uint64_t i) { return z * ledger.B(i - 1) < theta; };
    const std::uint64_t now = ledger.now();
    if (e == now || !dies(now))
      return {std::copysign(z * ledger.B(), v), std::copysign(z * ledger.F(), v)};
    if constexpr (Averaged)
      return {0.0, std::copysign(z * ledger.F_before(ledger.first_event(e, dies)), v)};
    return {0.0, 0.0};
  }

  // Weights do not stop at zero but swing around it.
  Settled settle_subgradient(double v, std::uint64_t e) const {
    const std::uint64_t now = ledger.now();
    if (!Averaged && l2 == 0 && a >= 0) {  // in closed form
      const double n = static_cast<double>(now - e);
      if (a == 0.0) return {v, 0.0};
      const double m = std::floor(std::fabs(v) / a);
      if (n <= m) return {std::copysign(std::fabs(v) - n * a, v), 0.0};
      const double r = std::fabs(v) - m * a;
      if (r == 0.0) return {0.0, 0.0};
      return {std::copysign(1.0, v) * (std::fmod(n - m, 2.0) == 0.0 ? r : r - a), 0.0};
    }
    double sum = 0.0;
    for (std::uint64_t i = e + 1; i <= now; ++i) {
      if constexpr (Averaged)
        sum +=
            v * (ledger.F_before(i) - (i > e + 1 ? ledger.F_before(i - 1) : 0.0)) / ledger.B(i - 1);
      v = (v - (v != 0 ? std::copysign(pull * ledger.amount(i), v) : 0.0)) * ledger.factor(i);
    }
    if constexpr (Averaged)
      sum += v * (ledger.F() - (now > e ? ledger.F_before(now) : 0.0)) / ledger.B();
    return {v, sum};
  }
};

}  // namespace thresher
