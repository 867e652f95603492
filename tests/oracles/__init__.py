"""Naive dense oracles: each learning rule written out eagerly, one file per rule.

They are slow on purpose. Every weight is visited at every step, nothing is owed and nothing is
paid later, so that each file can be read line by line beside the paper. The native core is
compared with them. Numbers such as R-6.1 refer to docs/theory.md.

Precision: weights and all other vectors, and the arithmetic on them, are in ``dtype``. Rates,
loss derivatives and the bias are Python floats; they are cast to ``dtype`` where they meet a
vector. An inner product is taken in ``dtype`` and its result becomes a Python float.
"""
