"""Hooks of truncated gradient: certificates of its regret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from thresher.certificates import Certificate
from thresher.training import certifying
from thresher.training.hooks import Hooks
from thresher.training.outputs import Outputs

if TYPE_CHECKING:
    from thresher.training.trainer import Trainer


def make_hooks(params: Mapping[str, Any], mean: Any = None) -> Hooks:
    """Return the hooks of a rule with the parameter `certify`."""
    return RegretCertificates() if params["certify"] else Hooks()


class RegretCertificates(Hooks):
    """Computes certificates of the regret after training."""

    found: Sequence[tuple[Certificate, Certificate]] = ()  # one pair per output

    def is_idle(self) -> bool:
        """Return False: each row changes the certificates."""
        return False

    def conclude(self, trainer: Trainer, first: bool, complete: bool) -> None:
        """Certify the regret of each output."""
        params, self.found = trainer.plan.params, []
        if params["certify"]:
            self.found = certifying.regret(trainer, params, first)

    def kept(self) -> Any:
        """Return the certificates."""
        return certifying.as_json(self.found)

    def revive(self, kept: Any, outputs: Outputs) -> None:
        """Take the certificates."""
        self.found = certifying.from_json(kept, len(outputs))

    def extras(self, outputs: Outputs, params: Mapping[str, Any], classes: Any) -> dict[str, Any]:
        """Return the certificates."""
        if not self.found:
            return {}
        return {"certificates": certifying.labelled(self.found, classes)}
