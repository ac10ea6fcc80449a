"""How many tokens to draft: as asked, or as many as pay for themselves.

The automatic controller maximises tokens per second, not acceptance. A token is drafted where the
chance that it stands is worth its time: S_k / (t_d + V(k + 1) - V(k)) > lambda, where S_k is
the chance that all of the first k stand, t_d a token's drafting time, V(rows) the measured time
of a verification, and lambda the tokens per millisecond at present: halfway between those of all
rounds and those of rounds of the same source, as what follows is in part more of the same.
"""

from collections.abc import Mapping
from typing import Protocol

from core.decoding.gamma_records import Rate, Source, VerifyTimes
from core.drafting.base import Draft
from core.events import GammaBelief
from core.requests import MAX_GAMMA

_NAMELESS = ""
_PROBE_GAMMA = 3


class GammaController(Protocol):
    """Chooses draft lengths and learns from what came of them.

    A source names a kind of proposal with statistics of its own, such as a draft model or an
    n-gram match of some length.
    """

    is_automatic: bool
    """Whether lengths are chosen here, so that what was drafted is what was asked for."""

    def begin(self) -> None:
        """Begin a reply: its text may be easier or harder to draft than the last one's."""

    def next(self) -> int:
        """Begin a round and return the longest draft that any source may make."""

    def limit(self, source: str) -> int:
        """Return the longest draft that this source should make now; 0 tells it to decline."""

    def worth_judging(self, source: str, survival: float, drafted: int) -> bool:
        """Return whether verifying one more token pays, whose distribution is at hand.

        ``survival`` is the chance that it and the ``drafted`` ones before it all stand.
        """

    def worth_drafting(self, source: str, survival: float, drafted: int) -> bool:
        """Return whether one more draft step pays, after ``drafted`` tokens that may all stand."""

    def acceptance(self, source: str, confidence: float) -> float:
        """Return the chance that a token stands whose distribution peaks at ``confidence``."""

    def observe(self, draft: Draft, accepted: int, draft_ms: float, verify_ms: float) -> None:
        """Learn the outcome of a round; ``draft`` is cut to what was judged."""

    def belief(self) -> GammaBelief | None:
        """Return what the last choice went by, None where nothing is believed."""


class FixedGamma:
    """The same draft length every round, for every source."""

    is_automatic = False

    def __init__(self, gamma: int) -> None:
        self._gamma = gamma

    def begin(self) -> None:
        """Do nothing: the length is fixed."""

    def next(self) -> int:
        """Return the fixed draft length."""
        return self._gamma

    def limit(self, source: str) -> int:
        """Return the fixed draft length."""
        return self._gamma

    def worth_judging(self, source: str, survival: float, drafted: int) -> bool:
        """Return True: the length is fixed."""
        return True

    def worth_drafting(self, source: str, survival: float, drafted: int) -> bool:
        """Return True: the length is fixed."""
        return True

    def acceptance(self, source: str, confidence: float) -> float:
        """Return 1: nothing is learnt."""
        return 1.0

    def observe(self, draft: Draft, accepted: int, draft_ms: float, verify_ms: float) -> None:
        """Ignore the outcome: the length is fixed."""

    def belief(self) -> GammaBelief | None:
        """Return None: the length is fixed."""
        return None


class AutoGamma:
    """The length that makes the most tokens per second, 0 included; lives as long as the pair.

    Times carry over from reply to reply, as the pair does not change, and a part of what was
    accepted and of the speed that a draft must beat, as the text does; that speed is at least plain
    decoding's. A source that knows how sure it is of each token (a draft model) goes on while
    that pays; of others (n-gram matches) it asks for the length of most value. One that is off is
    tried again for three rounds after 16, then 32, 64 and 128.
    """

    is_automatic = True

    def __init__(self) -> None:
        self._verify = VerifyTimes()
        self._sources: dict[str, Source] = {}
        self._rate = Rate()
        self._rounds = 0
        self._last: str | None = None

    def seed(self, verify_ms: Mapping[int, float], step_ms: Mapping[str, float]) -> None:
        """Begin with measured times: of a verification by rows, and of a draft step by source.

        Rounds refine them from there on.
        """
        self._verify.seed(verify_ms)
        for name, time_ms in step_ms.items():
            self._source(name).seed(time_ms)

    def begin(self) -> None:
        """Begin a reply: doubt its forerunner's speed, and what was made of drafting."""
        self._rate.begin()
        for source in self._sources.values():
            source.begin()

    def next(self) -> int:
        """Begin a round: every source is asked for its own limit.

        The pair's first round is a plain one, as its time is what all others are compared with.
        Proposals that name no source come from a drafter that does not ask, so theirs holds here.
        """
        self._rounds += 1
        if not self._verify.is_known(1):
            return 0
        return self.limit(_NAMELESS) if _NAMELESS in self._sources else MAX_GAMMA

    def limit(self, source: str) -> int:
        """Return the draft length of most value, or a probe where that is long overdue."""
        known = self._source(source)
        best = self._best(known)
        if best == 0 and known.trial(self._rounds):
            return MAX_GAMMA if known.is_confident else _PROBE_GAMMA
        # What a step costs shows in the first draft only.
        return best if known.is_measured else min(best, _PROBE_GAMMA)

    def worth_judging(self, source: str, survival: float, drafted: int) -> bool:
        """Return whether the chance to stand is worth the time of one more row."""
        return survival > self._worth(self._source(source)) * self._verify.added_ms(drafted + 1)

    def worth_drafting(self, source: str, survival: float, drafted: int) -> bool:
        """Return whether the chance to stand is worth a draft step and one more row."""
        known = self._source(source)
        cost_ms = known.step_ms + self._verify.added_ms(drafted + 1)
        return survival * known.mean_acceptance() > self._worth(known) * cost_ms

    def acceptance(self, source: str, confidence: float) -> float:
        """Return how often tokens of such confidence stood, the confidence itself at first."""
        return self._source(source).by_confidence(confidence)

    def observe(self, draft: Draft, accepted: int, draft_ms: float, verify_ms: float) -> None:
        """Learn acceptance, times and the present speed."""
        self._verify.observe(len(draft.ids) + 1, verify_ms)
        self._rate.observe(accepted + 1, draft_ms + verify_ms)
        if not draft.ids and not draft.steps:
            return
        self._last = draft.source
        known = self._source(draft.source)
        known.rate.observe(accepted + 1, draft_ms + verify_ms)
        draft_ms = known.observe(draft, accepted, draft_ms, self._rounds)
        added_ms = draft_ms + self._verify.at(len(draft.ids) + 1) - self._verify.at(1)
        known.observe_gain(accepted, added_ms, self._worth(known))

    def belief(self) -> GammaBelief | None:
        """Return what is believed of the source that drafted last."""
        if self._last is None:
            return None
        known = self._source(self._last)
        best = self._best(known)
        if best == 0:
            reason = "A draft costs more time than it saves."
        elif known.is_confident:
            reason = "Each draft goes on while one more token is worth its time."
        else:
            reason = f"Drafts of {best} make the most tokens per second."
        return GammaBelief(
            source=self._last,
            chosen=best,
            acceptance=known.acceptance_by_position(),
            verify_ms=tuple(self._verify.at(rows) for rows in range(1, MAX_GAMMA + 2)),
            draft_ms=known.step_ms,
            reason=reason,
        )

    def _source(self, name: str) -> Source:
        if name not in self._sources:
            family, _, kind = name.rpartition("-")
            kin = self._source(family) if family and kind.isdigit() else None
            self._sources[name] = Source(self._rounds, kin)
        return self._sources[name]

    def _worth(self, source: Source) -> float:
        """Return the tokens per millisecond that a draft of this source must make at least.

        Each half of it is at least what plain decoding makes.
        """
        plain_ms = self._verify.at(1)
        plain = 1.0 / plain_ms if plain_ms > 0 else 0.0
        return (max(plain, self._rate.now()) + max(plain, source.rate.now())) / 2

    def _best(self, source: Source) -> int:
        rate = self._worth(source)
        if source.is_confident:
            return MAX_GAMMA if source.gain(rate) > 0 else 0
        best, best_value, value, survival = 0, 0.0, 0.0, 1.0
        for gamma, stands in enumerate(source.acceptance_by_position(), start=1):
            survival *= stands
            value += survival - rate * (source.step_ms + self._verify.added_ms(gamma))
            if value > best_value:
                best, best_value = gamma, value
        return best
