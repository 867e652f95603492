"""The result of `thresher discover`: files, and the printed table."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from thresher.atomic import write_whole, written_together
from thresher.cli.options.parsed import DiscoverOptions
from thresher.cli.render.output import show, show_lines
from thresher.cli.render.texts import duration
from thresher.cli.render.warning_sink import say
from thresher.cli.steps.final_warnings import warn_of_bad_lines
from thresher.data.source import Source
from thresher.discovery import FeatureDiscovery
from thresher.discovery.joint_fit import MOST
from thresher.discovery.page import page_of
from thresher.discovery.summary import legend, outcome, selected_groups, shown_findings, table_of
from thresher.errors import ParameterError
from thresher.printable import printable
from thresher.report.search_results import text_table

_SHOWN = 30  # lines of the printed table, if --top is not given


class DiscoveryResult:
    """What a discovery found.

    Parameters
    ----------
    discovery : FeatureDiscovery
        Fitted.
    source : Source
    options : DiscoverOptions
    seconds : float
    """

    def __init__(
        self, discovery: FeatureDiscovery, source: Source, options: DiscoverOptions, seconds: float
    ) -> None:
        self.discovery, self.source, self.options = discovery, source, options
        self.seconds = seconds
        self.sentences = [self._sentence(word) for word in options.why]

    def _sentence(self, word: str) -> str:
        if self.source.named:
            return self.discovery.why(word)
        first = self.source.first
        try:
            text = self.discovery.why(int(word) - first)
        except ParameterError:
            count = len(self.discovery.decision_.keys)
            return f"{word}: no row has a nonzero value of it. {count:,} features occur."
        return word + text[text.index(":") :]  # the number in the file

    def write(self) -> None:
        """Write all files: all of them, or none if one cannot be written.

        If too many features are selected to fit a model, all files but the model are written.
        """
        found, options = self.discovery, self.options
        contents: list[tuple[str | None, Callable[[], str]]] = [
            (options.html, lambda: page_of(found, self._title(), self._how())),
            (options.json, lambda: found.to_json(n=options.top)),
            (options.csv, lambda: found.to_csv(n=options.top)),
        ]
        with written_together():
            for path, content in contents:
                if path is not None:
                    write_whole(path, content().encode())
            if options.model is not None and not self.lacks_model:
                found.model_.save(options.model)

    @property
    def lacks_model(self) -> bool:
        """Whether a model is wanted, but too many features are selected to fit one."""
        return self.options.model is not None and self.discovery.decision_.model is None

    def _title(self) -> str:
        return f"Features that matter: {self.source}"

    def _how(self) -> dict[str, Any]:
        return {
            "data": str(self.source),
            "command": shlex.join(["thresher", *self.options.command]),
            "time": f"{self.seconds:.1f} s",
        }

    def warn(self) -> None:
        """Warn of bad lines and of checks that failed."""
        warn_of_bad_lines(self.source)
        for check in self.discovery.decision_.checks:
            if not check.fine:
                hint = ""
                if check.name == "order of labels" and not self.options.shuffle:
                    hint = "; --shuffle reads the rows in random order"
                say(f"{check}{hint}")

    def report(self) -> None:
        """Print the table, what was selected and what was checked."""
        decision, options = self.discovery.decision_, self.options
        if not options.quiet:
            self._table()
            show(outcome(self.discovery))
            for result, title in (("fine", "checked, and fine"), ("not checked", "not checked")):
                found = [check for check in decision.checks if check.result == result]
                if found:
                    show()
                    show(f"{title}:")
                    width = max(len(check.name) for check in found)
                    for c in found:
                        show(f"  {c.name:<{width}}  {c.message}")
            show()
            show(self._run())
        if self.lacks_model:
            show(
                f"no model is written to {options.model}: {len(self.discovery.selected_):,} "
                f"features are selected, and at most {MOST:,} can be fitted together; use a "
                f"smaller --fdr",
                error=True,
            )
        for sentence in self.sentences:
            if not options.quiet:
                show()
            show_lines(sentence)
        if not options.quiet:
            self._files()

    def _table(self) -> None:
        decision, options = self.discovery.decision_, self.options
        groups = selected_groups(self.discovery)
        if groups:
            lines = [
                [f"{g['features']:,}", f"{g['strength']:.1f}", f"{g['q']:.2g}", str(g["group"])]
                for g in groups
            ]
            show_lines(text_table(["features", "strength", "q", "group"], lines[:_SHOWN]))
            self._more(lines)
            show()
        found = shown_findings(self.discovery, options.top)
        if not found or (groups and options.top is None):
            return
        classes = decision.classes
        several = classes is not None and len(classes) > 2
        shown = found[: options.top or _SHOWN]
        show_lines(table_of(shown, several))
        if options.top is None:
            self._more(found)
        show_lines(textwrap.fill(printable(legend(self.discovery, shown)), 100) + "\n")

    def _more(self, lines: Sequence[Any]) -> None:
        if len(lines) > _SHOWN:
            show(f"... and {len(lines) - _SHOWN:,} more; --csv FILE writes all")

    def _run(self) -> str:
        decision = self.discovery.decision_
        form = {
            "stream": "stream: one reading",
            "crossfit": f"crossfit with {decision.plan.folds} folds",
            "joint": f"crossfit with {decision.plan.folds} folds, then one joint fit",
        }[decision.form]
        return f"{self.discovery.n_rows_:,} rows; {form}; {duration(self.seconds)}"

    def _files(self) -> None:
        words = {"--html": "page", "--json": "JSON", "--csv": "CSV", "--model": "model"}
        for option, path in self.options.results.items():
            if path is not None and not (option == "--model" and self.lacks_model):
                show(f"{words[option]} -> {path}")
