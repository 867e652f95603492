"""`thresher export`: write a model in a form that other programs read."""

from __future__ import annotations

import os

from thresher.atomic import write_whole
from thresher.cli.render.output import is_shown, show, show_lines, write_result
from thresher.cli.steps.check_outputs import check_outputs
from thresher.errors import ParameterError, setting
from thresher.model.model import Model, load

FORMATS = ("onnx", "sql", "json", "csv", "vw")


def export(
    file: str,
    to: str | None,
    output: str | None,
    dialect: str | None,
    table: str | None,
    inputs: str | None,
) -> int:
    """Write the model as the options say; return the exit code."""
    target = None if output == "-" else output
    form = _form(to, target)
    for option, value, needed in (
        ("dialect", dialect, "sql"), ("table", table, "sql"), ("inputs", inputs, "onnx"),
    ):  # fmt: skip
        if value is not None and form != needed:
            raise ParameterError((setting(option), " needs ", setting("to", needed)))
    if form == "onnx" and target is None:
        raise ParameterError((setting("to", "onnx"), " needs a file: ", setting("output")))
    check_outputs({"--output": target}, {"MODEL": file})
    model = load(file)
    if form == "onnx":
        assert target is not None
        model.to_onnx(target, inputs=inputs or "auto")
    else:
        _write(_text(model, form, dialect, table), target)
    if target is not None:
        show(f"{form} -> {target}", error=True)
    return 0


def _form(to: str | None, output: str | None) -> str:
    """Return the format that is given, else that of the name of the file."""
    found = os.path.splitext(output or "")[1].removeprefix(".").lower() if to is None else to
    if to is None and found not in FORMATS:
        raise ParameterError(
            ("give ", setting("to"), f", one of {', '.join(FORMATS)}, or a file with such an end")
        )
    if found not in FORMATS:
        raise ParameterError(parameter="to", value=to, allowed=f"one of {', '.join(FORMATS)}")
    return found


def _text(model: Model, form: str, dialect: str | None, table: str | None) -> str:
    if form == "sql":
        return model.to_sql(dialect or "sqlite", table=table) + "\n"
    text: str = {"json": model.to_json, "csv": model.to_csv, "vw": model.to_vw}[form]()
    return text


def _write(text: str, output: str | None) -> None:
    content = text.encode("utf-8", "surrogateescape")
    if output is not None:
        write_whole(output, content)
    elif is_shown():
        show_lines(text.removesuffix("\n"))
    else:
        write_result(content)
