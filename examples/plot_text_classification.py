"""
Texts and the words that tell them apart
========================================

A classifier of three topics with at most 12 words for each topic. Its words can be read, and they
are the words that were used to make the texts.
"""

# %%
# The texts
# ---------
# Each text has a few words of its topic, one word of any topic, and many common words.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from thresher import FTRLClassifier

WORDS = {
    "astronomy": "orbit moon telescope comet rocket planet launch star",
    "cooking": "oven flour butter onion recipe simmer garlic pan",
    "sailing": "mast anchor harbour tide keel rope wind deck",
}
COMMON = "the a of and to in we it was with for on that when more then after some very day"

rng = np.random.default_rng(0)
every = " ".join(WORDS.values()).split()
topics = rng.choice(list(WORDS), 900)
texts = []
for topic in topics:
    of_topic = rng.choice(WORDS[topic].split(), rng.poisson(3))
    texts.append(" ".join([*of_topic, rng.choice(every), *rng.choice(COMMON.split(), 17)]))
train, test, train_topics, test_topics = train_test_split(texts, topics, random_state=0)
print(f"{train_topics[0]}: {train[0]}")

# %%
# The model
# ---------
# tf-idf gives sparse rows of unit norm. ``target_nnz`` is the largest number of weights of a class;
# after the last pass, the kept words are learned again without a penalty.
words = TfidfVectorizer(sublinear_tf=True)
classifier = make_pipeline(words, FTRLClassifier(target_nnz=12, random_state=0))
classifier.fit(train, train_topics)
accuracy = classifier.score(test, test_topics)
model = classifier[-1].model_
print(f"accuracy on {len(test)} other texts: {accuracy:.3f}, with {model.nnz} weights")

# %%
# The words of each topic
# -----------------------
# Bars to the right speak for the topic. A word that speaks against it belongs to another one.
names = words.get_feature_names_out()
found = {topic: model.top(12, label=topic, names=names) for topic in WORDS}
_, panels = plt.subplots(1, 3, figsize=(9, 3.6), layout="constrained", sharex=True)
for ax, (topic, features) in zip(panels, found.items(), strict=True):
    features = sorted(features, key=lambda feature: feature.weight)
    weights = [feature.weight for feature in features]
    colours = ["#0072b2" if weight > 0 else "#d55e00" for weight in weights]
    ax.barh([feature.name for feature in features], weights, color=colours)
    ax.axvline(0, color="#8a94a0", linewidth=0.8)
    ax.set(title=topic, xlabel="weight")
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
