"""The data sets of the papers, read from files in one folder.

The folder is the argument `folder`, or by default the environment variable ``THRESHER_DATA``.
Files may be plain or compressed (``.xz``, ``.bz2``, ``.gz``); those of the UCI repository may be
in a subfolder ``uci``. Parsed sets are cached in the folder of the environment variable
``THRESHER_CACHE``, by default ``thresher-datasets-N`` in the system's temporary folder, where N is
the number of the user. Other users cannot read it.

======================================  ===================================================
``ad`` ``crx`` ``housing`` ``krvskp``   UCI tables, named and split in the sizes of Langford,
``magic04`` ``mushroom`` ``spambase``   Li, Zhang (2008); ``ad.data`` and so on
``wbc`` ``wdbc`` ``wpbc`` ``zoo``
``big_ads``                             their set is private; any ``big_ads_train.*`` and
                                        ``big_ads_test.*`` that `thresher.scan` reads; use
                                        `sources`
``comp_vs_rec`` ``comp_vs_sci``         pairs of newsgroups of ``20news-bydate.tar``;
``comp_vs_talk`` ``rec_vs_talk``        ``split="random"``: the sizes of Xie et al. (2010)
``sci_vs_rec`` ``sci_vs_talk``
``news20``                              all 20 newsgroups
``rcv1``                                ``rcv1_train.binary`` and ``rcv1_test.binary``
``rcv1_train``                          ``rcv1_train.binary`` 70/30, as in Ma, Zheng (2017)
``webspam``                             ``webspam_wc_normalized_trigram.svm``
``dexter`` ``dexter_scaled``            NIPS 2003; ``gisette_scale`` and ``gisette_scale.t``,
``dorothea`` ``gisette`` ``arcene``     others as ``dexter_train.svm``, ``dexter_valid.svm``
``a9a`` ``agaricus`` ``basehock``       not in a paper
``pcmac`` ``relathe`` ``rcv1_small``
======================================  ===================================================

Notes
-----
* No constant feature is added to any set.
* ``dexter_scaled`` is as published: the columns of each half were scaled separately.
* Newsgroup messages are used with their headers. The words and the idf come from the training
  folder of the by-date split. Training rows are shuffled once with a fixed seed because the
  folders are sorted by class.
* Newsgroups with ``split="random"``: words are sequences of letters. English stop words are left
  out, and so are words in fewer than 6 of all 18,846 messages, or in no message of the task. For
  example, 22,551 words of ``comp_vs_rec`` remain, where the paper has 21,317; the six tasks are
  within 6 % of the paper. The idf comes from the training rows.
* UCI sets: identifiers are dropped, and so is the follow-up time of ``wpbc``, which is known only
  together with the outcome. Categories are one-hot over the whole file, so that the width does
  not depend on the split. A missing value, numeric or categorical, has no entry in the row.
  Numbers are scaled to [0, 1] over the training rows; test values may be outside.
"""

from __future__ import annotations

from thresher.datasets.loading import Dataset, load, names, sources, verify

__all__ = ["Dataset", "load", "names", "sources", "verify"]
