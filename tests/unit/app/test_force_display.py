"""How often, and where, the window renews what it says is in force."""

from unittest.mock import Mock

from app.controllers.force import speculation_for
from app.controllers.force_display import GAMMA_INTERVAL_S, ForceDisplay
from app.controllers.views import ModelViews
from app.settings import Settings
from core.events import DrafterOption, Loaded

LOADED = Loaded(
    target="tiny",
    draft=None,
    device="cpu",
    precision="int8",
    context_limit=2048,
    drafters=(DrafterOption(kind="ngram", available=True),),
)


class Bench:
    def __init__(self, settings: Settings) -> None:
        self.now = 10.0
        self.views = ModelViews(*(Mock() for _ in range(5)))
        self.display = ForceDisplay(self.views, lambda: self.now)
        self.display.begin()
        self.display.show("Pair", settings, speculation_for(settings, LOADED), LOADED)

    def drafted(self, *lengths: int, apart_s: float) -> list[str]:
        for length in lengths:
            self.display.drafted(length)
            self.now += apart_s
        return [call.args[0].gamma for call in self.views.header.set_in_force.call_args_list]


def test_lengths_that_change_with_every_round_are_shown_at_a_readable_pace() -> None:
    bench = Bench(Settings(drafter="ngram"))
    shown = bench.drafted(4, 2, 0, 3, 5, apart_s=GAMMA_INTERVAL_S / 2)
    assert shown == ["automatic", "automatic (4 now)", "automatic (0 now)", "automatic (5 now)"]


def test_a_length_that_stays_renews_nothing() -> None:
    bench = Bench(Settings(drafter="ngram"))
    assert len(bench.drafted(4, 4, 4, apart_s=1.0)) == 2


def test_a_fixed_gamma_is_not_followed() -> None:
    assert Bench(Settings(drafter="ngram", gamma=3)).drafted(1, 2, apart_s=1.0) == ["3"]


def test_a_draft_that_broke_off_is_told_in_place_of_a_length() -> None:
    bench = Bench(Settings(drafter="ngram"))
    bench.display.break_off("the draft model ran out of memory")
    assert bench.drafted(4, apart_s=1.0)[-1] == "0"
    bench.views.status.set_speculation.assert_called_with(
        "Speculation is off because the draft model ran out of memory", False
    )
