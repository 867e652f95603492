// A copy of the rows with only some of their features, so that passes over it are faster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "thresher/core/batch.hpp"
#include "thresher/core/rows.hpp"

namespace thresher {

template <class Real>
struct CandidateRows {
  std::vector<std::uint64_t> ids;      // the features' numbers in the data, increasing
  std::vector<std::size_t> starts{0};  // row r is [starts[r], starts[r + 1])
  std::vector<std::uint32_t> keys;     // positions in `ids`
  std::vector<Real> x;
  std::vector<double> labels, weights;
  std::vector<double> norms;  // ||x||^2 of whole rows

  static constexpr std::uint32_t none = 0xFFFFFFFF;

  std::size_t count() const { return labels.size(); }

  // Checks all rows, and copies labels, weights and norms. Calls see(j, x, weight, label) for every
  // nonzero value.
  // Ignores rows of weight 0; calls see_ignored(j) for their values.
  template <class See, class SeeIgnored>
  void count_in(const Batch& batch, std::uint64_t width, See&& see, SeeIgnored&& see_ignored) {
    Rows<Real> source(batch, Visit{nullptr, 0, batch.rows}, width);
    while (source.next()) {
      source.check_values();
      source.check_target();
      if (source.weight() == 0) {
        each_value(source, [&](std::uint64_t j, Real) { see_ignored(j); });
        continue;
      }
      double norm = 0.0;
      each_value(source, [&](std::uint64_t j, Real value) {
        const double v = static_cast<double>(value);
        see(j, v, source.weight(), source.label());
        norm += v * v;
      });
      labels.push_back(source.label()), weights.push_back(source.weight());
      norms.push_back(norm);
    }
  }

  // Copies the features for which admits(j) is true.
  template <class Admits>
  void copy_from(const Batch& batch, std::uint64_t width, Admits&& admits) {
    std::vector<std::uint32_t> place(width, none);
    for (std::uint64_t j = 0; j < width; ++j)
      if (admits(j)) place[j] = static_cast<std::uint32_t>(ids.size()), ids.push_back(j);
    copy_to(batch, width, [&](std::uint64_t j) { return place[j]; });
  }

  // Copies the features j with place(j) != none; place(j) is the position of j in `ids`.
  template <class Place>
  void copy_to(const Batch& batch, std::uint64_t width, Place&& place) {
    Rows<Real> source(batch, Visit{nullptr, 0, batch.rows}, width);
    while (source.next()) {
      if (source.weight() == 0) continue;
      each_value(source, [&](std::uint64_t j, Real value) {
        if (const std::uint32_t at = place(j); at != none) keys.push_back(at), x.push_back(value);
      });
      starts.push_back(keys.size());
    }
  }

  // Removes the features for which removes(j) is true.
  template <class Removes>
  void drop(Removes&& removes) {
    std::vector<std::uint32_t> now(ids.size());
    std::size_t left = 0, end = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (removes(ids[i])) now[i] = none;
      else now[i] = static_cast<std::uint32_t>(left), ids[left++] = ids[i];
    }
    ids.resize(left);
    std::size_t begin = 0;
    for (std::size_t r = 0; r < count(); ++r) {
      for (std::size_t k = begin; k < starts[r + 1]; ++k)
        if (now[keys[k]] != none) keys[end] = now[keys[k]], x[end++] = x[k];
      begin = starts[r + 1], starts[r + 1] = end;
    }
    keys.resize(end), x.resize(end);
  }

 private:
  template <class F>
  static void each_value(const Rows<Real>& row, F&& f) {
    row.with_keys([&](const auto* all) {
      for (std::size_t k = 0; k < row.count(); ++k)
        if (row.values()[k] != 0) f(static_cast<std::uint64_t>(all[k]), row.values()[k]);
    });
  }
};

}  // namespace thresher
