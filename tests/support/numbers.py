"""Numbers as text, of all sizes and lengths."""

from hypothesis import strategies as st

NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(repr),
    st.floats(-1e30, 1e30).map(lambda x: f"{x:.17e}"),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(0, 10**9).map(str),
    st.integers(2**53, 10**19 - 1).map(lambda m: f"{m // 10**18}.{m % 10**18:018}"),
    # halfway between two doubles, and next to it
    st.integers(2**52, 2**53 - 1).map(lambda m: f"{(2 * m + 1) * 5 // 10}.5"),
    st.integers(2**52, 2**53 - 1).map(lambda m: f"{(2 * m + 1) * 5 // 10}.49999999999999999999"),
    st.tuples(st.integers(0, 99), st.integers(0, 10**17)).map(lambda t: f"{t[0]}.{t[1]}"),
    st.sampled_from(["1", "1", "0.5", "+1", "-0", ".5", "5.", "1e-400", "0.1e+5", "123456789.25"]),
)
