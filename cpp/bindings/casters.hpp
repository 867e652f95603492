// nanobind's conversions of strings and containers, without `noexcept`.
//
// They allocate. With `noexcept` they would end the process if there is no memory left; without
// it, the caller gets a MemoryError.
#pragma once

#include <nanobind/nanobind.h>

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#define noexcept
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#undef noexcept

// These headers of nanobind must not be included before, nor be precompiled without this file.
static_assert(!noexcept(std::declval<nanobind::detail::make_caster<std::map<int, int>>&>()
                            .from_python(nanobind::handle(), 0, nullptr)));
static_assert(!noexcept(std::declval<nanobind::detail::make_caster<std::string>&>().from_python(
    nanobind::handle(), 0, nullptr)));
static_assert(!noexcept(std::declval<nanobind::detail::make_caster<std::vector<int>>&>()
                            .from_python(nanobind::handle(), 0, nullptr)));
