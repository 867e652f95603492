"""How full a folded feature space is: features seen, and how many share a weight."""

from __future__ import annotations

import math
from dataclasses import dataclass

_SHARE = 0.05  # of the features that may share a weight, where bits are suggested


@dataclass(frozen=True)
class Collisions:
    """What folding to `bits` bits does to the features of a stream.

    Attributes
    ----------
    distinct : int
        Different features seen, as a sketch of some kilobytes estimates it (within 2 %).
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
        """Features for each weight there is."""
        return float(self.distinct / 2**self.bits)

    @property
    def shared(self) -> int:
        """Expected number of features that share their weight with another one."""
        alone = math.exp(max(self.distinct - 1, 0) * math.log1p(-(2.0**-self.bits)))
        return round(self.distinct * (1.0 - alone))

    @property
    def suggested_bits(self) -> int:
        """The fewest bits with which one feature in twenty shares its weight."""
        return max(1, math.ceil(math.log2(max(self.distinct, 1) / -math.log1p(-_SHARE))))

    def __str__(self) -> str:
        text = (
            f"about {self.distinct:,} features in {2**self.bits:,} weights ({self.bits} bits), "
            f"{self.shared:,} of them expected to share one"
        )
        if self.suggested_bits > self.bits:
            text += f"; {self.suggested_bits} bits would leave 5 %"
        return text
