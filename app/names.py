"""What the window calls drafters and acceptance rules: one name for each, wherever it is shown."""

from collections.abc import Mapping
from types import MappingProxyType

from core.requests import DrafterKind, Rule

DRAFTER_NAMES: Mapping[str, str] = MappingProxyType(
    {
        DrafterKind.HYBRID: "hybrid",
        DrafterKind.MODEL: "draft model",
        DrafterKind.NGRAM: "n-gram",
        DrafterKind.MTP: "MTP head",
        DrafterKind.EARLY_EXIT: "early exit",
        DrafterKind.OFF: "plain decoding",
    }
)
RULE_NAMES: Mapping[str, str] = MappingProxyType(
    {
        Rule.EXACT: "exact",
        Rule.BLOCK: "block",
        Rule.TARGET_PROB: "target probability",
        Rule.TYPICAL: "typical",
        Rule.ENSEMBLE: "ensemble",
    }
)
HEAD_DRAFTERS = frozenset({DrafterKind.MTP, DrafterKind.HYBRID})
"""Those that draft with a trained head where there is one."""


def drafter_name(kind: str) -> str:
    """Return a drafter's name inside a sentence; an unknown one as it is."""
    return DRAFTER_NAMES.get(kind, kind)


def source_name(source: str) -> str:
    """Return the name of a source of drafts: a drafter, or n-gram matches of one length."""
    kind, _, length = source.partition("-")
    if kind == DrafterKind.NGRAM and length:
        return f"{drafter_name(kind)} of {length}"
    return drafter_name(source)


def head_name(head: str) -> str:
    """Return the name of a head without the host that the engine names after it."""
    return head.rpartition(" on ")[0] or head


def titled(name: str) -> str:
    """Return a name as it begins a line."""
    return name[:1].upper() + name[1:]
