"""Functions that run `thresher train` and read what it prints."""

import json

from support.files import called


def trained(folder, data, *options, name="model.thresher", stdin=b""):
    """Train a model on a file of the folder; return the path of the model and the output."""
    model = folder / name
    data = "-" if data == "-" else folder / data
    return model, called("train", data, "-m", model, *options, stdin=stdin)


def lines(done):
    """Return the lines of standard output."""
    return done.stdout.splitlines()


def events(done):
    """Return the JSON objects of standard output."""
    return [json.loads(line) for line in lines(done)]
