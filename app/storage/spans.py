"""Token spans as a compact blob: about 14 bytes a token, exact."""

import json
import math
import sys
from array import array
from collections.abc import Sequence
from typing import Any

from app.records import TokenSpan

_NARROW_INTEGERS = (("B", 2**8), ("H", 2**16), ("I", 2**32), ("Q", 2**64))


def pack_spans(spans: Sequence[TokenSpan]) -> bytes:
    """Return the spans column by column, each in the narrowest type that holds it exactly.

    A JSON line (count, origins, type codes) comes first, then little-endian arrays: length,
    origin, token id, target and draft probability (NaN for none).
    """
    if not spans:
        return b""
    origins = sorted({span.origin for span in spans})
    index = {origin: position for position, origin in enumerate(origins)}
    columns = (
        _integers([span.length for span in spans]),
        _integers([index[span.origin] for span in spans]),
        _integers([span.token_id for span in spans]),
        _reals([span.target_prob for span in spans]),
        _reals([math.nan if span.draft_prob is None else span.draft_prob for span in spans]),
    )
    codes = "".join(column.typecode for column in columns)
    header = json.dumps({"count": len(spans), "origins": origins, "codes": codes})
    return b"\n".join((header.encode(), b"".join(_little_endian(c) for c in columns)))


def unpack_spans(blob: bytes) -> tuple[TokenSpan, ...]:
    """Return what :func:`pack_spans` was given."""
    if not blob:
        return ()
    start = blob.index(b"\n")
    header = json.loads(blob[:start])
    start += 1
    columns: list[list[Any]] = []
    for code in header["codes"]:
        column = array(code)
        end = start + header["count"] * column.itemsize
        column.frombytes(blob[start:end])
        if sys.byteorder == "big":
            column.byteswap()
        columns.append(column.tolist())
        start = end
    lengths, origin_indices, token_ids, target_probs, draft_probs = columns
    origins = header["origins"]
    return tuple(
        map(
            TokenSpan,
            lengths,
            [origins[position] for position in origin_indices],
            token_ids,
            target_probs,
            [None if math.isnan(prob) else prob for prob in draft_probs],
        )
    )


def _integers(values: list[int]) -> "array[int]":
    largest = max(values)
    return array(next(code for code, limit in _NARROW_INTEGERS if largest < limit), values)


def _reals(values: list[float]) -> "array[float]":
    # Probabilities come from single-precision tensors, so four bytes usually lose nothing.
    narrow = array("f", values)
    exact = all(a == b or math.isnan(a) for a, b in zip(narrow, values, strict=True))
    return narrow if exact else array("d", values)


def _little_endian(column: "array[int] | array[float]") -> bytes:
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()
