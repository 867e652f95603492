// Lanes in lines: the loop over rows for groups of lanes that are adjacent in memory (group.hpp).
//
// A row is prepared once and its cells are found once. Then each group whose clock sees the row
// makes its step: inner products, losses and updates of all lanes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "thresher/core/archive.hpp"
#include "thresher/core/error.hpp"
#include "thresher/core/repeats.hpp"
#include "thresher/core/rows.hpp"
#include "thresher/core/tally.hpp"
#include "thresher/lanes/group.hpp"
#include "thresher/lanes/kernels.hpp"
#include "thresher/lanes/lanes.hpp"
#include "thresher/lanes/line_store.hpp"
#include "thresher/lanes/losses.hpp"
#include "thresher/loss/loss.hpp"
#include "thresher/loss/safe_rate.hpp"

namespace thresher::lanes {

// A key that is equal for all lanes of a group.
inline std::string common(const LineRule& rule, const LaneSpec& spec) {
  const Params& params = spec.params;
  return std::to_string(spec.clock) + (spec.target < 0 ? " label " : " class ") +
         params.word("loss") + (params.flag("fit_intercept") ? " intercept " : " ") +
         rule.common(params);
}

template <class Real>
class LineLanes final : public Lanes {
 public:
  LineLanes(const LineRule& rule, bool hashed, std::uint64_t width,
            const std::vector<LaneSpec>& specs, const std::string& level)
      : level_(level == "auto" ? widest_level() : level),
        members_(members(rule, specs, kernels<Real>(level))),
        store_(hashed, width, numbers(), stamps()) {
    where_.resize(specs.size());
    for (std::size_t m = 0; m < members_.size(); ++m)
      for (std::size_t i = 0; i < members_[m].lanes.size(); ++i)
        where_[members_[m].lanes[i]] = {m, members_[m].slots().slot(i)};
  }

  std::size_t count() const override { return where_.size(); }

  void learn(const Batch& batch, const Visit& visit, const Told& told, double* before) override {
    Rows<Real> rows(batch, visit, store_.width());
    const auto dead = [this](const Cell<Real>& cell) { return is_dead(cell); };
    for (std::int64_t position = 0; rows.next(); ++position) {
      store_.reserve(rows.count(), dead);
      const RowOfCells<Real> row = cells_of(rows, store_, work_);
      const double squares = squared_norm(row);
      if (!std::isfinite(squares)) rows.check_values();
      check_target(rows.row(), batch.labels ? rows.label() : 0.0, rows.weight());
      rows.check_next_row();
      double* out = before ? before + static_cast<std::size_t>(position) * count() : nullptr;
      for (Member& member : members_) {
        if (told.sees(rows.row(), member.clock))
          learn_row(member, row, squares, batch, rows, told, out);
        else if (out)
          for (const std::size_t lane : member.lanes)
            out[lane] = std::numeric_limits<double>::quiet_NaN();
      }
      if (std::exchange(swept_, false))
        store_.drop(dead);  // after the row: no group uses its cells now
    }
  }

  void next_pass() override {
    for (Member& member : members_) member.group->next_pass();
  }
  void widen(std::uint64_t width) override { store_.widen(width); }

  void predict(const Batch& batch, const Visit& visit, std::span<const std::int64_t> lanes,
               bool average, double* out) const override {
    std::vector<std::vector<std::pair<std::size_t, std::size_t>>> wanted(members_.size());
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const Where& at = where_[static_cast<std::size_t>(lanes[i])];
      wanted[at.member].emplace_back(at.slot, i);
    }
    Rows<Real> rows(batch, visit, store_.width());
    typename LineStore<Real>::Work work;
    std::vector<double> dot(most_slots()), p(most_slots());
    for (; rows.next(); out += lanes.size()) {
      const RowOfCells<Real> row = cells_of(rows, store_, work);
      for (std::size_t m = 0; m < members_.size(); ++m) {
        if (wanted[m].empty()) continue;
        members_[m].group->predict(row, row_scale(members_[m].losses.of[0], rows), average,
                                   dot.data(), p.data());
        for (const auto& [slot, i] : wanted[m]) {
          if (!std::isfinite(p[slot])) rows.check_values();
          out[i] = p[slot];
        }
      }
    }
  }

  SparseWeights weights(std::size_t lane, bool average) const override {
    std::vector<std::pair<std::uint64_t, double>> found;
    std::vector<double> w(most_slots());
    const Where at = where_[lane];
    store_.each([&](std::uint64_t key, const Cell<Real>& cell) {
      members_[at.member].group->read(cell, average, w.data());
      if (w[at.slot] != 0.0) found.emplace_back(key, w[at.slot]);
    });
    return sorted_weights(std::move(found));
  }
  std::vector<std::int64_t> nonzeros(bool average) const override {
    std::vector<std::int64_t> found(count());
    std::vector<double> w(most_slots());
    store_.blocks([&](const RowOfCells<Real>& cells) {
      for (const Member& member : members_) {
        if (member.group->count(cells, average, w.data())) {
          add_counts(member, w, found);
          continue;
        }
        for (std::size_t k = 0; k < cells.n; ++k) {
          member.group->read(cells.cell(k), average, w.data());
          for (double& value : w) value = value != 0.0;
          add_counts(member, w, found);
        }
      }
    });
    return found;
  }
  double intercept(std::size_t lane, bool average) const override {
    return members_[where_[lane].member].group->intercept(where_[lane].slot, average);
  }
  Tally tally(std::size_t lane) const override {
    return members_[where_[lane].member].losses.tally(where_[lane].slot);
  }
  double rate(std::size_t lane) const override {
    return members_[where_[lane].member].group->rate(where_[lane].slot);
  }
  std::string divergence(std::size_t lane) const override {
    const auto& told = members_[where_[lane].member].diverged;
    const auto found = told.find(where_[lane].slot);
    return found == told.end() ? "" : found->second;
  }
  std::size_t bytes() const override { return store_.bytes(); }
  std::string layout(std::size_t lane) const override {
    const Slots& slots = members_[where_[lane].member].slots();
    return level_ + " lines of " + std::to_string(slots.size());
  }

  std::vector<std::byte> state() const override {
    Saver save;
    save(signature());
    for (const Member& member : members_) const_cast<Member&>(member).archive(save);  // only reads
    std::uint64_t cells = 0;
    store_.each([&](std::uint64_t, const Cell<Real>&) { ++cells; });
    save(cells);
    store_.each([&](std::uint64_t key, const Cell<Real>& cell) {
      save(key), save(std::vector<Real>(cell.numbers, cell.numbers + store_.numbers()));
      save(std::vector<Real>(cell.stamps, cell.stamps + store_.stamps()));
    });
    return save.take();
  }

  void restore(std::span<const std::byte> state) override {
    Restorer restore(state);
    std::uint64_t saved = 0, cells = 0;
    restore(saved);
    if (saved != signature())
      throw std::invalid_argument("the state is of lanes of another rule, number type or layout");
    std::vector<Member> fresh;
    for (const Member& member : members_) fresh.push_back(member.copy());
    for (Member& member : fresh) member.archive(restore);
    LineStore<Real> store = store_.empty();
    restore(cells);
    for (; cells > 0; --cells) {
      std::uint64_t key = 0;
      std::vector<Real> numbers, stamps;
      restore(key), restore(numbers), restore(stamps);
      const Cell<Real> cell{numbers.data(), stamps.data()};
      if (numbers.size() != store.numbers() || stamps.size() != store.stamps() ||
          !std::all_of(fresh.begin(), fresh.end(),
                       [&](const Member& member) { return member.group->valid(cell); }))
        throw std::invalid_argument("the state of the lanes is damaged");
      const Cell<Real> place = store.put(key);
      std::copy(numbers.begin(), numbers.end(), place.numbers);
      std::copy(stamps.begin(), stamps.end(), place.stamps);
    }
    if (!restore.finished())
      throw std::invalid_argument("the state of the lanes has bytes left over");
    members_ = std::move(fresh), store_ = std::move(store);
  }

 private:
  // A group, and the targets and losses of its lanes.
  struct Member {
    std::unique_ptr<Group<Real>> group;
    std::vector<std::size_t> lanes;  // lane numbers, in the order of the group
    std::int64_t clock;
    LaneLosses losses;
    std::map<std::size_t, std::string> diverged;  // by slot

    Slots& slots() { return group->slots(); }
    const Slots& slots() const { return std::as_const(*group).slots(); }

    Member copy() const { return {group->copy(), lanes, clock, losses, diverged}; }

    template <class Archive>
    void archive(Archive& io) {
      group->archive(io), losses.archive(io);
      archive_messages(io, slots().count(), diverged);
    }
  };

  struct Where {
    std::size_t member = 0, slot = 0;
  };

  static std::vector<Member> members(const LineRule& rule, const std::vector<LaneSpec>& specs,
                                     const Table<Real>& table) {
    std::map<std::string, std::vector<std::size_t>> together;
    for (std::size_t lane = 0; lane < specs.size(); ++lane)
      together[common(rule, specs[lane])].push_back(lane);
    std::vector<Member> found;
    for (const auto& [key, lanes] : together) {
      std::vector<const Params*> params;
      for (const std::size_t lane : lanes) params.push_back(&specs[lane].params);
      auto group = rule.make<Real>()(params, table);
      LaneLosses losses(group->slots(), specs, lanes, table.losses);
      found.push_back({std::move(group), lanes, specs[lanes[0]].clock, std::move(losses), {}});
    }
    return found;
  }

  static void add_counts(const Member& member, const std::vector<double>& counts,
                         std::vector<std::int64_t>& found) {
    for (std::size_t i = 0; i < member.lanes.size(); ++i)
      found[member.lanes[i]] += static_cast<std::int64_t>(counts[member.slots().slot(i)]);
  }

  // Places the groups one after another in a cell. Returns the numbers per cell.
  std::size_t numbers() {
    std::size_t at = 0, stamp = 0;
    for (Member& member : members_) {
      member.slots().lay(at, stamp);
      at += member.slots().numbers(), stamp += member.slots().outside();
    }
    return at;
  }
  std::size_t stamps() const {
    std::size_t count = 0;
    for (const Member& member : members_) count += member.slots().outside();
    return count;
  }

  // Sums in four independent chains, to hide the latency of additions.
  static double squared_norm(const RowOfCells<Real>& row) {
    double sum = 0.0;
    for (std::size_t from = 0; from < row.n; from += 4096) {
      const std::size_t to = std::min(row.n, from + 4096);
      Pack<Real> chains[4] = {Pack<Real>::all(0), Pack<Real>::all(0), Pack<Real>::all(0),
                              Pack<Real>::all(0)};
      std::size_t k = from;
      for (; k + 4 * pack_size <= to; k += 4 * pack_size) {
        __builtin_prefetch(row.x + k + 160);  // values are not prefetched elsewhere
        for (std::size_t i = 0; i < 4; ++i) {
          const Pack<Real> x = Pack<Real>::load(row.x + k + i * pack_size);
          chains[i] += x * x;
        }
      }
      for (std::size_t i = 0; k < to; k += pack_size, ++i) {
        const Pack<Real> x =
            k + pack_size <= to ? Pack<Real>::load(row.x + k) : Pack<Real>::load(row.x + k, to - k);
        chains[i] += x * x;
      }
      sum += ((chains[0] + chains[1]) + (chains[2] + chains[3])).total();
    }
    return sum;
  }

  // Makes all steps of a row (core/repeats.hpp). `before`, if not null, receives the predictions
  // before the first step.
  void learn_row(Member& member, const RowOfCells<Real>& row, double squares, const Batch& batch,
                 const Rows<Real>& rows, const Told& told, double* before) {
    LaneLosses& losses = member.losses;
    const Repeats repeats = repeats_of(rows.weight());
    losses.tell(batch, rows.row(), member.clock, told);
    for (std::int64_t i = 0; i == 0 || i < repeats.count; ++i) {
      const double scale = row_scale(losses.of[0], rows);
      if (repeats.count > 0) step(member, row, scale, squares, repeats.weight, batch, rows.row());
      else look(member, row, scale, batch, rows.row());
      if (i > 0) continue;
      if (repeats.count > 1) losses.keep_first();
      for (std::size_t l = 0; before && l < member.lanes.size(); ++l)
        before[member.lanes[l]] = losses.p[member.slots().slot(l)];
    }
    if (repeats.count > 1) losses.back_to_first();
    losses.add(rows.weight(), told.unit(rows.row(), member.clock));
  }

  void step(Member& member, const RowOfCells<Real>& row, double scale, double squares,
            double weight, const Batch& batch, std::int64_t number) {
    Group<Real>& group = *member.group;
    LaneLosses& losses = member.losses;
    const double squared_norm = scale * scale * squares;
    group.open(row, scale, losses.dot.data(), losses.p.data());
    // The intercept's x is 1, so the gradient is at least g.
    const double bound = group.see(squared_norm, std::max(1.0, scale * std::sqrt(squares)));
    if (weight > 1.0) [[unlikely]]
      group.reach(squared_norm, losses.reach.data());
    const Weighed weighed = losses.take(weight, group.rates(), bound);
    if (!weighed.fits) [[unlikely]]
      stop(member, bound, batch, number);
    if (weighed.any) group.close(row, losses.g.data(), scale);
    if (group.finish(losses.g.data())) [[unlikely]]
      sweep(group);
  }

  // A row of weight 0 is only predicted. A lane whose prediction is not finite stops.
  void look(Member& member, const RowOfCells<Real>& row, double scale, const Batch& batch,
            std::int64_t number) {
    LaneLosses& losses = member.losses;
    const double infinite = std::numeric_limits<double>::infinity();
    member.group->predict(row, scale, false, losses.dot.data(), losses.p.data());
    if (!losses.take(0.0, member.group->rates(), infinite).fits)
      stop(member, infinite, batch, number);
  }

  void sweep(Group<Real>& group) {
    store_.each([&](std::uint64_t, const Cell<Real>& cell) { group.settle(cell); });
    if (group.slots().outside()) store_.clear_stamps(group.slots().stamp());
    group.end_sweep();
    swept_ = true;
  }

  // Stops the lanes whose step would not be finite.
  void stop(Member& member, double bound, const Batch& batch, std::int64_t row) {
    for (std::size_t s = 0; s < member.slots().count(); ++s) {
      if (std::fabs(member.losses.g[s]) * member.group->rates()[s] < bound) continue;
      const std::int64_t step = member.losses.tally(s).rows() + 1;
      member.losses.stop(s);
      member.diverged[s] = divergence_message(
          step, row, member.group->advice(safe_rate<Real>(batch, member.losses.of[0])));
    }
  }

  bool is_dead(const Cell<Real>& cell) const {
    return std::all_of(members_.begin(), members_.end(),
                       [&](const Member& member) { return member.group->dead(cell); });
  }

  std::size_t most_slots() const {
    std::size_t most = 0;
    for (const Member& member : members_) most = std::max(most, member.slots().padded());
    return most;
  }

  // Identifies the rule, the number type and the layout.
  std::uint64_t signature() const {
    return members_[0].group->signature() ^ (store_.numbers() * 64 + count());
  }

  std::string level_;
  std::vector<Member> members_;
  LineStore<Real> store_;
  std::vector<Where> where_;  // the group and slot of each lane
  bool swept_ = false;        // whether a group made a sweep in this row
  typename LineStore<Real>::Work work_;
};

}  // namespace thresher::lanes
