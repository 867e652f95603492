"""Areas of the table of speeds as source text, with lines that need no data."""

GOOD = """
from speed.line import Line, Skipped, Timed

def lines(full):
    size = "large" if full else "small"
    yield Line(f"fit of {size} rows", lambda: Timed(1.0, 0.5), lambda: Timed(4.5, 0.5),
               "a peer 1.0", 4.5, check=lambda ours, peer: f"losses {ours} and {peer}")
    yield Line("fit in units of the loop", lambda: Timed(0.002), lambda: Timed(0.001),
               "the loop", 1.5, unit=True)
    yield Line("a sum", lambda: sum(range(10**5)), lambda: sum(range(10**5)), "the same", 0.0)
    yield Skipped("fit against nobody", "nobody is not installed")
"""
MISSING = """
import a_peer_that_nobody_has

def lines(full):
    yield from ()
"""
BROKEN = """
from speed.line import Line

def worse(ours, peer):
    assert ours <= peer, f"loss {ours} is above {peer}"
    return ""

def lines(full):
    yield Line("fit that is wrong", lambda: 0.7, lambda: 0.5, "a peer", 1.0, check=worse)
    yield Line("fit that ends", lambda: 1 / 0, lambda: 0.5, "a peer", 1.0)
    yield Line("fit that works", lambda: 0.5, lambda: 0.5, "a peer", 0.0, check=worse)
    raise OSError("no file of rows")
"""
