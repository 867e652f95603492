// Parser of SVMlight and LIBSVM text; see svmlight.cpp.
#pragma once

#include <memory>

#include "thresher/io/parser.hpp"

namespace thresher::io {

std::unique_ptr<Parser> make_svmlight(const Options& options);

}  // namespace thresher::io
