"""Hash collisions: how many features share a weight after their numbers are cut to few bits."""

from __future__ import annotations

import math
from dataclasses import dataclass

_SHARE = 0.05  # with the suggested bits, at most this share of the features share a weight


@dataclass(frozen=True)
class Collisions:
    """Collisions of the features of a stream whose numbers are cut to `bits` bits.

    Attributes
    ----------
    distinct : int
        Number of different features, estimated within 2 % by a sketch of some kilobytes.
    bits : int

    Examples
    --------
    >>> found = Collisions(distinct=100_000, bits=18)
    >>> round(found.load, 2), found.shared, found.suggested_bits
    (0.38, 31714, 21)
    """

    distinct: int
    bits: int

    @property
    def load(self) -> float:
        """Features per weight."""
        return float(self.distinct / 2**self.bits)

    @property
    def shared(self) -> int:
        """Expected number of features that share their weight with another feature."""
        alone = math.exp(max(self.distinct - 1, 0) * math.log1p(-(2.0**-self.bits)))
        return round(self.distinct * (1.0 - alone))

    @property
    def suggested_bits(self) -> int:
        """The smallest number of bits with which at most 5 % of the features share a weight."""
        return max(1, math.ceil(math.log2(max(self.distinct, 1) / -math.log1p(-_SHARE))))

    @property
    def text(self) -> str:
        """The numbers as text."""
        return (
            f"about {self.distinct:,} features in {2**self.bits:,} weights ({self.bits} bits); "
            f"about {self.shared:,} features share a weight with another"
        )

    def __str__(self) -> str:
        text = self.text
        if self.suggested_bits > self.bits:
            text += f"; with {self.suggested_bits} bits, at most 5 % would"
        return text
