"""Newton steps of coordinate descent: working sets until the duality gap is small."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from thresher import _core
from thresher.estimators.solvers import MatrixEstimator
from thresher.threads import threads_of
from thresher.training import certifying
from thresher.training.solver_run import SolverRun, State
from thresher.training.target_scale import TargetScale

AUTO_TOL = 1e-4  # tol="auto": the duality gap, as a share of the objective without features
_LEAST = 1e-13  # a smaller share is within rounding errors


class NewtonSteps(MatrixEstimator):
    """Base of coordinate descent: its Newton steps."""

    violation_: NDArray[np.float64]
    duality_gap_: NDArray[np.float64]

    def _newton(
        self,
        solvers: Sequence[_core.CoordinateDescent],
        solving: SolverRun,
        evaluation: Any,
        scale: TargetScale | None,
    ) -> dict[str, Any]:
        """Make Newton steps until the gaps of all outputs are small.

        Sets `duality_gap_` and `violation_`. Returns further attributes of the model.
        """
        tol = AUTO_TOL if self.tol == "auto" else self.tol
        with ExitStack() as stack:
            run = _runner(min(threads_of(getattr(self, "n_jobs", None)), len(solvers)), stack)
            starts = run(lambda k: solvers[k].begin(self.fit_intercept), range(len(solvers)))
            goals = [-1.0 if tol is None else max(tol, _LEAST) * start for start in starts]
            active = [k for k, solver in enumerate(solvers) if solver.gap() > goals[k]]
            if solving.resumed is not None:
                about, states = solving.resumed
                active = about["going"]
                for solver, saved in zip(solvers, states, strict=True):
                    solver.restore_newton(saved, self.fit_intercept)

            def state() -> State:
                return {"going": active}, [solver.newton_state() for solver in solvers]

            for scan in range(len(solving.history) + 1, self.passes + 1):
                run(lambda k: solvers[k].improve(goals[k]), active)
                active = [k for k in active if not solvers[k].gap() <= goals[k]]
                shown = evaluation is not None
                self._record(
                    solving, evaluation, float(np.mean([s.value() for s in solvers])), 0.0,
                    [solver.weights() for solver in solvers] if shown else (),
                    [solver.intercept() for solver in solvers] if shown else (), scale,
                    nonzeros=sum(solver.nonzeros() for solver in solvers),
                    duality_gap=float(np.mean([solver.gap() for solver in solvers])),
                )  # fmt: skip
                if solving.stopped or not active:
                    break
                if scan < self.passes:
                    solving.checkpoint_if_due(state)
            violations = run(lambda k: solvers[k].violation(self.fit_intercept), range(len(goals)))
        unit = 1.0 if scale is None else scale.unit
        slope = 1.0 if scale is None or scale.sd == 0 else scale.unit / scale.sd  # the user's unit
        self.violation_ = slope * np.array(violations)
        self.duality_gap_ = unit * np.array([solver.gap() for solver in solvers])
        if tol and active and not solving.stopped:
            worst = max(active, key=lambda k: solvers[k].gap())
            solving.observer.warn(
                f"{type(self).__name__}: after {self.passes} scans the duality gap is "
                f"{unit * solvers[worst].gap():.3g}, and tol allows {unit * goals[worst]:.3g}; use "
                f"more passes, or a larger tol",
                ConvergenceWarning,
            )
        values = [(unit * solver.value(), unit * solver.gap()) for solver in solvers]
        found = [(certifying.optimum(*each),) for each in values]
        return {"certificates": certifying.labelled(found, getattr(self, "classes_", None))}


def _runner(threads: int, stack: ExitStack) -> Callable[[Callable[[int], Any], Iterable[int]], Any]:
    """Return a function that calls a function for each output, in threads if there are several."""
    if threads <= 1:
        return lambda call, outputs: [call(k) for k in outputs]
    pool = stack.enter_context(ThreadPoolExecutor(threads))
    return lambda call, outputs: list(pool.map(call, outputs))
