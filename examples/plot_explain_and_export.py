"""
Explain a prediction, and predict in a database
===============================================

A sparse linear model is a short list of weights. So each prediction is a short sum, and other
programs can compute it.
"""

# %%
# Clients of a bank
# -----------------
# Words become features; numbers are standardised while they are read, and the weights are converted
# back. So the model takes the table as it is.
import sqlite3

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from thresher import FTRLClassifier, scan

rng = np.random.default_rng(0)
clients = pd.DataFrame(
    {
        "age": rng.uniform(20, 70, 3000).round(),
        "income": rng.lognormal(1, 0.5, 3000).round(2),
        "job": rng.choice(["clerk", "cook", "none"], 3000),
        "home": rng.choice(["own", "rent"], 3000),
    }
)
score = clients["income"] - 2.5 + (clients["home"] == "own") - 1.5 * (clients["job"] == "none")
pays = np.where(score + rng.logistic(size=3000) > 0, "yes", "no")
rows = scan((clients, pays), scale="standard")
model = FTRLClassifier(store="hashed", random_state=0).fit(rows).model_
print(model.explain(clients.iloc[0]))

# %%
# The sum of one prediction
# -------------------------
# The intercept, and what each feature of the client adds. The last bar is the score.
why = model.explain(clients.iloc[0])
terms = [("intercept", why.intercept), *((one.name, one.contribution) for one in why.contributions)]
ends = np.cumsum([value for _, value in terms])
_, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
for place, ((_, value), end) in enumerate(zip(terms, ends, strict=True)):
    ax.barh(place, value, left=end - value, color="#0072b2" if value > 0 else "#d55e00")
ax.barh(len(terms), why.score, color="#000000")
ax.set_yticks(range(len(terms) + 1), [*(name for name, _ in terms), "score"])
ax.invert_yaxis()
ax.use_sticky_edges = False  # leave a margin beside the longest bar
ax.margins(x=0.03)
ax.axvline(0, color="#8a94a0", linewidth=0.8)
ax.set(xlabel=f"score of '{why.label}'")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The same scores in SQL
# ----------------------
database = sqlite3.connect(":memory:")
clients.to_sql("clients", database, index=False)
query = model.to_sql("sqlite", table="clients")
found = pd.read_sql(query, database)
apart = np.abs(found["predicted_score"].to_numpy() - model.decision_function(clients)).max()
print(query[:200], "...")
print(f"{len(found):,} rows; scores differ by at most {apart:.0e}")
_, ax = plt.subplots(figsize=(4.6, 4), layout="constrained")
ax.plot(model.decision_function(clients), found["predicted_score"], ".", color="#0072b2", alpha=0.3)
ax.set(xlabel="score of Thresher", ylabel="score of SQLite")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
