"""
The native core: batches of rows, and learners that learn from them row by row.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
import os
from typing import Annotated, Any, overload

import numpy
from numpy.typing import NDArray

class DataError(ValueError):
    """
    A row cannot be learned or read: the message names the row and what is wrong.
    """

class DivergenceError(ArithmeticError):
    """The weights are no longer finite: the learning rate is too high."""

class Batch:
    """Rows borrowed from NumPy arrays, which do not change."""

    @property
    def rows(self) -> int: ...
    @property
    def columns(self) -> int: ...
    def set_targets(
        self,
        labels: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ]
        | None,
        weights: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ]
        | None = None,
        units: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ]
        | None = None,
    ) -> None:
        """
        Replace the labels and weights of the rows, and the units of their losses.
        """

    def value_range(self, count: int, step: int = 1) -> tuple[float, float]:
        """
        Return the least and the largest absolute value of rows 0, step, 2 step and so on.

        Values of 0 and NaN do not count; without others it is (inf, 0).
        """

    def copy(self) -> Batch:
        """
        Return a batch of the same rows, which are not copied, with targets of its own.
        """

def sparse_batch(
    starts: Annotated[NDArray, dict(shape=(None,), order="C", device="cpu", writable=False)],
    keys: Annotated[NDArray, dict(shape=(None,), order="C", device="cpu", writable=False)],
    values: Annotated[NDArray, dict(shape=(None,), order="C", device="cpu", writable=False)],
    columns: int,
    labels: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ]
    | None = None,
    weights: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ]
    | None = None,
) -> Batch:
    """Borrow CSR rows."""

def dense_batch(
    rows: Annotated[NDArray, dict(shape=(None, None), order="C", device="cpu", writable=False)],
    labels: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ]
    | None = None,
    weights: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ]
    | None = None,
) -> Batch:
    """Borrow the rows of a C-contiguous array; zeros are skipped."""

def mean_row(batch: Batch) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """Return the mean of the rows."""

class Learner:
    """
    One model in training, with one rule and one store. Threads may share it.
    """

    def learn(
        self,
        batch: Batch,
        order: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ]
        | None = None,
        first: int = 0,
        last: int | None = None,
    ) -> int:
        """
        Learn the rows of order[first:last], in that order, until the rule pauses. A row makes
        as many steps as its weight says. Return the number of rows learned.
        """

    def next_pass(self) -> None:
        """Decay the rate, as after a pass over the data."""

    def widen(self, width: int) -> None:
        """Accept feature numbers below a larger width from now on."""

    def predict(
        self, batch: Batch, average: bool = False
    ) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Return raw predictions."""

    def weights(
        self, average: bool = False
    ) -> tuple[
        Annotated[NDArray[numpy.uint64], dict(shape=(None,))],
        Annotated[NDArray[numpy.float64], dict(shape=(None,))],
    ]:
        """
        Return the keys of nonzero weights, in increasing order, and the weights.
        """

    def nonzeros(self, average: bool = False) -> int: ...
    def intercept(self, average: bool = False) -> float: ...
    @property
    def steps(self) -> int:
        """Number of rows learned, in all passes."""

    @property
    def loss_sum(self) -> float:
        """Sum of the progressive losses times sample weights."""

    @property
    def weight_sum(self) -> float: ...
    @property
    def rate(self) -> float:
        """Learning rate of the last step."""

    @property
    def store_bytes(self) -> int:
        """Memory of the store, in bytes."""

    def facts(self) -> dict[str, float]:
        """Return numbers that only this rule keeps, by name."""

    def steer(self) -> None:
        """Set the penalty now for the wanted number of nonzero weights."""

    def pause_at(self, nonzeros: int) -> None:
        """
        Let learning pause after a step that leaves at least this many nonzero weights.
        """

    @property
    def paused(self) -> bool:
        """Whether learning paused after the last step."""

    def state(self) -> bytes: ...
    def restore(self, state: bytes) -> None: ...
    def start_from(
        self,
        keys: Annotated[
            NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        values: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        intercept: float,
    ) -> None:
        """Start from these weights, before the first step."""

    def center(
        self,
        keys: Annotated[
            NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        means: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """Set the mean of the rows, before the first step."""

    @property
    def numbers_per_feature(self) -> int:
        """
        How many numbers per feature are averaged; 0 if the rule cannot be averaged.
        """

    def clock(self) -> bytes:
        """
        Return all numbers that do not belong to a feature, without pending events.
        """

    def set_clock(self, clock: bytes) -> None:
        """Continue from a clock; weights stay as at the start of a round."""

    def begin_round(self) -> None:
        """Count updates from now on, and remember the weights that they change."""

    def end_round(
        self,
    ) -> tuple[
        Annotated[NDArray[numpy.uint64], dict(shape=(None,))],
        Annotated[NDArray[numpy.uint32], dict(shape=(None,))],
        Annotated[NDArray[numpy.float64], dict(shape=(None,))],
    ]:
        """
        Return the updated features in increasing order, their numbers of updates, and their
        averaged numbers, feature by feature. Reset all weights to the start of the round.
        """

    def pending(self) -> bytes:
        """
        Return the events of the last round, to apply to weights without an update.
        """

    def apply_pending(
        self,
        pending: bytes,
        numbers: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """
        Return the numbers of features without an update at the end of a round. If `pending` is
        empty, only round them to the dtype.
        """

    def set_numbers(
        self,
        keys: Annotated[
            NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        numbers: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """Set the averaged numbers of features; call it between rounds."""

    def nonzeros_at(
        self,
        clock: bytes,
        numbers: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        average: bool,
    ) -> int:
        """
        Count the features with these numbers whose weight is not zero at a clock.
        """

    def intercept_numbers(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Return the averaged numbers of the intercept."""

    def set_intercept_numbers(
        self,
        numbers: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """Set the averaged numbers of the intercept."""

    def finish_rounds(
        self,
        keys: Annotated[
            NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        numbers: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        rows: int,
        weight: float,
        loss: float,
    ) -> None:
        """Set the whole model after the last round; then train without rounds."""

def make_learner(
    rule: str,
    store: str,
    dtype: str,
    width: int,
    numbers: Mapping[str, float],
    words: Mapping[str, str],
) -> Learner: ...
def rule_names() -> list[str]:
    """The names of all rules, sorted."""

def loss_values(
    loss: str,
    epsilon: float,
    quantile: float,
    predictions: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    labels: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
) -> tuple[
    Annotated[NDArray[numpy.float64], dict(shape=(None,))],
    Annotated[NDArray[numpy.float64], dict(shape=(None,))],
]:
    """Return values and slopes of a loss at raw predictions."""

class BadLine:
    """A line that failed to parse."""

    @property
    def line(self) -> int:
        """Line number from 0, within the block."""

    @property
    def column(self) -> int:
        """Column from 1, in bytes."""

    @property
    def what(self) -> str: ...
    @property
    def text(self) -> bytes: ...

class Block:
    """Rows that a reader returns, and their position in the file."""

    @property
    def batch(self) -> Batch:
        """The rows as a batch that borrows them."""

    @property
    def rows(self) -> int: ...
    @property
    def nonzeros(self) -> int: ...
    @property
    def width(self) -> int:
        """All keys are below it; 0: some key is 2^63 or larger."""

    @property
    def starts(self) -> object: ...
    @property
    def keys(self) -> object:
        """int32 or int64; a key of 2^63 or larger appears as negative."""

    @property
    def values(self) -> object: ...
    @property
    def labels(
        self,
    ) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)] | None:
        """NaN for a row without a label; None for multilabel rows."""

    @property
    def weights(
        self,
    ) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)] | None: ...
    @property
    def label_starts(
        self,
    ) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)] | None: ...
    @property
    def label_values(
        self,
    ) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)] | None: ...
    @property
    def tags(self) -> object:
        """The tag of each row, or None."""

    def line(self, row: int) -> int:
        """The line of a row in its file, from 1."""

    @property
    def offset(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def first_line(self) -> int: ...
    @property
    def line_count(self) -> int: ...
    @property
    def digest(self) -> int: ...
    @property
    def sum(self) -> int: ...
    @property
    def bad(self) -> list[BadLine]: ...
    @property
    def names(self) -> list:
        """Pairs (key, name) of features, if requested."""

    @property
    def spaces(self) -> list:
        """Namespaces of VW text, with interactions: each at least once per file."""

    @property
    def sketch(self) -> object:
        """The sketch of the keys as a bytes object, if requested."""

class CacheError(ValueError):
    """A cache is cut short or damaged, or another version wrote it."""

class CacheWriter:
    """
    Writes a cache to an open file, which the caller syncs and closes; `path` is for messages.
    """

    def __init__(self, file: int, path: str | os.PathLike[str], about: str) -> None: ...
    def add(self, block: Block) -> None:
        """Append a block."""

    def finish(self, sketch: bytes = ...) -> None:
        """Write the index."""

    def abandon(self) -> None:
        """Write no more to the file."""

class CacheReader:
    """
    Reads the blocks of a cache from a mapped file, with one block read ahead.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None: ...
    @staticmethod
    def from_memory(bytes: bytes) -> CacheReader:
        """Read a cache from a copy of its bytes."""

    @property
    def about(self) -> str:
        """The text given to the writer."""

    @property
    def blocks(self) -> int:
        """The number of blocks."""

    @property
    def rows(self) -> int: ...
    @property
    def nonzeros(self) -> int: ...
    @property
    def width(self) -> int:
        """All keys are below it; 0: no such bound fits int64."""

    @property
    def named(self) -> bool:
        """Whether blocks have feature names."""

    @property
    def file_bytes(self) -> int: ...
    @property
    def sketch(self) -> bytes: ...
    def rows_of(self, number: int) -> int:
        """Return the number of rows of a block, without reading it."""

    def block(self, number: int, dtype: str = "float32", names: bool = True) -> Block:
        """
        Return a block. Its arrays are views of the file; values have the dtype.
        """

    def prefetch(self, number: int, dtype: str = "float32", names: bool = True) -> None:
        """Start to read a block; only needed if blocks are not read in order."""

class VwNames:
    """The names of features by key, for vw_text."""

    def __init__(self) -> None: ...
    def add(self, block: Block) -> None:
        """Add the names of a block. Names that VW text cannot have are left out."""

def svmlight_text(block: Block, zero_based: bool = False) -> bytes:
    """Return the rows as svmlight text."""

def vw_text(block: Block, names: VwNames | None = None) -> bytes:
    """
    Return the rows as VW text. Features without a name are numbers in the default namespace.
    """

def make_block(
    starts: Annotated[NDArray, dict(shape=(None,), order="C", device="cpu", writable=False)],
    keys: Annotated[NDArray, dict(shape=(None,), order="C", device="cpu", writable=False)],
    values: Annotated[NDArray, dict(shape=(None,), order="C", device="cpu", writable=False)],
    labels: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ]
    | None = None,
    weights: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ]
    | None = None,
    label_starts: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ]
    | None = None,
    label_values: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ]
    | None = None,
    tags: Sequence | None = None,
    names: Iterable | None = None,
    columns: int = 0,
    distinct: bool = False,
    first_line: int = 1,
    offset: int = 0,
    bytes: int = 0,
    line_count: int = 0,
    digest: int = 0,
    lines: Annotated[
        NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ]
    | None = None,
) -> Block:
    """
    Make a block of arrays. It keeps them alive; they must not change. Unless `distinct`, the
    values of a repeated key in a row are summed, in a copy.
    """

def cut_columns(batch: Batch, dtype: str, width: int, blocks: int, intercept: bool) -> tuple:
    """
    Split rows by columns. Return for each block: the number of its features in each row, their
    keys, their values, and for each row ||x||^2 divided by that of these features. Also return
    the largest ||x||^2. Keys are below width; 0: any key.
    """

class MarginBlock:
    """The margin perceptron on a block of columns, batch by batch."""

    def __init__(
        self,
        rows: Batch,
        reach: Annotated[
            NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        dtype: str,
        width: int,
        numbers: Mapping[str, float],
        words: Mapping[str, str],
    ) -> None:
        """Rows with labels; their keys are column numbers below width."""

    def products(
        self,
        order: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ]
        | None,
        first: int,
        last: int,
    ) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """
        Return the block's part of the inner products of the rows order[first:last].
        """

    def learn(
        self,
        order: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ]
        | None,
        first: int,
        last: int,
        sums: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]:
        """
        Learn from the rows of the last `products`; `sums` are over all blocks. Return a bit for
        each row, in the layout of numpy.packbits: whether it made an update.
        """

    def weights(self) -> tuple:
        """Return the columns of nonzero weights, and the weights."""

    @property
    def intercept(self) -> float: ...
    def facts(self) -> dict[str, float]: ...
    def state(self) -> bytes: ...
    def restore(self, state: bytes) -> None: ...

def used_columns(
    batch: Batch, most: int, threads: int
) -> tuple[NDArray[numpy.uint64], NDArray[numpy.int32]] | None:
    """
    Return the columns that occur, and the keys with these columns numbered from 0.

    None if more than `most` occur, or if learners might refuse a key or a value.
    """

class Discovery:
    """Evidence of the features of one output."""

    def stream(
        self,
        batch: Batch,
        number: int,
        order: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ]
        | None = None,
        first: int = 0,
        last: int | None = None,
    ) -> tuple[
        Annotated[NDArray[numpy.float64], dict(shape=(None,))],
        Annotated[NDArray[numpy.int64], dict(shape=(None,))],
        Annotated[NDArray[numpy.uint64], dict(shape=(None,))],
    ]:
        """
        Add the evidence of each row, then learn it. `number` is the number of the batch's
        first row in the stream. Return the prediction before learning, the number of values and a
        hash of each row.
        """

    def learn(
        self,
        batch: Batch,
        folds: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        fold: int,
        order: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ]
        | None = None,
        first: int = 0,
        last: int | None = None,
    ) -> None:
        """Let the model of a fold learn the rows of the other folds."""

    def finish(self, fold: int) -> None:
        """End the learning of a fold, and release the memory of its model."""

    def score(
        self,
        batch: Batch,
        folds: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        number: int,
        order: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ]
        | None = None,
        first: int = 0,
        last: int | None = None,
        groups: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ]
        | None = None,
    ) -> tuple[
        Annotated[NDArray[numpy.float64], dict(shape=(None,))],
        Annotated[NDArray[numpy.int64], dict(shape=(None,))],
        Annotated[NDArray[numpy.uint64], dict(shape=(None,))],
    ]:
        """
        Add the evidence of the rows, each with the model of its fold. Rows of one group have
        the same redraws. Return what `stream` returns.
        """

    def sums(self) -> dict:
        """
        Return the sums of all features that occurred, in the order of their numbers.
        """

    def facts(self) -> dict[str, float]: ...
    def bytes(self) -> int: ...
    def state(self) -> bytes: ...
    def restore(self, state: bytes) -> None: ...

def redrawn_z(
    S: Annotated[
        NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    D: Annotated[
        NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    variance: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
) -> Annotated[NDArray[numpy.float32], dict(shape=(None,))]:
    """
    Return |z| of each feature and redraw. D may be empty: the variance is then the same in
    every redraw.
    """

def exceedances(
    values: Annotated[
        NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    thresholds: Annotated[
        NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
    """
    Return for each threshold the number of values that are at least as large. Thresholds
    increase.
    """

def make_discovery(
    task: str,
    store: str,
    dtype: str,
    width: int,
    redraws: int = 20,
    seed: int = 0,
    folds: int = 1,
    level: str = "auto",
) -> Discovery:
    """
    Return a discovery for one output; `folds` 1: a stream. The task is "classification" (labels
    0 and 1) or "regression".
    """

class Lanes:
    """Many models, one per lane, trained on the same rows."""

    def __len__(self) -> int: ...
    def learn(
        self,
        batch: Batch,
        order: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ]
        | None = None,
        first: int = 0,
        last: int | None = None,
        seen: Annotated[
            NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ]
        | None = None,
        classes: tuple[
            Annotated[
                NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
            ],
            Annotated[
                NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
            ],
        ]
        | None = None,
        low: float = -1.0,
        before: bool = False,
        scaled: tuple[
            Annotated[
                NDArray[numpy.float64],
                dict(shape=(None, None), order="C", device="cpu", writable=False),
            ],
            Annotated[
                NDArray[numpy.float64],
                dict(shape=(None, None), order="C", device="cpu", writable=False),
            ],
        ]
        | None = None,
    ) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))] | None:
        """
        Learn in each lane the rows of order[first:last] that its clock sees. A row makes as
        many steps as its weight says.

        seen: uint8 array of rows x clocks, 1 if the clock sees the row; None: all rows.
        classes: (starts, numbers), the classes of each row. If the target of a lane is a class,
        its label is 1 for rows of that class, otherwise `low`. before: return the predictions
        before the steps, rows x lanes; NaN if the clock does not see the row. scaled: (labels,
        units), standardised targets of each clock and the units of their losses, rows x clocks.
        """

    def next_pass(self) -> None:
        """Decay the rates, as after a pass over the data."""

    def widen(self, width: int) -> None:
        """Accept feature numbers below a larger width from now on."""

    def predict(
        self,
        batch: Batch,
        lanes: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ]
        | None = None,
        order: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ]
        | None = None,
        average: bool = False,
        finite: bool = True,
    ) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
        """
        Return raw predictions of these lanes (None: all) for these rows (None: all), rows x lanes.
        Raise an error if one is not finite, unless `finite` is False.
        """

    def score(
        self,
        batch: Batch,
        lanes: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        order: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        truth: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        kind: str,
        middle: float = 0.0,
        outputs: int = 1,
        average: bool = False,
    ) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """
        Return sums over these rows for models of `outputs` adjacent lanes; NaN if a prediction is
        not finite. kind: 'hits', 'log losses' (of probabilities clipped as in scikit-learn),
        'squares' or 'absolutes'. truth: 1 or -1, or a value, or the number of the model's lane.
        A raw prediction of at least `middle` is a hit of 1.
        """

    def weights(
        self, lane: int, average: bool = False
    ) -> tuple[
        Annotated[NDArray[numpy.uint64], dict(shape=(None,))],
        Annotated[NDArray[numpy.float64], dict(shape=(None,))],
    ]:
        """
        Return the keys of a lane's nonzero weights, in increasing order, and the weights.
        """

    def nonzeros(
        self, average: bool = False
    ) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...
    def intercepts(
        self, average: bool = False
    ) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...
    def steps(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Return for each lane the number of rows learned, in all passes."""

    def loss_sums(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """
        Return for each lane the sum of its progressive losses times sample weights.
        """

    def weight_sums(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...
    def rates(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...
    @property
    def divergences(self) -> list[str]:
        """Why each lane stopped; empty if it did not stop."""

    @property
    def layouts(self) -> list[str]:
        """How each lane is computed: a text per lane."""

    @property
    def store_bytes(self) -> int:
        """Memory of the store, in bytes."""

    def add(
        self,
        numbers: Sequence[Mapping[str, float]],
        words: Sequence[Mapping[str, str]],
        clocks: Sequence[int],
        targets: Sequence[int],
    ) -> None:
        """Add lanes that start now."""

    def state(self) -> bytes: ...
    def restore(self, state: bytes) -> None: ...

class LabelLists(Lanes):
    """A lane for each of many classes; only nonzero weights are stored."""

    def plant_intercepts(
        self,
        intercepts: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """Set the initial intercepts."""

    def class_weights(
        self,
    ) -> tuple[
        Annotated[NDArray[numpy.int32], dict(shape=(None,))],
        Annotated[NDArray[numpy.uint64], dict(shape=(None,))],
        Annotated[NDArray[numpy.float64], dict(shape=(None,))],
    ]:
        """
        Return the classes, keys and values of nonzero weights, ordered by class and key.
        """

    def grow(self, count: int) -> None:
        """Add lanes until there are `count`; new lanes start now."""

def make_labels(
    rule: str,
    dtype: str,
    width: int,
    numbers: Mapping[str, float],
    words: Mapping[str, str],
    count: int,
) -> LabelLists:
    """
    Make a lane for each of `count` classes. All share parameters and clock. width 0: any key.
    """

def make_lanes(
    rule: str,
    store: str,
    dtype: str,
    width: int,
    numbers: Sequence[Mapping[str, float]],
    words: Sequence[Mapping[str, str]],
    clocks: Sequence[int],
    targets: Sequence[int],
    level: str = "auto",
) -> Lanes:
    """
    Make lanes of one rule. Each has parameters, a clock (a column of `seen`) and a target: a
    class number, or -1 for the label itself. level: the widest vectors to use.
    """

class RowScores:
    """Predicts for one row, given as a dict."""

    def one(self, row: object) -> float | None:
        """
        Return the decision value of the first output; None: use the general way.
        """

    def all(self, row: object) -> list[float] | None:
        """Return the decision values of all outputs; None: use the general way."""

    def best(self, row: object) -> int | None:
        """
        Return the output of the largest decision value; None: use the general way.
        """

class ModelRow(RowScores):
    """Predicts for one row by the weights of a model."""

    def __init__(
        self,
        indptr: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        indices: Annotated[
            NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        weights: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        intercepts: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        scales_rows: bool,
        decision_at: float,
        bits: int | None,
        numbered: Mapping[str, int],
    ) -> None: ...

class LearnerRow(RowScores):
    """Learns and predicts one row with the learners of a model."""

    def __init__(
        self,
        learners: list,
        lane_of: Sequence[int] | None,
        dtype: str,
        bits: int | None,
        decision_at: float,
        average: bool,
        uncut: bool,
    ) -> None: ...
    def set_scale(
        self,
        scale: tuple[
            Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
            bool,
            int,
        ],
    ) -> None:
        """
        Set the states of standardised targets, whether they are centred, and the degree.
        """

    def set_learning(
        self,
        params: dict,
        targets: dict | None,
        factors: dict | None,
        range: tuple[float, float],
        low: float,
        loss: tuple[str, float, float],
        names: object,
        most_names: int,
        only_unit_weights: bool,
    ) -> None:
        """
        Let it learn. targets: the target, or the lane, of each label; None: labels are numbers.
        factors: the weight of each label's class. names: receives names, up to `most_names`.
        """

    def learn_numbered(self, attributes: dict[str, Any], row: Batch, label: object) -> float | None:
        """Do the same for a batch of one row."""

    def learn(
        self, attributes: dict[str, Any], row: object, label: object, weight: object
    ) -> float | None:
        """
        Learn a row. Return the loss of predicting zero for it. None: nothing was learned; use
        the general way. `attributes`: of the estimator, whose parameters must not have changed.
        """

class Scorer:
    """Predicts rows by the weights of a model."""

    def __init__(
        self,
        starts: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        keys: Annotated[
            NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        weights: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        intercepts: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        width: int,
        level: str = "auto",
    ) -> None: ...
    @property
    def is_table(self) -> bool:
        """Whether it has a table of all weights."""

    @property
    def bytes(self) -> int:
        """Its memory, in bytes."""

    def sparse(
        self,
        starts: Annotated[NDArray, dict(shape=(None,), order="C", device="cpu", writable=False)],
        keys: Annotated[NDArray, dict(shape=(None,), order="C", device="cpu", writable=False)],
        values: Annotated[NDArray, dict(shape=(None,), order="C", device="cpu", writable=False)],
        threads: int = 1,
        ignores: bool = False,
    ) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
        """
        Return the raw predictions of CSR rows, one column for each output. ignores: features
        that the model does not have are no error.
        """

    def batch(
        self, batch: Batch, threads: int = 1, ignores: bool = False
    ) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
        """Do the same for a batch of CSR rows."""

    def dense(
        self,
        rows: Annotated[NDArray, dict(shape=(None, None), device="cpu", writable=False)],
        threads: int = 1,
    ) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
        """
        Return the raw predictions of the rows of an array in C order or in Fortran order.
        """

class WantedNames:
    """Features whose names are wanted."""

    def __init__(
        self,
        keys: Annotated[
            NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None: ...
    def take(self, block: Block) -> None:
        """Store the names of a block. Call it for blocks in file order."""

    @property
    def keys(self) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,))]:
        """The keys without a name so far."""

    @property
    def missing(self) -> int:
        """The number of keys without a name so far."""

    @property
    def found(self) -> dict[int, bytes]: ...

class FirstNames:
    """
    The first name of each feature, collected by readers while they read.
    `bits`: of the readers. If they need more than `most_bytes`, all names are dropped.
    """

    def __init__(self, bits: int = 0, most_bytes: int = 67108864) -> None: ...
    def __len__(self) -> int: ...
    @property
    def full(self) -> bool:
        """Whether the names were dropped."""

    def keys(self) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,))]:
        """Return all features that have a name, in increasing order."""

    def of(
        self, keys: NDArray[numpy.uint64]
    ) -> tuple[NDArray[numpy.uint64], NDArray[numpy.int64], NDArray[numpy.uint8]]:
        """
        Return those of these features, in increasing order, that have names; the end of each
        name; and all names joined.
        """

class NameTable:
    """The names of all features seen, except those removed by retain()."""

    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def take(self, block: Block) -> None: ...
    def retain(
        self,
        keys: Annotated[
            NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """Remove the names of all other features."""

    def add(self, key: int, name: bytes) -> None: ...
    def of(self, keys: NDArray[numpy.uint64]) -> dict[int, bytes]:
        """Return the names of these features; some may be missing."""

    @property
    def names(self) -> dict[int, bytes]: ...

class Reader:
    """Parses text into blocks of rows, with one or more threads."""

    def __init__(
        self,
        source: object | None,
        format: str,
        *,
        path: str | None = None,
        dtype: str = "float32",
        bits: int = 0,
        zero_based: bool = False,
        multilabel: bool = False,
        interactions: Sequence[bytes] = [],
        names: bool = False,
        names_again: bool = False,
        wanted: WantedNames | None = None,
        first: FirstNames | None = None,
        sketch: bool = False,
        keep_going: bool = True,
        threads: int = 1,
        offset: int = 0,
        first_line: int = 1,
        block_bytes: int = 1048576,
        max_line: int = 33554432,
        waiting: object | None = None,
        end: int | None = None,
        level: str = "auto",
    ) -> None:
        """
        Read `format` from `path`, up to the byte `end`, or from the `readinto` of `source`. The
        source is at position `offset`. While `next` waits for threads, it regularly calls
        `waiting`, and passes on its errors. `first` takes the names of each block returned.
        level: avx512, avx2, portable or none, how VW text is parsed; all give the same blocks.
        """

    def next(self) -> Block | None:
        """Return the next block of rows; None at the end."""

    def close(self) -> None:
        """Stop the threads. No block can be read afterwards."""

def hash_name(name: bytes) -> int:
    """Return the key of a feature, given "name" or "namespace^name"."""

def mix_keys(a: int, b: int) -> int:
    """Return the key of the interaction of two features."""

def hash_strings(
    offsets: Annotated[NDArray, dict(shape=(None,), order="C", device="cpu", writable=False)],
    data: object,
    prefix: bytes = ...,
) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,))]:
    """Return the keys of prefix + data[offsets[i]:offsets[i + 1]]."""

def sketch_merge(a: object, b: object) -> bytes:
    """Return the sketch of the keys of both. An empty sketch has no keys."""

def sketch_estimate(sketch: object) -> float:
    """Return the approximate number of distinct keys of a sketch."""

class CoordinateDescent:
    """Coordinate descent on one output, step by step."""

    def __init__(
        self,
        columns: Batch,
        labels: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        weights: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ]
        | None,
        loss: str,
        epsilon: float,
        l1: float,
        step: str,
    ) -> None:
        """
        Columns of X as a batch: the CSC arrays, with the number of rows as its columns.
        """

    def steps(
        self,
        draws: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> float:
        """
        Make one step for each draw, -1 for the intercept. Return the largest violation of a
        coordinate when it was drawn.
        """

    def refresh(self) -> None:
        """Compute the predictions again from the weights."""

    def objective(self) -> float: ...
    def largest_gradient(self) -> float:
        """Return the largest slope of the mean loss along a feature."""

    def violation(self, with_intercept: bool) -> float:
        """Return how much the optimality conditions are violated."""

    def steepest(self) -> tuple[int, float]:
        """Return the feature with the largest mean square, and this mean square."""

    def weights(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...
    def predictions(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Return z = X w + b, as updated by the steps."""

    def intercept(self) -> float: ...
    def state(self) -> bytes:
        """Return weights, intercept, and predictions as updated by the steps."""

    def restore(self, state: bytes) -> None: ...
    def begin(self, with_intercept: bool) -> float:
        """
        Start Newton steps from zero weights and the best intercept; return the objective.
        """

    def improve(self, goal: float) -> float:
        """
        Make Newton steps on a working set; return the duality gap. The goal is the gap to
        reach.
        """

    def gap(self) -> float:
        """Return the duality gap, as of the last begin or improve."""

    def value(self) -> float:
        """Return the objective, as of the last begin or improve."""

    def nonzeros(self) -> int: ...
    def newton_state(self) -> bytes:
        """Return the state between two calls of improve."""

    def restore_newton(self, state: bytes, with_intercept: bool) -> None: ...

class Stage:
    """The state of the stabilized rule at the end of a stage."""

    @property
    def number(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def gravity(self) -> float: ...
    @property
    def beta(self) -> float: ...
    @property
    def d(self) -> float: ...
    @property
    def stable(self) -> int: ...
    @property
    def burst(self) -> int: ...
    @property
    def loss_sum(self) -> float: ...
    @property
    def weight_sum(self) -> float: ...

class StabilizedLearner:
    """Several paths that learn in stages."""

    def learn(
        self,
        batch: Batch,
        passes: int,
        tol: float,
        jobs: int,
        on_stage: Callable,
        between_stages: Callable | None = None,
        resume: bytes | None = None,
    ) -> None:
        """
        Make stages until every path has made `passes` passes. on_stage(stage) is called at
        stages 1 to 64, 128, 256, ...; learning ends when it returns False.
        between_stages(state) is called between stages: a call with the same rows and
        arguments, with the bytes of state() as `resume`, continues with the same bits. With
        between_stages, on_stage also gets a stage of number 0 every 0.1 s, also within a
        stage: it may raise an error.
        """

    def weights(
        self,
    ) -> tuple[
        Annotated[NDArray[numpy.uint64], dict(shape=(None,))],
        Annotated[NDArray[numpy.float64], dict(shape=(None,))],
    ]: ...
    def intercept(self) -> float: ...
    def findings(
        self,
    ) -> tuple[
        Annotated[NDArray[numpy.uint64], dict(shape=(None,))],
        Annotated[NDArray[numpy.float64], dict(shape=(None,))],
        Annotated[NDArray[numpy.int64], dict(shape=(None,))],
        Annotated[NDArray[numpy.int64], dict(shape=(None,))],
    ]:
        """
        Return the features seen, and for each its selection probability, number of updates
        and stage of purge.
        """

    def label_z(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """
        Return z of feature and label for each feature of `findings`; empty if the variant does
        not record it, NaN if the state is of version 0.1.0.
        """

    def has_signal(self) -> bool:
        """Return False if no model was better than the intercept alone."""

    def state(self) -> bytes: ...
    def restore(self, state: bytes) -> None: ...

def make_stabilized(
    variant: str, dtype: str, width: int, numbers: Mapping[str, float], words: Mapping[str, str]
) -> StabilizedLearner: ...
def path_order(
    seed: int, path: int, number: int, rows: int
) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
    """The order of the rows for a path of the stabilized rule."""

class PaperPart:
    """The rows of a part, and its paths of the published rule."""

    def add(self, batch: Batch) -> None:
        """Copy more rows."""

    @property
    def rows(self) -> int: ...
    def documents(
        self,
    ) -> tuple[
        Annotated[NDArray[numpy.uint32], dict(shape=(None,))],
        list[Annotated[NDArray[numpy.uint32], dict(shape=(None,))]],
    ]:
        """Return the features, and the number of rows that have each."""

    def stage(
        self,
        stage: int,
        burst: int,
        gravity: float,
        beta: float,
        low: float,
        high: float,
        most: int,
    ) -> tuple[int, int, int, Annotated[NDArray[numpy.float64], dict(shape=(None,))], float, float]:
        """
        Make a stage. Return the number of ratios, of those below `low`, and of those in
        low..high; the latter themselves if there are at most `most`; and the sums of losses
        and of weights.
        """

    def counts(
        self,
    ) -> tuple[
        Annotated[NDArray[numpy.uint32], dict(shape=(None,))],
        list[Annotated[NDArray[numpy.uint32], dict(shape=(None,))]],
    ]:
        """
        Return the features that the stage saw, and b, kb and k of each; reset these counts.
        """

    def histogram(
        self, first: int, shift: int
    ) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Count the ratios of the stage by their bits, from `first` on."""

    def values(
        self, first: int, shift: int
    ) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Return the ratios in the first bin of such a histogram."""

    def freeze(
        self,
        keys: Annotated[
            NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """Purge features from all paths."""

    def sums(
        self,
    ) -> tuple[
        Annotated[NDArray[numpy.uint32], dict(shape=(None,))],
        Annotated[NDArray[numpy.float64], dict(shape=(None,))],
    ]:
        """Return features, and the sums of their weights over the paths."""

    def state(self) -> bytes: ...
    def restore(self, state: bytes) -> None: ...

def make_paper_part(
    dtype: str,
    width: int,
    first: int,
    paths: int,
    threads: int,
    numbers: Mapping[str, float],
    words: Mapping[str, str],
) -> PaperPart:
    """
    Make a part with `paths` paths, from number `first` on, that uses `threads` threads.
    """

class PaperRange:
    """The evidence of a range of features."""

    def __init__(self, width: int, keep: float, min_updates: float) -> None: ...
    def see(
        self,
        keys: Annotated[
            NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> int:
        """Mark features as seen; return how many are new."""

    def add(
        self,
        stage: int,
        keys: Annotated[
            NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        b: Annotated[
            NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        kb: Annotated[
            NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        k: Annotated[
            NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """Add counts of a stage."""

    def evaluate(
        self,
        stage: int,
        keys: Annotated[
            NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> Annotated[NDArray[numpy.uint32], dict(shape=(None,))]:
        """Evaluate features of a stage; return those purged now."""

    def findings(
        self,
    ) -> tuple[
        Annotated[NDArray[numpy.uint64], dict(shape=(None,))],
        Annotated[NDArray[numpy.float64], dict(shape=(None,))],
        Annotated[NDArray[numpy.int64], dict(shape=(None,))],
        Annotated[NDArray[numpy.int64], dict(shape=(None,))],
    ]:
        """
        Return the features seen, and for each its selection probability, number of updates
        and stage of purge.
        """

    def state(self) -> bytes: ...
    def restore(self, state: bytes) -> None: ...

def sum_counts(
    keys: Annotated[
        NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    columns: Sequence[
        Annotated[
            NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ]
    ],
    others: Annotated[
        NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    their_columns: Sequence[
        Annotated[
            NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ]
    ],
) -> tuple[
    Annotated[NDArray[numpy.uint32], dict(shape=(None,))],
    list[Annotated[NDArray[numpy.uint32], dict(shape=(None,))]],
]:
    """Add two lists of counts, each sorted by feature."""

def rejection_rate(d: float, beta0: float, gamma: float) -> float:
    """The rejection rate if a share d of the features is stable."""

def burst_size(burst: int, growth: float, d: float) -> int:
    """The number of steps of a burst if a share d of the features is stable."""

def quantile_rank(beta: float, count: int) -> int:
    """The rank, from 0, of the beta-quantile among `count` numbers."""

class PathSums:
    """The results of paths, summed in the order of the paths."""

    def arrays(
        self,
    ) -> tuple[
        Annotated[NDArray[numpy.float64], dict(shape=(None,))],
        Annotated[NDArray[numpy.float64], dict(shape=(None,))],
        Annotated[NDArray[numpy.uint32], dict(shape=(None,))],
        Annotated[NDArray[numpy.uint32], dict(shape=(None,))],
        Annotated[NDArray[numpy.int64], dict(shape=(None,))],
    ]:
        """
        Return z, w, plus, minus and updates of each feature that is left. Can be called once.
        """

    @property
    def bias(self) -> float: ...
    @property
    def loss(self) -> float: ...
    @property
    def weight(self) -> float: ...
    @property
    def rows(self) -> int: ...

class RobustPart:
    """The rows of a part, and its paths of the robust rule."""

    def add(self, batch: Batch) -> None:
        """Copy a block of rows."""

    def end(
        self,
    ) -> tuple[
        Annotated[NDArray[numpy.uint64], dict(shape=(None,))],
        Annotated[NDArray[numpy.int64], dict(shape=(None,))],
        Annotated[NDArray[numpy.int64], dict(shape=(None,))],
        Annotated[NDArray[numpy.float64], dict(shape=(None,))],
        Annotated[NDArray[numpy.float64], dict(shape=(None,))],
    ]:
        """
        After the last rows: return the features and, for each, the number of rows of weight
        above 0 that have it, the number of rows of any weight, the sum of squares, and three
        sums of its relation to the label.
        """

    @property
    def rows(self) -> int:
        """Rows of weight above 0."""

    @property
    def norms(self) -> float:
        """Sum of their squared norms times weights."""

    @property
    def totals(self) -> tuple[float, float, float]:
        """
        Sums of their weights, of the squares of these, and of the weights of positive rows.
        """

    def sizes(self, norm: float, features: int, jobs: int) -> SizeTable:
        """
        Measure the losses of models with different numbers of features, by the other half.
        """

    def retain(
        self,
        keys: Annotated[
            NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """Remove all features except these, given in increasing order."""

    def drop(
        self,
        keys: Annotated[
            NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """Remove these features, given in increasing order."""

    def features(self) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,))]:
        """Return the features that are left."""

    def halves(self, stage: int, norm: float, bias: float, jobs: int) -> PathSums:
        """
        Return the evidence of a stage. `norm` is the mean squared norm of the rows of all parts,
        with their weights.
        """

    @property
    def refit_steps(self) -> int:
        """The least number of steps of a path of `whole`."""

    def whole(
        self,
        stage: int,
        norm: float,
        passes: int,
        start: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        bias: float,
        strength: float,
        weight: float,
        jobs: int,
    ) -> PathSums:
        """
        Learn the weights of the features that are left, from `start` (empty: 0) and a bias.
        `strength` is that of the l2 (0: none), `weight` the sum of the weights of all rows.
        """

class SizeTable:
    """Losses on the other half, by number of features."""

    def __init__(self) -> None: ...
    def add(self, other: SizeTable) -> None:
        """Add the losses of other rows."""

    @property
    def sizes(self) -> list[int]: ...
    @property
    def means(self) -> list[float]: ...
    def error(self, a: int, b: int) -> float:
        """
        Standard error of the difference of the means of two sizes, by their positions.
        """

    def chosen(self, features: int) -> tuple[int, float]:
        """
        Return the number of features to keep, at most `features` (0: there is no signal), and
        the strength of the l2 of the refit (0: none).
        """

    def __getstate__(
        self,
    ) -> tuple[
        list[int], float, float, float, list[float], list[float], list[float], float, list[float]
    ]: ...
    def __setstate__(
        self,
        arg: tuple[
            Sequence[int],
            float,
            float,
            float,
            Sequence[float],
            Sequence[float],
            Sequence[float],
            float,
            Sequence[float],
        ],
        /,
    ) -> None: ...

class RobustRange:
    """Features of the robust rule, and their judgement."""

    def __init__(self) -> None: ...
    def count(
        self,
        keys: Annotated[
            NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        rows: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        documents: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        squares: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        sums: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        paths: int,
    ) -> None:
        """Add the counts of a part with `paths` paths."""

    def admit(self, least_rows: float) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,))]:
        """Admit features that at least `least_rows` rows have, and return them."""

    @property
    def left(self) -> int:
        """Number of features that are left."""

    def add(
        self,
        keys: Annotated[
            NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        z: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        w: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        plus: Annotated[
            NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        minus: Annotated[
            NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        updates: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """Add the results of a part in a stage."""

    def add_weights(
        self,
        keys: Annotated[
            NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        w: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        updates: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """Add the results of a part in the refit."""

    def judge(self, rows: float, keep: float) -> int:
        """
        Judge all features; `rows` is the number of all rows. Return how many may stay.
        """

    def histogram(
        self, tied: int, prefix: int, shift: int, bits: int
    ) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """
        Count the ranks that start with the bits `prefix`, by their next bits. If `tied` is not
        0, do so for the complements of the keys that have this rank.
        """

    def purge(
        self, stage: int, rank: int, last: int
    ) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,))]:
        """
        Purge the features below a rank, and those of that rank with keys above `last`; return
        them.
        """

    def set_weights(self) -> None:
        """Set the weights to the means of what was added."""

    def weights(
        self,
    ) -> tuple[
        Annotated[NDArray[numpy.uint64], dict(shape=(None,))],
        Annotated[NDArray[numpy.float64], dict(shape=(None,))],
    ]: ...
    def findings(
        self, totals: tuple[float, float, float]
    ) -> tuple[
        Annotated[NDArray[numpy.uint64], dict(shape=(None,))],
        Annotated[NDArray[numpy.float64], dict(shape=(None,))],
        Annotated[NDArray[numpy.int64], dict(shape=(None,))],
        Annotated[NDArray[numpy.int64], dict(shape=(None,))],
        Annotated[NDArray[numpy.int64], dict(shape=(None,))],
        Annotated[NDArray[numpy.float64], dict(shape=(None,))],
    ]:
        """
        Return the features seen, and for each its selection probability, number of updates,
        stage of purge, number of documents, and z of feature and label. `totals` are those of
        all parts.
        """

    def state(self) -> dict:
        """Return the state between two stages: arrays by name."""

    def restore(self, state: dict) -> None: ...

def make_robust_part(
    dtype: str,
    width: int,
    numbers: Mapping[str, float],
    words: Mapping[str, str],
    first: int,
    count: int,
) -> RobustPart: ...
def robust_target(asked: float, rows: float, judged: float) -> int:
    """The number of features that the robust rule keeps."""

def log_odds(positive: float, weight: float, rows: float) -> float:
    """
    The log-odds of a share of positive rows, finite also for rows of one class.
    """

def robust_size_after(features: int, target: int, rejection: float) -> int:
    """The number of features that stay after a stage."""

def standardise(
    states: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    labels: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    sds: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    units: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    targets: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    weights: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ]
    | None,
    order: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ]
    | None,
    first: int,
    last: int,
    seen: Annotated[
        NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ]
    | None,
    centred: bool,
    counts: bool,
    degree: int,
) -> int:
    """
    Standardise the targets of order[first:last] by running means and standard deviations.

    states: for each clock weight, mean, sd, rows, and sd after 1000 rows; they are changed.
    labels, sds, units: rows x clocks; receive y' = (y - mean) / sd, sd, and sd^degree.
    Return the position after the last row done.
    """

@overload
def two_values(
    values: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
) -> tuple[int, int, int] | None: ...
@overload
def two_values(
    values: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
) -> tuple[float, float, int] | None:
    """
    Return the smallest and the largest value, and how often the largest one occurs.

    None: there are other values, NaN, or no values.
    """

@overload
def two_targets(
    labels: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    first: int,
    second: int,
    low: float,
) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))] | None: ...
@overload
def two_targets(
    labels: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    first: float,
    second: float,
    low: float,
) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))] | None:
    """
    Return 1 for each label that is `second`, and `low` for each that is `first`.

    None: there are other labels.
    """

@overload
def class_runs(
    codes: Annotated[
        NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    classes: int,
) -> tuple: ...
@overload
def class_runs(
    codes: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    classes: int,
) -> tuple:
    """
    Return the runs of equal codes, which are below `classes`.

    For each code its rows, its longest run, and where that begins; the number of runs; the
    lengths of the first and of the last run.
    """
