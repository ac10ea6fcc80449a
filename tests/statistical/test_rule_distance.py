"""The numbers in docs/rules.md are the ones that its command prints."""

from pathlib import Path

from core.requests import Rule
from tests.benchmark.rule_distance import RULES, distances, table

RULES_PAGE = Path(__file__).resolve().parents[2] / "docs" / "rules.md"


def test_the_page_shows_the_measured_distances():
    assert table() in RULES_PAGE.read_text(encoding="utf-8")


def test_every_rule_is_measured_and_only_the_lossy_ones_stray():
    assert {name.split()[0].rstrip(",") for name, _ in RULES} == {str(rule) for rule in Rule}
    for name, rule in RULES:
        farthest = max(distances(rule))
        assert (farthest > 0.01) == ("lossy" in name) == Rule(name.split()[0]).lossy
        assert farthest > 0.01 or farthest < 1e-9


def test_the_page_describes_every_rule():
    words = RULES_PAGE.read_text(encoding="utf-8")
    for rule in Rule:
        assert f"\n**{rule}** " in words
