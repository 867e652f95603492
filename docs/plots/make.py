"""Draw the plots of docs/plots.md by running the code of the page.

    python docs/plots/make.py

Each plot that the page shows is saved under its name, as the code before it drew it last.
"""

import doctest
import re
from pathlib import Path

import matplotlib as mpl

FOLDER = Path(__file__).resolve().parent
PICTURE = re.compile(r"!\[[^]]*\]\(plots/(\S+\.png)\)")


def main() -> None:
    """Run the code of the page and save its plots."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    code, names = doctest.DocTestParser(), {}
    pieces = PICTURE.split((FOLDER.parent / "plots.md").read_text())
    for text, picture in zip(pieces[:-1:2], pieces[1::2], strict=True):
        for example in code.get_examples(text):
            exec(compile(example.source, "docs/plots.md", "exec"), names)
        plt.gcf().savefig(FOLDER / picture, dpi=100, metadata={"Software": None})
        plt.close("all")
        print(f"docs/plots/{picture}")


if __name__ == "__main__":
    main()
