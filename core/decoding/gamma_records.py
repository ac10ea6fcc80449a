"""What the automatic draft length goes by: times of verifications, and what became of drafts."""

from collections.abc import Mapping

from core.drafting.base import Draft
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
_GAIN_DECAY = 0.5 ** (1 / 32)
"""A verdict on a few rounds would be a verdict on their luck."""
_GAIN_KEPT = 0.5
_CONFIDENCE_WEIGHT = 4.0
_BUCKETS = 8
_TRIAL_ROUNDS = 3
_TRIAL_WAIT_ROUNDS = 16
_MAX_TRIAL_WAIT_ROUNDS = 128


class VerifyTimes:
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


class Source:
    """What became of one kind of proposal: discounted counts under a prior."""

    def __init__(self, now: int, kin: "Source | None") -> None:
        """``kin`` has what is known of all sources of this kind; it knows when this one is new."""
        self._kin = kin
        self.step_ms = 0.0
        self._fixed_ms = 0.0
        self.is_confident = False
        self.is_measured: bool = kin is not None and kin.is_measured
        self._last_round = now
        self._next_trial = now
        self._trial_wait = _TRIAL_WAIT_ROUNDS
        self._judged = [0.0] * MAX_GAMMA
        self._stood = [0.0] * MAX_GAMMA
        self._bucket_judged = [0.0] * _BUCKETS
        self._bucket_stood = [0.0] * _BUCKETS
        self._gain = _PRIOR_GAIN * _PRIOR_WEIGHT
        self._gain_weight = _PRIOR_WEIGHT

    def begin(self) -> None:
        """Doubt what was made in the last reply, whose text was another."""
        self._gain = _GAIN_KEPT * self._gain + (1 - _GAIN_KEPT) * _PRIOR_GAIN * _PRIOR_WEIGHT
        self._gain_weight = _GAIN_KEPT * self._gain_weight + (1 - _GAIN_KEPT) * _PRIOR_WEIGHT

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
        if self._kin is not None:
            self._kin.observe(draft, accepted, draft_ms, now)
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

        What is known of a position, and of the next one in sources of this kind, is the prior of
        the next.
        """
        chances: list[float] = []
        before = _PRIOR_ACCEPTANCE
        shared = () if self._kin is None else self._kin.acceptance_by_position()
        for position, (stood, judged) in enumerate(zip(self._stood, self._judged, strict=True)):
            prior = (before + shared[position]) / 2 if shared else before
            before = (stood + _PRIOR_WEIGHT * prior) / (judged + _PRIOR_WEIGHT)
            chances.append(before)
        return tuple(chances)

    def by_confidence(self, confidence: float) -> float:
        bucket = _bucket(confidence)
        return (self._bucket_stood[bucket] + _CONFIDENCE_WEIGHT * confidence) / (
            self._bucket_judged[bucket] + _CONFIDENCE_WEIGHT
        )


def _bucket(confidence: float) -> int:
    return min(int(confidence * _BUCKETS), _BUCKETS - 1)
