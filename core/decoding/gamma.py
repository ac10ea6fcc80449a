"""How many tokens to draft: as asked, or as many as pay for themselves.

The automatic controller maximises tokens per second, not acceptance. A token is drafted where the
chance that it stands is worth its time: S_k / (t_d + V(k + 1) - V(k)) > lambda, where S_k is
the chance that all of the first k stand, t_d a token's drafting time, V(rows) the measured time
of a verification, and lambda the tokens per millisecond at present.
"""

from typing import Protocol

from core.drafting.base import Draft
from core.events import GammaBelief
from core.requests import MAX_GAMMA

_HALF_LIFE_ROUNDS = 64
_DECAY = 0.5 ** (1 / _HALF_LIFE_ROUNDS)
_TIME_WEIGHT = 0.1
"""How much one measured time counts against the running one."""
_ROW_SLOPE = 0.04
"""What an unmeasured row of a verification is thought to add to a single one."""
_PRIOR_ACCEPTANCE = 0.7
_PRIOR_WEIGHT = 2.0
_CONFIDENCE_WEIGHT = 4.0
_BUCKETS = 8
_PROBE_ROUNDS = 16
_PROBE_GAMMA = 2


class GammaController(Protocol):
    """Chooses draft lengths and learns from what came of them.

    A source names a kind of proposal with statistics of its own, such as a draft model or an
    n-gram match of some length.
    """

    def next(self) -> int:
        """Begin a round and return the longest draft that any source may make."""

    def limit(self, source: str) -> int:
        """Return the longest draft that this source should make now; 0 tells it to decline."""

    def worth(self, source: str, survival: float, drafted: int) -> bool:
        """Return whether one more token pays.

        ``survival`` is the chance that it and the ``drafted`` ones before it all stand.
        """

    def acceptance(self, source: str, confidence: float) -> float:
        """Return the chance that a token stands whose distribution peaks at ``confidence``."""

    def observe(self, draft: Draft, accepted: int, draft_ms: float, verify_ms: float) -> None:
        """Learn the outcome of a round; ``draft`` is cut to what was judged."""

    def belief(self) -> GammaBelief | None:
        """Return what the last choice went by, None where nothing is believed."""


class FixedGamma:
    """The same draft length every round, for every source."""

    def __init__(self, gamma: int) -> None:
        self._gamma = gamma

    def next(self) -> int:
        """Return the fixed draft length."""
        return self._gamma

    def limit(self, source: str) -> int:
        """Return the fixed draft length."""
        return self._gamma

    def worth(self, source: str, survival: float, drafted: int) -> bool:
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

    What it learns carries over from reply to reply, as the pair does not change. A source that is
    off is tried again every 16 rounds.
    """

    def __init__(self) -> None:
        self._verify = _VerifyTimes()
        self._sources: dict[str, _Source] = {}
        self._tokens = 0.0
        self._time_ms = 0.0
        self._rounds = 0
        self._last = ""

    def next(self) -> int:
        """Begin a round: every source is asked for its own limit."""
        self._rounds += 1
        return MAX_GAMMA

    def limit(self, source: str) -> int:
        """Return the draft length of most value, or a short probe where that is long overdue."""
        known = self._source(source)
        best = self._best(known)
        if best == 0 and self._rounds - known.last_round >= _PROBE_ROUNDS:
            return _PROBE_GAMMA
        return best

    def worth(self, source: str, survival: float, drafted: int) -> bool:
        """Return whether a token's chance to stand is worth its time."""
        cost_ms = self._source(source).draft_ms + self._verify.added_ms(drafted + 1)
        return survival > self._rate() * cost_ms

    def acceptance(self, source: str, confidence: float) -> float:
        """Return how often tokens of such confidence stood, the confidence itself at first."""
        return self._source(source).by_confidence(confidence)

    def observe(self, draft: Draft, accepted: int, draft_ms: float, verify_ms: float) -> None:
        """Learn acceptance, times and the present speed."""
        self._verify.observe(len(draft.ids) + 1, verify_ms)
        self._tokens = _DECAY * self._tokens + accepted + 1
        self._time_ms = _DECAY * self._time_ms + draft_ms + verify_ms
        if draft.ids:
            self._last = draft.source
            known = self._source(draft.source)
            known.last_round = self._rounds
            known.observe(draft, accepted, draft_ms)

    def belief(self) -> GammaBelief | None:
        """Return what is believed of the source that drafted last."""
        if not self._last:
            return None
        known = self._source(self._last)
        best = self._best(known)
        return GammaBelief(
            source=self._last,
            acceptance=known.acceptance_by_position(),
            verify_ms=tuple(self._verify.at(rows) for rows in range(1, MAX_GAMMA + 2)),
            draft_ms=known.draft_ms,
            reason="A draft costs more time than it saves."
            if best == 0
            else f"Drafts of {best} make the most tokens per second.",
        )

    def _source(self, name: str) -> "_Source":
        if name not in self._sources:
            self._sources[name] = _Source(last_round=self._rounds)
        return self._sources[name]

    def _rate(self) -> float:
        """Return tokens per millisecond now, and at least what plain decoding makes."""
        plain_ms = self._verify.at(1)
        plain = 1.0 / plain_ms if plain_ms > 0 else 0.0
        return max(plain, self._tokens / self._time_ms if self._time_ms > 0 else 0.0)

    def _best(self, source: "_Source") -> int:
        rate = self._rate()
        best, best_value, value, survival = 0, 0.0, 0.0, 1.0
        for gamma in range(1, MAX_GAMMA + 1):
            survival *= source.at(gamma - 1)
            value += survival - rate * (source.draft_ms + self._verify.added_ms(gamma))
            if value > best_value:
                best, best_value = gamma, value
        return best


class _VerifyTimes:
    """V(rows): running means where measured, straight lines between and after them."""

    def __init__(self) -> None:
        self._measured: dict[int, float] = {}

    def observe(self, rows: int, time_ms: float) -> None:
        old = self._measured.get(rows)
        # One slow round (a page fault, another program) must not pass for the cost of its rows.
        time_ms = time_ms if old is None else min(time_ms, 3.0 * old)
        self._measured[rows] = time_ms if old is None else old + _TIME_WEIGHT * (time_ms - old)

    def at(self, rows: int) -> float:
        if not self._measured:
            return 0.0
        if rows in self._measured:
            return self._measured[rows]
        below = max((r for r in self._measured if r < rows), default=None)
        above = min((r for r in self._measured if r > rows), default=None)
        if below is None and above is not None:
            return self._measured[above] / (1.0 + _ROW_SLOPE * (above - rows))
        if above is None and below is not None:
            return self._measured[below] * (1.0 + _ROW_SLOPE * (rows - below))
        if below is None or above is None:
            return 0.0
        share = (rows - below) / (above - below)
        return (1.0 - share) * self._measured[below] + share * self._measured[above]

    def added_ms(self, drafted: int) -> float:
        """Return what the last of that many drafted tokens adds; noise never makes it a gain."""
        return max(self.at(drafted + 1) - self.at(drafted), 0.0)


class _Source:
    """What became of one kind of proposal: discounted counts under a prior."""

    def __init__(self, last_round: int) -> None:
        self.last_round = last_round
        self.draft_ms = 0.0
        self._measured = False
        self._judged = [0.0] * MAX_GAMMA
        self._stood = [0.0] * MAX_GAMMA
        self._bucket_judged = [0.0] * _BUCKETS
        self._bucket_stood = [0.0] * _BUCKETS

    def observe(self, draft: Draft, accepted: int, draft_ms: float) -> None:
        per_token = draft_ms / len(draft.ids)
        self.draft_ms += (_TIME_WEIGHT if self._measured else 1.0) * (per_token - self.draft_ms)
        self._measured = True
        # Full acceptance says nothing of the next position, and a rejection nothing of the later.
        for position in range(min(accepted + 1, len(draft.ids))):
            stood = float(position < accepted)
            self._judged[position] = _DECAY * self._judged[position] + 1.0
            self._stood[position] = _DECAY * self._stood[position] + stood
            if position < len(draft.confidence):
                bucket = _bucket(draft.confidence[position])
                self._bucket_judged[bucket] = _DECAY * self._bucket_judged[bucket] + 1.0
                self._bucket_stood[bucket] = _DECAY * self._bucket_stood[bucket] + stood

    def at(self, position: int) -> float:
        """Return the chance that a position stands where those before it did."""
        before = _PRIOR_ACCEPTANCE
        for index in range(position + 1):
            before = (self._stood[index] + _PRIOR_WEIGHT * before) / (
                self._judged[index] + _PRIOR_WEIGHT
            )
        return before

    def acceptance_by_position(self) -> tuple[float, ...]:
        return tuple(self.at(position) for position in range(MAX_GAMMA))

    def by_confidence(self, confidence: float) -> float:
        bucket = _bucket(confidence)
        return (self._bucket_stood[bucket] + _CONFIDENCE_WEIGHT * confidence) / (
            self._bucket_judged[bucket] + _CONFIDENCE_WEIGHT
        )


def _bucket(confidence: float) -> int:
    return min(int(confidence * _BUCKETS), _BUCKETS - 1)
