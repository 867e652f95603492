#include "thresher/stabilized/paper/stage_work.hpp"

namespace thresher {

template <class Real>
void StageWork<Real>::run(Team& team, const StagePlan& plan, Real low, Real high) {
  sweeps_ = sweep_is_faster(plan.K);
  team.together([&](std::size_t w) {
    Worker& worker = workers_[w];
    freeze(w);
    worker.counts.clear();
    worker.sweep.end_stage();
    worker.ratios.size = 0;
    for (std::size_t m = w; m < paths_.count(); m += workers_.size()) {
      if (sweeps_) worker.sweep.begin(paths_.cells(m));
      const std::size_t after = m + workers_.size() < paths_.count() ? m + workers_.size() : w;
      walks_[after].fetch_rows();
      for (std::int64_t b = 0; b < rule_.n_K; ++b) {
        if (b == rule_.n_K - 1) walks_[after].fetch_cells(paths_.cells(after));
        sweeps_ ? sweeping_burst(walks_[m], paths_.cells(m), worker, plan)
                : listing_burst(walks_[m], paths_.cells(m), worker, plan);
      }
    }
    worker.ratios.collect(low, high);
  });
  std::size_t found = 0;
  for (const Worker& worker : workers_) found += worker.ratios.size;
  touched_ = static_cast<double>(found) /
             static_cast<double>(static_cast<std::int64_t>(paths_.count()) * rule_.n_K);
}

template <class Real>
void StageWork<Real>::listing_burst(Walk<Real>& walk, Cells& cells, Worker& worker,
                                    const StagePlan& plan) {
  Touched<Real>& touched = worker.touched;
  touched.begin();
  for (std::int64_t t = 0; t < plan.K; ++t) {
    walk.next();
    for (std::int64_t i = 0; i < walk.repeats(); ++i) {
      const auto before = touched.mark();
      const double slope = walk.slope(cells, worker.row, touched.lister(), rule_.eta);
      touched.end_row(walk.count(), worker.row);
      if (slope == 0.0 && rule_.counts_gradients) touched.back_to(before);
      else walk.move(cells, worker.row, static_cast<Real>(-rule_.eta * slope));
    }
  }
  touched.truncate(cells, truncation(cells, plan), worker.ratios, worker.counts);
}

template <class Real>
void StageWork<Real>::sweeping_burst(Walk<Real>& walk, Cells& cells, Worker& worker,
                                     const StagePlan& plan) {
  typename Sweep<Real>::NoLister none;
  for (std::int64_t t = 0; t < plan.K; ++t) {
    walk.next();
    for (std::int64_t i = 0; i < walk.repeats(); ++i) {
      const double slope = walk.slope(cells, worker.row, none, rule_.eta);
      if (slope != 0.0 || !rule_.counts_gradients)
        walk.move(cells, worker.row, static_cast<Real>(-rule_.eta * slope));
    }
  }
  worker.sweep.truncate(cells, truncation(cells, plan), most_steps_ * plan.K, worker.ratios);
}

template <class Real>
Truncation<Real> StageWork<Real>::truncation(const Cells& cells, const StagePlan& plan) const {
  const double g = !rule_.by_weight ? plan.g0
                   : plan.stage > 0 ? quantile_of_weights(cells, plan.beta)
                                    : 0.0;
  return {Pack<Real>::all(static_cast<Real>(g)), !rule_.by_weight};
}

// The rule of the authors' code: the beta-quantile of the nonzero weights.
template <class Real>
double StageWork<Real>::quantile_of_weights(const Cells& cells, double beta) const {
  std::vector<Real> sizes;
  for (std::uint64_t j = 0; j < paths_.width(); ++j)
    if (const Real w = cells.data()[j].first(); w != 0) sizes.push_back(std::fabs(w));
  return beta <= 0 || sizes.empty() ? 0.0 : nth(sizes, rank_of(beta, sizes.size()));
}

template void StageWork<float>::run(Team&, const StagePlan&, float, float);
template void StageWork<double>::run(Team&, const StagePlan&, double, double);

}  // namespace thresher
