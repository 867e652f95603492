#include "thresher/lanes/labels.hpp"

#include <memory>
#include <stdexcept>

#include "thresher/lanes/label_lists.hpp"

namespace thresher {
namespace {

constexpr std::uint64_t widest_array = std::uint64_t{1} << 26;  // 4 bytes per feature: 256 MiB

template <class Real>
std::unique_ptr<LabelLists> with_dtype(std::uint64_t width, const Params& params,
                                       std::size_t count) {
  const bool dense = width > 0 && width <= widest_array;
  return std::make_unique<LabelListsOf<Real>>(dense, width, params, count);
}

}  // namespace

std::unique_ptr<LabelLists> make_labels(const std::string& rule, const std::string& dtype,
                                        std::uint64_t width, const Params& params,
                                        std::size_t count) {
  const auto refuse = [](const std::string& what) {
    throw std::invalid_argument("lists of classes do not support " + what);
  };
  if (rule != "truncated_gradient")
    throw std::invalid_argument("lists of classes only support the truncated gradient, not " +
                                rule);
  if (params.word("shrink") == "subgradient") refuse("the l1 subgradient, which produces no zeros");
  if (params.flag("average")) refuse("averages");
  if (params.number("target_nnz", 0.0) > 0) refuse("a target number of nonzero weights");
  if (params.word("loss") == "poisson") refuse("the poisson loss");
  if (dtype == "float32") return with_dtype<float>(width, params, count);
  if (dtype == "float64") return with_dtype<double>(width, params, count);
  throw std::invalid_argument("unknown dtype '" + dtype + "'");
}

}  // namespace thresher
