"""Names of features, and their columns."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

from thresher.errors import ParameterError


def check_names(names: Sequence[str], n_features: int, owner: str = "") -> None:
    """Raise ParameterError unless there is a name for each feature.

    Parameters
    ----------
    names : sequence of str
    n_features : int
    owner : str
        Start of the message.
    """
    if len(names) != n_features:
        raise ParameterError(
            f"{owner}names must be {n_features:,}, one for each feature; got {len(names):,}"
        )


def column_of(
    feature: Any, n_features: int, kept: Mapping[int, str], names: Sequence[str] | None
) -> int:
    """Return the column of a feature.

    Parameters
    ----------
    feature : str or int
        Its name, or its column.
    n_features : int
    kept : mapping from int to str
        Names in the model.
    names : sequence of str, optional
        Names of all features, used instead of `kept`.
    """
    if names is not None:
        check_names(names, n_features)
    if isinstance(feature, str):
        known = list(kept.items() if names is None else enumerate(names))
        found = [index for index, name in known if name == feature]
        if not found:  # "column^value", as it was named before
            other = feature.replace("^", "=", 1)
            found = [index for index, name in known if name == other]
        if not found and names is not None:
            raise ValueError(f"no feature is named {feature!r}")
        if not found:
            raise ValueError(
                f"no feature with nonzero weight is named {feature!r}; names of other features are "
                f"not stored: pass names=, or the number of the column"
            )
        if len(found) > 1:
            raise ValueError(
                f"{len(found)} features are named {feature!r}: pass the number of the column"
            )
        return found[0]
    if isinstance(feature, bool) or not isinstance(feature, numbers.Integral):
        raise TypeError(f"feature must be a name or the number of a column; got {feature!r}")
    index = int(feature)
    if not 0 <= index < n_features:
        raise ValueError(f"feature must be in 0..{n_features - 1}; got {index}")
    return index
