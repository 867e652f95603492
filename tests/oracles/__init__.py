"""Naive dense oracles: each learning rule written out eagerly, one file per rule.

They are slow on purpose. Every step updates every weight immediately, without pending events, so
that each file can be compared with the paper line by line. Tests compare the core with them.
Numbers such as R-6.1 refer to docs/theory.md.

Precision: weights and all other vectors, and the arithmetic on them, are in ``dtype``. Rates,
loss derivatives and the bias are Python floats; they are cast to ``dtype`` in operations with a
vector. An inner product is computed in ``dtype``, and its result becomes a Python float.
"""
