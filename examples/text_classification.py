"""Find the words that distinguish topics: a sparse text classifier, 20 weights per topic.

    python examples/text_classification.py
    python examples/text_classification.py FOLDER            # one subfolder of texts per topic
    python examples/text_classification.py 20news-bydate.tar.xz sci.space rec.autos

The first command generates short texts. The others read yours; topics after a folder or a tar file,
such as that of the 20 newsgroups, select some of its topics.
"""

import argparse
import tarfile
from pathlib import Path, PurePosixPath

import numpy as np
from sklearn.datasets import load_files
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


def made_up(count=900, seed=0):
    """Make texts of about 20 words: a few of the topic, one of any topic, and common ones."""
    rng = np.random.default_rng(seed)
    topics = rng.choice(list(WORDS), count)
    every = " ".join(WORDS.values()).split()
    texts = []
    for topic in topics:
        of_topic = rng.choice(WORDS[topic].split(), rng.poisson(3))
        texts.append(" ".join([*of_topic, *rng.choice(every, 1), *rng.choice(COMMON.split(), 17)]))
    return texts, topics


def read(path, topics):
    """Return texts and their topics, which are the names of their folders."""
    if path.is_dir():
        found = load_files(path, categories=topics or None, encoding="latin-1")
        return found.data, np.array(found.target_names)[found.target]
    texts, labels = [], []
    with tarfile.open(path) as tar:
        for member in tar:
            label = PurePosixPath(member.name).parent.name
            if member.isfile() and (not topics or label in topics):
                texts.append(tar.extractfile(member).read().decode("latin-1"))
                labels.append(label)
    return texts, np.array(labels)


parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("path", nargs="?", type=Path, help="a folder of folders, or a tar file")
parser.add_argument("topics", nargs="*", help="topics to use; default: all")
options = parser.parse_args()
texts, topics = read(options.path, options.topics) if options.path else made_up()
if len(set(topics)) < 2:
    parser.error(f"{options.path}: there must be texts of at least two topics")
train, test, y_train, y_test = train_test_split(texts, topics, stratify=topics, random_state=0)

# tf-idf gives sparse rows of unit norm, which suit Thresher well.
words = TfidfVectorizer(min_df=2, sublinear_tf=True)
classifier = make_pipeline(words, FTRLClassifier(target_nnz=20, random_state=0))
classifier.fit(train, y_train)

model, names = classifier[-1].model_, words.get_feature_names_out()
print(f"{len(train)} texts, {len(names)} words, {len(classifier.classes_)} topics")
print(f"accuracy on {len(test)} other texts: {classifier.score(test, y_test):.3f}")
print(f"{model.nnz} nonzero weights\n")
for number, topic in enumerate(classifier.classes_):
    label = topic if len(classifier.classes_) > 2 else None
    sign = -1 if label is None and number == 0 else 1  # of two topics, negative means the first
    best = [word for word in model.top(20, label=label, names=names) if sign * word.weight > 0]
    print(f"{topic}: {', '.join(word.name for word in best[:10])}")
