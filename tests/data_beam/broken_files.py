"""Damaged copies of good files, for property tests."""

from hypothesis import strategies as st


@st.composite
def broken(draw: st.DrawFn, good: bytes) -> bytes:
    """A file cut anywhere, with up to 8 of its bytes changed."""
    content = bytearray(good)
    for _ in range(draw(st.integers(0, 8)) if good else 0):
        content[draw(st.integers(0, len(good) - 1))] = draw(st.integers(0, 255))
    return bytes(content[:draw(st.one_of(st.just(len(good)), st.integers(0, len(good))))])
