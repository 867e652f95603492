"""Run the notebooks of this folder, and write their outputs into them.

    python docs/notebooks/make.py [NAME...]

Neither Jupyter nor a kernel is needed: cells are plain Python, and run in this process. The outputs
are what a notebook would show: printed text, the value of the last expression, and pictures.
"""

import ast
import base64
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path

import matplotlib as mpl

FOLDER = Path(__file__).resolve().parent


def run(notebook):
    """Return the outputs of each code cell of a notebook; it runs in an empty folder."""
    names, outputs = {"__name__": "__main__"}, []
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for cell in notebook["cells"]:
                if cell["cell_type"] == "code":
                    outputs.append(_run_cell("".join(cell["source"]), names, len(outputs) + 1))
        finally:
            os.chdir(before)
    return outputs


def _run_cell(source, names, number):
    """Return the outputs of a cell in the form of a notebook."""
    from matplotlib import pyplot as plt

    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) and not source.endswith(";") else None
    place, printed, value = f"cell {number}", io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), place, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), place, "eval"), names)
    found = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        found.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        result = {"data": data, "metadata": {}, "output_type": "execute_result"}
        found.append({**result, "execution_count": number})
    for figure in plt.get_fignums():
        picture = io.BytesIO()
        plt.figure(figure).savefig(picture, dpi=80, metadata={"Software": None})
        text = base64.b64encode(picture.getvalue()).decode()
        data = {"image/png": text, "text/plain": ["<Figure>"]}
        found.append({"data": data, "metadata": {}, "output_type": "display_data"})
    plt.close("all")
    return found


def main(names):
    """Run the notebooks, all by default, and write them."""
    mpl.use("Agg")
    for path in sorted(FOLDER.glob("*.ipynb")):
        if names and path.stem not in names:
            continue
        notebook = json.loads(path.read_text())
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        for number, (cell, outputs) in enumerate(zip(cells, run(notebook), strict=True), 1):
            cell.update(execution_count=number, outputs=outputs)
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
        print(path.relative_to(FOLDER.parents[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
