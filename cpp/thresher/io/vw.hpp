// Parser of Vowpal Wabbit text; see vw.cpp.
#pragma once

#include <memory>

#include "thresher/io/parser.hpp"

namespace thresher::io {

std::unique_ptr<Parser> make_vw(const Options& options);

}  // namespace thresher::io
