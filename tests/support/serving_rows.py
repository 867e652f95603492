"""Rows of named features for tests of serving."""

import numpy as np

COLOURS, WORDS = ("red", "green", "blue"), ("cheap", "flight", "hotel", "late", "sun")


def named_rows(count, seed=0):
    """Return rows of named features, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    rows, labels = [], []
    for _ in range(count):
        colour, price = str(rng.choice(COLOURS)), round(float(rng.uniform(-1, 3)), 3)
        words = [str(word) for word in rng.choice(WORDS, 2, replace=False)]
        rows.append({"colour": colour, "price": price, "words": words})
        labels.append(int((colour == "red") + price + ("sun" in words) + rng.normal(0, 0.3) > 1.5))
    return rows, labels
