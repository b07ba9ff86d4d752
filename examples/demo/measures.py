# SPDX-License-Identifier: Apache-2.0
"""Word errors, and the samples and quantiles of a page of /metrics."""

import math
import re

SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')


def spoken(text):
    """Returns the text as LibriVox's references are written: words in lower case, without punctuation."""
    text = re.sub(r"\bmr\b\.?", "mister", text.lower())
    return " ".join(re.findall(r"[\w']+", text))


def word_errors(reference, recognised):
    """Returns the least number of inserted, deleted and replaced words between the texts."""
    recognised = recognised.split()
    row = list(range(len(recognised) + 1))
    for i, word in enumerate(reference.split(), 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(recognised, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (word != other))
    return row[-1]


class Metrics:
    """The samples of a page in Prometheus' text format."""

    def __init__(self, page):
        self._samples = []
        for line in page.splitlines():
            match = SAMPLE.match(line)
            if match:
                name, labels, value = match.groups()
                self._samples.append((name, dict(LABEL.findall(labels or "")), float(value)))

    def _matching(self, name, wanted):
        for sample, labels, value in self._samples:
            if sample == name and wanted.items() <= labels.items():
                yield labels, value

    def sum(self, name, **labels):
        """Returns the sum of all series of that name with these labels."""
        return sum(value for _, value in self._matching(name, labels))

    def buckets(self, name, **labels):
        """Returns the buckets of a histogram, summed over its series, ascending: (upper bound, values up to it)."""
        counts = {}
        for found, value in self._matching(name + "_bucket", labels):
            bound = float(found["le"])
            counts[bound] = counts.get(bound, 0) + value
        return sorted(counts.items())


def quantile(q, buckets):
    """Returns a quantile like PromQL's histogram_quantile: linear within a bucket. Above the last finite bound it is
    this bound, and without values it is NaN."""
    if not buckets or buckets[-1][1] == 0:
        return math.nan
    rank = q * buckets[-1][1]
    lower, below = 0.0, 0.0
    for upper, count in buckets:
        if count >= rank:
            if math.isinf(upper):
                return lower
            return lower + (upper - lower) * (rank - below) / (count - below)
        lower, below = upper, count
    return lower
