"""Explain a prediction, see what changed since yesterday's model, and predict in a database.

    python examples/explain_and_export.py
    python examples/explain_and_export.py TABLE.csv LABEL     # your table, and its label column

Writes changes.html, predictions.sql and, if the package onnx is installed, model.onnx.
"""

import argparse
import pathlib
import sqlite3

import numpy as np
import pandas as pd

from thresher import FTRLClassifier, scan


def made_up(rows=4000):
    """Draw clients of a bank: the label is whether they pay back. Some cells are missing."""
    rng = np.random.default_rng(0)
    age, income = rng.uniform(20, 70, rows).round(), rng.lognormal(1, 0.5, rows).round(2)
    job, home = rng.choice(["clerk", "cook", "none"], rows), rng.choice(["own", "rent"], rows)
    score = income - 2.5 + (home == "own") - 1.5 * (job == "none") + rng.normal(0, 1, rows)
    table = pd.DataFrame({"age": age, "income": income, "job": job, "home": home})
    table.loc[rng.random(rows) < 0.1, "income"] = np.nan
    table["pays"] = np.where(score > 0, "yes", "no")
    return table, "pays"


parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("table", nargs="*", metavar="TABLE", help="a CSV file and its label column")
given = parser.parse_args().table
if len(given) not in (0, 2):
    parser.error("give a CSV file and the name of its label column, or nothing")
table, label = (pd.read_csv(given[0]), given[1]) if given else made_up()
features, labels = table.drop(columns=label), table[label].astype(str)


def learned(first):
    """Learn the first rows; words and missing cells are features by their names."""
    rows = scan((features[:first], labels[:first]), missing="indicator", scale="standard")
    return FTRLClassifier(store="hashed", passes=5, random_state=0).fit(rows).model_


today, yesterday = learned(len(table)), learned(len(table) // 2)
print("the first row:")
print(today.explain(features.iloc[0]), "\n")

changes = today.compare_to(yesterday)
changes.report("changes.html", ["yesterday", "today"])
print(f"{len(changes.came)} features came, {len(changes.went)} went, {len(changes.turned)} changed")
print("sign since yesterday; changes.html shows all of them\n")

database = sqlite3.connect(":memory:")
features.to_sql("clients", database, index=False)
query = today.to_sql("sqlite", table="clients")
pathlib.Path("predictions.sql").write_text(query)
found = pd.read_sql(query, database)
same = (found["predicted_label"].to_numpy() == today.predict(features)).mean()
apart = np.abs(found["predicted_score"].to_numpy() - today.decision_function(features)).max()
print(
    f"SQLite: {same:.0%} of {len(found):,} labels are equal, scores differ by at most {apart:.0e}"
)

try:
    today.to_onnx("model.onnx")
    print("ONNX: the model is in model.onnx")
except ValueError as error:  # the package onnx is missing
    print(f"no ONNX: {error}")
