"""Names of features in arrays: a dict of a million names takes seconds to make and to save."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["NameArrays"]


class NameArrays(Mapping[int, str]):
    """Names of features, as in the tensors of a model file; it is used like a dict.

    Parameters
    ----------
    named : array of uint64
        The features, increasing.
    ends : array of int64
        The end of each name.
    text : array of uint8
        All names joined, in UTF-8.

    Examples
    --------
    >>> names = NameArrays.of({7: "age", 3: "city=Rome"})
    >>> names[7], names.get(4), list(names)
    ('age', None, [3, 7])
    >>> names.only(np.array([7], np.uint64))
    {7: 'age'}
    """

    def __init__(
        self, named: NDArray[np.uint64], ends: NDArray[np.int64], text: NDArray[np.uint8]
    ) -> None:
        self.named, self.ends, self.text = named, ends, text

    @classmethod
    def of(cls, names: Mapping[int, str]) -> NameArrays:
        """Make it from another mapping."""
        features = sorted(names)
        texts = [names[feature].encode("utf-8", "surrogatepass") for feature in features]
        return cls(
            np.array(features, np.uint64),
            np.cumsum([len(text) for text in texts], dtype=np.int64),
            np.frombuffer(b"".join(texts), np.uint8),
        )

    @classmethod
    def from_bytes(
        cls, named: NDArray[np.uint64], ends: NDArray[np.int64], text: NDArray[np.uint8]
    ) -> NameArrays:
        """Make it from names of any bytes; those that are not UTF-8 are replaced."""
        if not _is_utf8(ends, text):
            content = text.tobytes()
            starts = [0, *ends[:-1].tolist()]
            texts = [
                content[start:end].decode(errors="replace").encode()
                for start, end in zip(starts, ends.tolist(), strict=True)
            ]
            ends = np.cumsum([len(name) for name in texts], dtype=np.int64)
            text = np.frombuffer(b"".join(texts), np.uint8)
        return cls(named, ends, text)

    def only(self, features: NDArray[np.uint64]) -> NameArrays:
        """Return the names of these features, which are increasing; some may have no name."""
        if len(features) == len(self.named) and np.array_equal(features, self.named):
            return self
        kept = np.isin(self.named, features, assume_unique=True, kind="sort")
        starts = self._starts()
        sizes = (self.ends - starts)[kept]
        ends = np.cumsum(sizes, dtype=np.int64)
        places = np.repeat(starts[kept] - (ends - sizes), sizes) + np.arange(sizes.sum())
        return NameArrays(self.named[kept], ends, self.text[places])

    def _starts(self) -> NDArray[np.int64]:
        return np.concatenate([np.zeros(1, np.int64), self.ends])[:-1]

    @cached_property
    def _dict(self) -> dict[int, str]:
        """All names, made when many are needed."""
        content = self.text.tobytes()
        return {
            feature: content[start:end].decode("utf-8", "surrogatepass")
            for feature, start, end in zip(
                self.named.tolist(), self._starts().tolist(), self.ends.tolist(), strict=True
            )
        }

    def __getitem__(self, feature: int) -> str:
        if "_dict" in vars(self):
            return self._dict[feature]
        at = -1
        if isinstance(feature, int | np.integer) and 0 <= feature < 2**64:
            at = int(np.searchsorted(self.named, np.uint64(feature)))
        if not 0 <= at < len(self.named) or int(self.named[at]) != feature:
            raise KeyError(feature)
        start = int(self.ends[at - 1]) if at else 0
        return self.text[start : int(self.ends[at])].tobytes().decode("utf-8", "surrogatepass")

    def __contains__(self, feature: object) -> bool:
        return feature in self._dict

    def __iter__(self) -> Iterator[int]:
        return iter(self.named.tolist())

    def __len__(self) -> int:
        return len(self.named)

    def items(self) -> ItemsView[int, str]:
        """Return pairs of feature and name."""
        return self._dict.items()

    def values(self) -> ValuesView[str]:
        """Return the names."""
        return self._dict.values()

    def __eq__(self, other: object) -> bool:
        return self._dict == (other._dict if isinstance(other, NameArrays) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._dict)

    def __reduce__(self) -> tuple[type[dict[int, str]], tuple[dict[int, str]]]:
        """Pickle a dict, which any version can read."""
        return dict, (self._dict,)


def _is_utf8(ends: NDArray[np.int64], text: NDArray[np.uint8]) -> bool:
    """Tell whether each name is valid UTF-8."""
    if text.max(initial=0) < 0x80:
        return True
    try:
        text.tobytes().decode()
    except UnicodeDecodeError:
        return False
    starts = ends[:-1][ends[:-1] < len(text)]
    return not ((text[starts] & 0xC0) == 0x80).any()  # a name begins within a letter


def only(names: Mapping[int, str], features: NDArray[np.uint64]) -> Mapping[int, str]:
    """Return the names of these features, which are increasing; some may have no name."""
    if isinstance(names, NameArrays):
        return names.only(features)
    return {feature: names[feature] for feature in features.tolist() if feature in names}
