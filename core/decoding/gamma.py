"""How many tokens to draft: as asked, or as many as pay for themselves.

The automatic controller maximises tokens per second, not acceptance. A token is drafted where the
chance that it stands is worth its time: S_k / (t_d + V(k + 1) - V(k)) > lambda, where S_k is
the chance that all of the first k stand, t_d a token's drafting time, V(rows) the measured time
of a verification, and lambda the tokens per millisecond at present.
"""

from collections.abc import Mapping
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
_PRIOR_GAIN = 0.5
"""An unknown draft model is tried for a few rounds before it can be found too slow."""
_GAIN_DECAY = 0.5 ** (1 / 8)
_CONFIDENCE_WEIGHT = 4.0
_BUCKETS = 8
_NAMELESS = ""
_PROBE_GAMMA = 3
_TRIAL_ROUNDS = 3
_TRIAL_WAIT_ROUNDS = 16
_MAX_TRIAL_WAIT_ROUNDS = 128


class GammaController(Protocol):
    """Chooses draft lengths and learns from what came of them.

    A source names a kind of proposal with statistics of its own, such as a draft model or an
    n-gram match of some length.
    """

    is_automatic: bool
    """Whether lengths are chosen here, so that what was drafted is what was asked for."""

    def next(self) -> int:
        """Begin a round and return the longest draft that any source may make."""

    def limit(self, source: str) -> int:
        """Return the longest draft that this source should make now; 0 tells it to decline."""

    def worth_judging(self, survival: float, drafted: int) -> bool:
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

    def next(self) -> int:
        """Return the fixed draft length."""
        return self._gamma

    def limit(self, source: str) -> int:
        """Return the fixed draft length."""
        return self._gamma

    def worth_judging(self, survival: float, drafted: int) -> bool:
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

    What it learns carries over from reply to reply, as the pair does not change. A source that
    knows how sure it is of each token (a draft model) goes on while that pays; of others (n-gram
    matches) it asks for the length of most value. One that is off is tried again for three rounds
    after 16, then 32, 64 and 128.
    """

    is_automatic = True

    def __init__(self) -> None:
        self._verify = _VerifyTimes()
        self._sources: dict[str, _Source] = {}
        self._tokens = 0.0
        self._time_ms = 0.0
        self._rounds = 0
        self._last: str | None = None

    def seed(self, verify_ms: Mapping[int, float], step_ms: Mapping[str, float]) -> None:
        """Begin with measured times: of a verification by rows, and of a draft step by source.

        Rounds refine them from there on.
        """
        self._verify.seed(verify_ms)
        for name, time_ms in step_ms.items():
            self._source(name).seed(time_ms)

    def next(self) -> int:
        """Begin a round: every source is asked for its own limit.

        Proposals that name no source come from a drafter that does not ask, so theirs holds here.
        """
        self._rounds += 1
        return self.limit(_NAMELESS) if _NAMELESS in self._sources else MAX_GAMMA

    def limit(self, source: str) -> int:
        """Return the draft length of most value, or a probe where that is long overdue."""
        known = self._source(source)
        best = self._best(known)
        if best == 0 and known.trial(self._rounds):
            return MAX_GAMMA if known.is_confident else _PROBE_GAMMA
        # What a step costs shows in the first draft only.
        return best if known.is_measured else min(best, _PROBE_GAMMA)

    def worth_judging(self, survival: float, drafted: int) -> bool:
        """Return whether the chance to stand is worth the time of one more row."""
        return survival > self._rate() * self._verify.added_ms(drafted + 1)

    def worth_drafting(self, source: str, survival: float, drafted: int) -> bool:
        """Return whether the chance to stand is worth a draft step and one more row."""
        known = self._source(source)
        cost_ms = known.step_ms + self._verify.added_ms(drafted + 1)
        return survival * known.mean_acceptance() > self._rate() * cost_ms

    def acceptance(self, source: str, confidence: float) -> float:
        """Return how often tokens of such confidence stood, the confidence itself at first."""
        return self._source(source).by_confidence(confidence)

    def observe(self, draft: Draft, accepted: int, draft_ms: float, verify_ms: float) -> None:
        """Learn acceptance, times and the present speed."""
        self._verify.observe(len(draft.ids) + 1, verify_ms)
        self._tokens = _DECAY * self._tokens + accepted + 1
        self._time_ms = _DECAY * self._time_ms + draft_ms + verify_ms
        if not draft.ids and not draft.steps:
            return
        self._last = draft.source
        known = self._source(draft.source)
        draft_ms = known.observe(draft, accepted, draft_ms, self._rounds)
        added_ms = draft_ms + self._verify.at(len(draft.ids) + 1) - self._verify.at(1)
        known.observe_gain(accepted - self._rate() * added_ms)

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

    def _source(self, name: str) -> "_Source":
        if name not in self._sources:
            self._sources[name] = _Source(self._rounds)
        return self._sources[name]

    def _rate(self) -> float:
        """Return tokens per millisecond now, and at least what plain decoding makes."""
        plain_ms = self._verify.at(1)
        plain = 1.0 / plain_ms if plain_ms > 0 else 0.0
        return max(plain, self._tokens / self._time_ms if self._time_ms > 0 else 0.0)

    def _best(self, source: "_Source") -> int:
        if source.is_confident:
            return MAX_GAMMA if source.gain() > 0 else 0
        rate = self._rate()
        best, best_value, value, survival = 0, 0.0, 0.0, 1.0
        for gamma, stands in enumerate(source.acceptance_by_position(), start=1):
            survival *= stands
            value += survival - rate * (source.step_ms + self._verify.added_ms(gamma))
            if value > best_value:
                best, best_value = gamma, value
        return best


class _VerifyTimes:
    """V(rows): running means where measured, straight lines between and after them."""

    def __init__(self) -> None:
        self._measured: dict[int, float] = {}
        self._times = [0.0] * (MAX_GAMMA + 3)

    def seed(self, times_ms: Mapping[int, float]) -> None:
        self._measured.update(times_ms)
        if self._measured:
            self._times = self._line()
            # What lies between counts as measured, too: the first pass of a size that was not is
            # a slow one (on a GPU it is set up in it), and must not pass for what that size costs.
            self._measured = {rows: self._times[rows] for rows in range(1, MAX_GAMMA + 2)}

    def observe(self, rows: int, time_ms: float) -> None:
        old = self._measured.get(rows)
        # One slow round (a page fault, another program) must not pass for the cost of its rows.
        time_ms = time_ms if old is None else min(time_ms, 3.0 * old)
        self._measured[rows] = time_ms if old is None else old + _TIME_WEIGHT * (time_ms - old)
        self._times = self._line()

    def at(self, rows: int) -> float:
        return self._times[rows]

    def added_ms(self, drafted: int) -> float:
        """Return what the last of that many drafted tokens adds.

        The slope over two rows, as single differences are mostly noise.
        """
        return (self._times[drafted + 2] - self._times[drafted]) / 2

    def _line(self) -> list[float]:
        """Return the times by rows, never falling; index 0 is not used."""
        known = sorted(self._measured.items())
        first_rows, first_ms = known[0]
        last_rows, last_ms = known[-1]
        slope = (last_ms - first_ms) / (last_rows - first_rows) if len(known) > 1 else 0.0
        if slope <= 0.0:
            slope = _ROW_SLOPE * first_ms
        times: list[float] = [0.0]
        for rows in range(1, len(self._times)):
            if rows <= first_rows:
                time_ms = max(first_ms - slope * (first_rows - rows), 0.5 * first_ms)
            elif rows >= last_rows:
                time_ms = last_ms + slope * (rows - last_rows)
            else:
                above = next(i for i, (r, _) in enumerate(known) if r >= rows)
                (low, low_ms), (high, high_ms) = known[above - 1], known[above]
                time_ms = low_ms + (high_ms - low_ms) * (rows - low) / (high - low)
            times.append(max(time_ms, times[-1]))
        return times


class _Source:
    """What became of one kind of proposal: discounted counts under a prior."""

    def __init__(self, now: int) -> None:
        self.step_ms = 0.0
        self._fixed_ms = 0.0
        self.is_confident = False
        self.is_measured = False
        self._last_round = now
        self._next_trial = now
        self._trial_wait = _TRIAL_WAIT_ROUNDS
        self._judged = [0.0] * MAX_GAMMA
        self._stood = [0.0] * MAX_GAMMA
        self._bucket_judged = [0.0] * _BUCKETS
        self._bucket_stood = [0.0] * _BUCKETS
        self._gain = _PRIOR_GAIN * _PRIOR_WEIGHT
        self._gain_weight = _PRIOR_WEIGHT

    def seed(self, step_ms: float) -> None:
        self.step_ms = step_ms
        self.is_measured = True

    def trial(self, now: int) -> bool:
        """Return whether a source that is off should be tried: a few rounds, ever more rarely."""
        if now >= self._next_trial + _TRIAL_ROUNDS:
            self._next_trial = now + self._trial_wait
            self._trial_wait = min(2 * self._trial_wait, _MAX_TRIAL_WAIT_ROUNDS)
        return now >= self._next_trial

    def observe(self, draft: Draft, accepted: int, draft_ms: float, now: int) -> float:
        """Learn a round's acceptance and time; return the time that its drafting should take."""
        # A pass that was paid for as a whole is no step of its own.
        steps = max(draft.steps, len(draft.ids), 1) - (1 if draft.fixed_ms else 0)
        # After a pause a draft model first reads what it missed, which is no cost of drafting.
        if self.is_measured and now - self._last_round > 1:
            draft_ms = min(draft_ms, self._fixed_ms + steps * self.step_ms)
        else:
            weight = _TIME_WEIGHT if self.is_measured else 1.0
            self._fixed_ms += weight * (draft.fixed_ms - self._fixed_ms)
            if steps:
                own_ms = max(draft_ms - draft.fixed_ms, 0.0) / steps
                if self.is_measured and self.step_ms > 0.0:
                    # One slow round is no more of a verdict here than for verifications.
                    own_ms = min(own_ms, 3.0 * self.step_ms)
                self.step_ms += weight * (own_ms - self.step_ms)
        self.is_measured = True
        self._last_round = now
        self.is_confident = draft.steps > 0
        # Full acceptance says nothing of the next position, and a rejection nothing of the later.
        for position in range(min(accepted + 1, len(draft.ids))):
            stood = float(position < accepted)
            self._judged[position] = _DECAY * self._judged[position] + 1.0
            self._stood[position] = _DECAY * self._stood[position] + stood
            if position < len(draft.confidence):
                bucket = _bucket(draft.confidence[position])
                self._bucket_judged[bucket] = _DECAY * self._bucket_judged[bucket] + 1.0
                self._bucket_stood[bucket] = _DECAY * self._bucket_stood[bucket] + stood
        return draft_ms

    def observe_gain(self, gain: float) -> None:
        """Learn what a round made beyond what its time is worth; one bad round is not a verdict."""
        self._gain = _GAIN_DECAY * self._gain + max(gain, -1.0)
        self._gain_weight = _GAIN_DECAY * self._gain_weight + 1.0
        if self.gain() > 0:
            self._trial_wait = _TRIAL_WAIT_ROUNDS

    def gain(self) -> float:
        """Return the tokens that a round of this source makes beyond what its time is worth."""
        return self._gain / self._gain_weight

    def mean_acceptance(self) -> float:
        """Return the chance that a token stands where those before it did, wherever it is."""
        return (sum(self._stood) + _PRIOR_WEIGHT * _PRIOR_ACCEPTANCE) / (
            sum(self._judged) + _PRIOR_WEIGHT
        )

    def acceptance_by_position(self) -> tuple[float, ...]:
        """Return the chance that each position stands where those before it did.

        What is known of a position is the prior of the next.
        """
        chances: list[float] = []
        before = _PRIOR_ACCEPTANCE
        for stood, judged in zip(self._stood, self._judged, strict=True):
            before = (stood + _PRIOR_WEIGHT * before) / (judged + _PRIOR_WEIGHT)
            chances.append(before)
        return tuple(chances)

    def by_confidence(self, confidence: float) -> float:
        bucket = _bucket(confidence)
        return (self._bucket_stood[bucket] + _CONFIDENCE_WEIGHT * confidence) / (
            self._bucket_judged[bucket] + _CONFIDENCE_WEIGHT
        )


def _bucket(confidence: float) -> int:
    return min(int(confidence * _BUCKETS), _BUCKETS - 1)
