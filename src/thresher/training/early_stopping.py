"""Early stopping: ends training when the loss of the passes no longer improves."""

from __future__ import annotations

from thresher.training.outputs import Outputs


class EarlyStopping:
    """Compares the losses of passes, and may keep the states of the best pass.

    Parameters
    ----------
    tol : float or None
        A pass improves if its loss is lower than the best by more than this; None: never stop.
    patience : int
        Number of passes in a row without improvement after which training stops.

    Attributes
    ----------
    best_loss : float
    best_pass : int
        Number of the pass with the lowest loss; 0: none yet.
    states : list of bytes
        States of the outputs after the best pass; empty if they are not kept.
    stale : int
        Number of passes in a row without improvement.
    """

    def __init__(self, tol: float | None, patience: int) -> None:
        self.tol, self.patience = tol, patience
        self.best_loss, self.best_pass, self.stale = float("inf"), 0, 0
        self.states: list[bytes] = []

    def stops_after(self, number: int, loss: float, kept: Outputs | None) -> bool:
        """Return whether to stop after a pass.

        Parameters
        ----------
        number : int
            Number of the pass, from 1.
        loss : float
            Loss of the pass.
        kept : Outputs or None
            Outputs whose states are kept if the pass is the best so far; None: keep none.
        """
        if self.tol is None:
            return False
        self.stale = 0 if loss < self.best_loss - self.tol else self.stale + 1
        if loss < self.best_loss:
            self.best_loss, self.best_pass = loss, number
            if kept is not None:
                self.states = kept.states()
        return self.stale >= self.patience
