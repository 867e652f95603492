// The parts and ranges of the published stabilized rule, for Python.
#include <nanobind/stl/unique_ptr.h>

#include <map>

#include "arrays.hpp"
#include "casters.hpp"
#include "thresher/stabilized/paper/part.hpp"
#include "thresher/stabilized/paper/range.hpp"
#include "thresher/stabilized/paper/schedules.hpp"

namespace bindings {

using namespace nb::literals;
using thresher::FeatureCounts;
using thresher::PaperPart;
using thresher::PaperRange;

namespace {

using Words = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Column = nb::ndarray<nb::numpy, std::uint32_t, nb::ndim<1>>;

std::vector<std::uint32_t> copy_of(const Words& words) {
  return {words.data(), words.data() + words.shape(0)};
}

FeatureCounts counts_of(const Words& keys, const std::vector<Words>& columns) {
  FeatureCounts counts{copy_of(keys), {}};
  for (const Words& column : columns) {
    if (column.shape(0) != keys.shape(0)) throw std::invalid_argument("one count for each key");
    counts.columns.push_back(copy_of(column));
  }
  return counts;
}

std::tuple<Column, std::vector<Column>> arrays_of(FeatureCounts&& counts) {
  std::vector<Column> columns;
  for (auto& column : counts.columns) columns.push_back(owned_array(std::move(column)));
  return {owned_array(std::move(counts.keys)), std::move(columns)};
}

template <class Piece>
nb::bytes state_of(const Piece& piece) {
  const auto bytes = locked<Shared>(piece, [&] { return piece.state(); });
  return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

template <class Piece>
void restore(Piece& piece, const nb::bytes& state) {
  const std::span bytes(reinterpret_cast<const std::byte*>(state.c_str()), state.size());
  locked<Unique>(piece, [&] { piece.restore(bytes); });
}

}  // namespace

void bind_stages_paper(nb::module_& m) {
  nb::class_<PaperPart>(m, "PaperPart", "The rows of a part, and its paths of the published rule.")
      .def(
          "add",
          [](PaperPart& self, const BorrowedBatch& batch) {
            const BorrowedBatch held = batch;
            locked<Unique>(self, [&] { self.add(held.batch); });
          },
          "batch"_a, "Copy more rows.")
      .def_prop_ro("rows", [](const PaperPart& self) { return self.rows(); })
      .def(
          "documents",
          [](const PaperPart& self) {
            return arrays_of(locked<Shared>(self, [&] { return self.documents(); }));
          },
          "Return the features, and the number of rows that have each.")
      .def(
          "stage",
          [](PaperPart& self, std::int64_t stage, std::int64_t burst, double gravity, double beta,
             double low, double high, std::size_t most) {
            if (burst < 1) throw std::invalid_argument("burst: 1 step or more");
            auto report = locked<Unique>(
                self, [&] { return self.stage({stage, burst, gravity, beta}, low, high, most); });
            return std::tuple(report.ratios, report.below, report.within,
                              owned_array(std::move(report.values)), report.loss_sum,
                              report.weight_sum);
          },
          "stage"_a, "burst"_a, "gravity"_a, "beta"_a, "low"_a, "high"_a, "most"_a,
          "Make a stage. Return the number of ratios, of those below `low`, and of those in\n"
          "low..high; the latter themselves if there are at most `most`; and the sums of losses\n"
          "and of weights.")
      .def(
          "counts",
          [](PaperPart& self) {
            return arrays_of(locked<Unique>(self, [&] { return self.counts(); }));
          },
          "Return the features that the stage saw, and b, kb and k of each; reset these counts.")
      .def(
          "histogram",
          [](PaperPart& self, std::uint64_t first, int shift) {
            return owned_array(locked<Unique>(self, [&] { return self.histogram(first, shift); }));
          },
          "first"_a, "shift"_a, "Count the ratios of the stage by their bits, from `first` on.")
      .def(
          "values",
          [](PaperPart& self, std::uint64_t first, int shift) {
            return owned_array(locked<Unique>(self, [&] { return self.values(first, shift); }));
          },
          "first"_a, "shift"_a, "Return the ratios in the first bin of such a histogram.")
      .def(
          "freeze",
          [](PaperPart& self, const Words& keys) {
            locked<Unique>(self, [&] { self.freeze({keys.data(), keys.shape(0)}); });
          },
          "keys"_a, "Purge features from all paths.")
      .def(
          "sums",
          [](const PaperPart& self) {
            std::vector<std::uint32_t> keys;
            std::vector<double> values;
            locked<Shared>(self, [&] { self.sums(keys, values); });
            return std::tuple(owned_array(std::move(keys)), owned_array(std::move(values)));
          },
          "Return features, and the sums of their weights over the paths.")
      .def("state", &state_of<PaperPart>)
      .def("restore", &restore<PaperPart>, "state"_a);

  m.def(
      "make_paper_part",
      [](const std::string& dtype, std::uint64_t width, std::size_t first, std::size_t paths,
         std::size_t threads, std::map<std::string, double> numbers,
         std::map<std::string, std::string> words) {
        return thresher::make_paper_part(dtype, width, first, paths, threads,
                                         {std::move(numbers), std::move(words)});
      },
      "dtype"_a, "width"_a, "first"_a, "paths"_a, "threads"_a, "numbers"_a, "words"_a,
      "Make a part with `paths` paths, from number `first` on, that uses `threads` threads.");

  nb::class_<PaperRange>(m, "PaperRange", "The evidence of a range of features.")
      .def(nb::init<std::uint64_t, double, double>(), "width"_a, "keep"_a, "min_updates"_a)
      .def(
          "see",
          [](PaperRange& self, const Words& keys) {
            return locked<Unique>(self, [&] { return self.see({keys.data(), keys.shape(0)}); });
          },
          "keys"_a, "Mark features as seen; return how many are new.")
      .def(
          "add",
          [](PaperRange& self, std::int64_t stage, const Words& keys, const Words& b,
             const Words& kb, const Words& k) {
            const FeatureCounts counts = counts_of(keys, {b, kb, k});
            locked<Unique>(self, [&] { self.add(stage, counts); });
          },
          "stage"_a, "keys"_a, "b"_a, "kb"_a, "k"_a, "Add counts of a stage.")
      .def(
          "evaluate",
          [](PaperRange& self, std::int64_t stage, const Words& keys) {
            return owned_array(locked<Unique>(
                self, [&] { return self.evaluate(stage, {keys.data(), keys.shape(0)}); }));
          },
          "stage"_a, "keys"_a, "Evaluate features of a stage; return those purged now.")
      .def(
          "findings",
          [](const PaperRange& self) {
            auto found = locked<Shared>(self, [&] { return self.findings(); });
            return std::tuple(
                owned_array(std::move(found.keys)), owned_array(std::move(found.probability)),
                owned_array(std::move(found.updates)), owned_array(std::move(found.purged)));
          },
          "Return the features seen, and for each its selection probability, number of updates\n"
          "and stage of purge.")
      .def("state", &state_of<PaperRange>)
      .def("restore", &restore<PaperRange>, "state"_a);

  m.def(
      "sum_counts",
      [](const Words& keys, const std::vector<Words>& columns, const Words& others,
         const std::vector<Words>& their_columns) {
        return arrays_of(
            thresher::sum_of(counts_of(keys, columns), counts_of(others, their_columns)));
      },
      "keys"_a, "columns"_a, "others"_a, "their_columns"_a,
      "Add two lists of counts, each sorted by feature.");

  m.def("rejection_rate", &thresher::rejection_rate, "d"_a, "beta0"_a, "gamma"_a,
        "The rejection rate if a share d of the features is stable.");
  m.def("burst_size", &thresher::burst_size, "burst"_a, "growth"_a, "d"_a,
        "The number of steps of a burst if a share d of the features is stable.");
  m.def("quantile_rank", &thresher::rank_of, "beta"_a, "count"_a,
        "The rank, from 0, of the beta-quantile among `count` numbers.");
}

}  // namespace bindings
