"""Whole calls as users write them, each against its peer: `make bench` and `make bench-full`.

Each area is a module with a function ``lines(full)``, a generator of `Line` and `Skipped`; `full`
asks for the sizes of `make bench-full`. It is a generator so that the data of one line is released
before the next. All modules of this package that define ``lines`` are areas.
"""
