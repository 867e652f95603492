"""`FeatureDiscovery`: which features matter, with a stated share of false ones."""

from __future__ import annotations

from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight

from thresher.atomic import all_or_nothing
from thresher.data import is_source
from thresher.data.frame_parts import words_as_source
from thresher.data.labels import Labels
from thresher.data.matrix_source import MatrixSource
from thresher.data.read_options import Stopped
from thresher.data.scaled import refuse_scaled
from thresher.data.source import Source
from thresher.discovery import checkpointing, inputs
from thresher.discovery.centring import CentredRows
from thresher.discovery.decision import Decision, Options
from thresher.discovery.evidence import Evidence
from thresher.discovery.predictions import RefittedPredictions
from thresher.discovery.readings import Readings
from thresher.discovery.results import DiscoveryResults, DiscoveryWarning
from thresher.errors import ParameterError
from thresher.progress.verbose import shown
from thresher.threads import threads_of
from thresher.training.observer import Observer
from thresher.training.run_options import RunOptions


def _streams(self: FeatureDiscovery) -> bool:
    if self.form not in ("auto", "stream"):
        raise AttributeError(f"partial_fit is a stream: form={self.form!r} cannot be used")
    return True


class FeatureDiscovery(DiscoveryResults, RefittedPredictions, SelectorMixin, BaseEstimator):
    """Select the features that matter, with a stated share or number of false ones.

    A feature matters if the label depends on it beyond what the other features of the row explain.
    The evidence is measured on rows that the model has not learned, and is calibrated with labels
    that are redrawn from the model: ``fdr=0.1`` means that about 10 % of the selected features are
    expected to have no effect. If there is no signal, usually nothing is selected.

    In a crossfit, columns of an array whose mean is larger than their standard deviation are
    centred first. Weights of rows are used in units of their mean.

    This is approximately true if rows are independent and a linear model captures what the other
    features do. It is not a statement about causes, and not a guarantee for a single data set.
    `checks_` says what was found to violate it, and a warning says so, too.

    Parameters
    ----------
    fdr : float, default=0.1
        Expected share of false features among those selected, unless `expected_false` is given.
    expected_false : float, optional
        Expected number of false features.
    form : {"auto", "crossfit", "stream", "joint"}, default="auto"
        "crossfit": the model of each fold learns the other folds; rows in memory, or a source that
        can be read twice. "stream": each row is predicted before it is learned; one reading.
        "joint": a crossfit whose selected features are then fitted together; those with a weight
        less than two standard errors from 0 are dropped one after the other, as they stand in for
        others. "auto": "crossfit" if the rows can be read twice, else "stream".
    task : {"auto", "classification", "regression"}, default="auto"
        What the labels are.
    refit : bool, default=False
        Fit a model of the selected features, for `predict` and the weights in `findings`. It needs
        one more reading of a source.
    feature_groups : array of shape (features,), or "namespace", optional
        Select whole groups of features: the group of each column. "namespace": groups are the
        namespaces of a source with named features. Not with ``form="joint"``.
    shuffle : bool or "auto", default="auto"
        Whether a source is held in memory and read in random order, so that it does not matter if
        it is sorted. "auto": in a crossfit, if its files have at most 256 MB (compressed or
        Parquet: 32 MB). The order does not depend on `random_state`.
        Rows in memory are always shuffled in a crossfit.
    folds : int, default=5
        Number of folds of a crossfit.
    redraws : int, default=20
        How often labels are redrawn. The least expected number of false features that can be
        distinguished from 0 is 1 / redraws.
    dtype : {"float32", "float64"}, default="float32"
        Number type of the models and of the sums of redraws.
    n_jobs : int, optional
        Number of threads; -1: all processors. The result does not depend on it.
    memory_limit : int, optional
        Bytes for the models of all folds, 2 GiB by default. If they need more, folds are learned
        one after the other, each with a reading of its own; so they are also if it is given, and
        the number of features is not known before a source is read (a source without `bits`).
    random_state : int, RandomState or None
        Decides folds, redraws, and the order of rows in memory.
    verbose : int, default=0
        1: print progress to standard error.

    Attributes
    ----------
    selected_ : array of int
        Selected columns, increasing. For a source whose features have names, their keys.
    z_ : array of shape (n_features_in_,)
        Evidence of each feature, with the sign of its effect; 0 for a column of zeros. With more
        than two classes, that of the class with the largest absolute z. For a source whose features
        have names, all arrays have the order of `features_`.
    qvalues_, pvalues_ : array of shape (n_features_in_,)
        Expected share of false features among those at least as strong; and p-values against
        redraws of features that are about as frequent.
    expected_false_ : float
        Expected number of false features among those selected. With ``form="joint"``, it and
        `qvalues_` are those before stand-ins are dropped.
    features_ : array of uint64
        The features that occurred.
    selected_groups_ : array
        Selected groups, with `feature_groups`.
    checks_ : list of thresher.discovery.Check
        What was checked, with numbers.
    classes_ : array
        Labels of a classification.
    model_ : thresher.Model
        Model of the selected features, with ``refit=True``.
    n_rows_ : int
    n_features_in_ : int

    See Also
    --------
    thresher.StabilitySelection : Selects features by the agreement of many fits.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import FeatureDiscovery
    >>> rng = np.random.default_rng(2)
    >>> X = rng.normal(size=(2000, 300))
    >>> y = X[:, 3] - X[:, 7] + rng.logistic(size=2000) > 0
    >>> discovery = FeatureDiscovery(fdr=0.1, random_state=0).fit(X, y)
    >>> discovery.selected_.tolist()
    [3, 7]
    >>> discovery.transform(X).shape
    (2000, 2)
    >>> FeatureDiscovery(random_state=0).fit(X, rng.permutation(y)).selected_.tolist()
    []
    """

    _readings: Readings | None
    verbose = 0  # of discoveries pickled before it existed

    def __init__(
        self,
        fdr: float = 0.1,
        *,
        expected_false: float | None = None,
        form: str = "auto",
        task: str = "auto",
        refit: bool = False,
        feature_groups: Any = None,
        shuffle: bool | str = "auto",
        folds: int = 5,
        redraws: int = 20,
        dtype: str = "float32",
        n_jobs: int | None = None,
        memory_limit: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.fdr = fdr
        self.expected_false = expected_false
        self.form = form
        self.task = task
        self.refit = refit
        self.feature_groups = feature_groups
        self.shuffle = shuffle
        self.folds = folds
        self.redraws = redraws
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.verbose = verbose

    # ---- fitting -------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        classes: Any = None,
        observer: Observer | None = None,
        checkpoint: str | PathLike[str] | None = None,
        every: float = 60.0,
        resume: bool = False,
    ) -> Self:
        """Measure the evidence of all features, and select.

        If it fails or is interrupted, no attribute changes.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        y : array of shape (rows,)
            Labels; None for a source, which contains its labels.
        sample_weight : array of shape (rows,), optional
            Weights of the rows.
        groups : array of shape (rows,), optional
            Rows of one group are always in the same fold, and share the random number of a redraw:
            copies of an observation, or rows of one person; for a crossfit of rows in memory.
        classes : array, optional
            All labels of a source. By default the source is read once more to find them, unless
            its first block has both labels -1 and 1, or both 0 and 1.
        observer : thresher.Observer, optional
            Receives progress, and may stop the run.
        checkpoint : path, optional
            File to write the state of the run to.
        every : float
            Seconds between two checkpoints.
        resume : bool
            Continue from the checkpoint, to the same result; if there is none, start from the
            beginning.

        Returns
        -------
        self
        """
        run = RunOptions.of(observer, checkpoint, every, resume)
        with all_or_nothing(self), shown(run, self.verbose) as run:
            source, labels, of_rows = self._input(X, y, sample_weight, groups, classes)
            plan = inputs.plan_of(self, source, labels)
            source = inputs.shuffled_source(self, source, plan)
            jobs = threads_of(self.n_jobs, self._owner)
            readings = Readings(plan, labels, jobs, self.memory_limit)
            readings.seeded = self.random_state is not None
            readings.run(source, run, of_rows)
            readings.checks.refuse_one_class(labels.classes)
            try:
                self._finish(readings, source, run.observer, run.checkpoint is not None)
            except Stopped:  # while rows were read again
                checkpointing.interrupt(readings, source, run)
        return self

    @available_if(_streams)
    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, classes: Any = None
    ) -> Self:
        """Add the evidence of more rows of a stream; see ``form="stream"``.

        Checks that fail give no warning here: look at `checks_` after the last rows. No rows are
        kept, so there is no model: ``refit=True`` has no effect, and a warning says so.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (rows, features)
        y : array of shape (rows,)
        sample_weight : array of shape (rows,), optional
        classes : array, optional
            All labels, in the first call; by default those of the first rows.

        Returns
        -------
        self
        """
        if is_source(X):
            raise ParameterError("partial_fit takes rows; fit takes a source", owner=self._owner)
        with all_or_nothing(self):
            readings = self.__dict__.get("_readings")
            first = readings is None
            X, y, weights = self._rows(X, y, sample_weight, reset=first, least=1)
            source = MatrixSource(X, y, weights)
            if readings is None:
                labels = inputs.labels_of_rows(self, y, classes)
                plan = inputs.plan_of(self, source, labels, form="stream")
                readings = Readings(plan, labels, threads_of(self.n_jobs, self._owner))
            readings.partial(source)
            observer = Observer()
            if first and self.refit:
                observer.warn(f"{self._owner}: partial_fit keeps no rows, so refit=True is ignored")
            self._finish(readings, None, observer)
        return self

    # ---- input ---------------------------------------------------------------------------------

    @property
    def _owner(self) -> str:
        return type(self).__name__

    def _input(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, classes: Any
    ) -> tuple[Source | MatrixSource, Labels, NDArray[np.int64] | None]:
        """Check the arguments of fit; return a source, its labels, and the group of each row."""
        given = {"sample_weight": sample_weight, "groups": groups}
        X, y = words_as_source(X, y, given, self._owner)
        sample_weight, groups = given.get("sample_weight"), given.get("groups")
        if is_source(X):
            if y is not None or sample_weight is not None or groups is not None:
                raise ParameterError(
                    "a source has its own labels and weights; give only X", owner=self._owner
                )
            refuse_scaled(X, self._owner, "the evidence does not depend on the scale of columns")
            if X.multilabel:
                raise ParameterError("rows must have one label each", owner=self._owner)
            self.__dict__.pop("feature_names_in_", None)
            return X, inputs.labels_of_source(self, X, classes), None
        X, y, weights = self._rows(X, y, sample_weight, reset=True)
        labels = inputs.labels_of_rows(self, y, classes)
        source = (MatrixSource if self.form == "stream" else CentredRows)(X, y, weights)
        of_rows = None if groups is None else inputs.groups_of_rows(self, groups, X.shape[0])
        return source, labels, of_rows

    def _rows(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool, least: int = 2
    ) -> tuple[Any, Any, Any]:
        X, y = inputs.validated(
            self,
            X,
            y,
            reset=reset,
            accept_sparse="csr",
            accept_large_sparse=True,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_min_samples=least,
            y_numeric=self.task == "regression",
        )
        if y.dtype.kind == "O":
            y = np.array(y.tolist())
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
        return X, y, weights

    # ---- results -------------------------------------------------------------------------------

    def _finish(
        self,
        readings: Readings,
        source: Source | MatrixSource | None,
        observer: Observer,
        keeps: bool = True,
    ) -> None:
        evidence, streams = readings.evidence(), readings.plan.form == "stream"
        if not streams and not keeps:  # a checkpoint of an interrupted decision needs the state
            readings.cores = []  # the memory is needed for the decision
        self.take(evidence, source, observer)
        self._readings = readings if streams else None

    def take(
        self,
        evidence: Evidence,
        source: Source | MatrixSource | None = None,
        observer: Observer | None = None,
    ) -> Self:
        """Select features by evidence that was measured elsewhere, for example in parts.

        Parameters
        ----------
        evidence : thresher.discovery.Evidence
        source : Source or MatrixSource, optional
            The rows, for names of features and for a joint fit.
        observer : Observer, optional
            Receives warnings.
        """
        observer = observer or Observer()
        self.__dict__.pop("classes_", None)
        if evidence.labels.classes is not None:
            self.classes_ = evidence.labels.classes
        self.n_features_in_, self.n_rows_ = evidence.width, evidence.rows
        options = Options(
            fdr=float(self.fdr),
            expected_false=self.expected_false,
            joint=self.form == "joint",
            refit=bool(self.refit),
            groups=self.feature_groups,
        )
        decision = Decision(evidence, options)
        if source is not None:
            decision.conclude(source, observer)
            for check in decision.checks:
                if not check.fine:
                    observer.warn(f"{self._owner}: {check}", DiscoveryWarning)
        self._decision, self._readings = decision, None
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        if self.refit and self.task == "regression":
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        elif self.refit:
            tags.estimator_type = "classifier" if self.task == "classification" else None
            tags.classifier_tags = ClassifierTags()
        return tags
