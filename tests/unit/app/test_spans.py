"""The spans of a reply's tokens, packed for the disk."""

from hypothesis import given
from hypothesis import strategies as st

from app.records import TokenSpan
from app.storage.spans import pack_spans, unpack_spans

spans_strategy = st.lists(
    st.builds(
        TokenSpan,
        length=st.integers(0, 70_000),
        origin=st.sampled_from(["accepted", "resampled", "bonus", "plain", "ünknown"]),
        token_id=st.integers(0, 2**40),
        target_prob=st.floats(0, 1),
        draft_prob=st.none() | st.floats(0, 1),
    ),
    max_size=40,
)


@given(spans_strategy)
def test_packed_spans_come_back_exactly(spans: list[TokenSpan]) -> None:
    assert unpack_spans(pack_spans(spans)) == tuple(spans)


def test_spans_of_single_precision_take_fourteen_bytes_a_token() -> None:
    spans = [TokenSpan(4, "accepted", number, 0.5, 0.25) for number in range(100_000, 104_000)]
    assert len(pack_spans(spans)) < 4000 * 14 + 200
