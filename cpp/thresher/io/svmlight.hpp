// Text as SVMlight and LIBSVM write it; see svmlight.cpp.
#pragma once

#include <memory>

#include "parser.hpp"

namespace thresher::io {

std::unique_ptr<Parser> make_svmlight(const Options& options);

}  // namespace thresher::io
