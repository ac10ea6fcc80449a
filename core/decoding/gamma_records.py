"""What the automatic draft length goes by: times of verifications, and what became of drafts."""

from collections.abc import Mapping, Sequence

from core.drafting.base import Draft
from core.requests import MAX_GAMMA

_HALF_LIFE_ROUNDS = 32
_DECAY = 0.5 ** (1 / _HALF_LIFE_ROUNDS)
"""A verdict on a few rounds would be a verdict on their luck."""
_TIME_WEIGHT = 0.1
"""How much one measured time counts against the running one."""
_ROW_SLOPE = 0.04
"""What an unmeasured row of a verification is thought to add to a single one."""
_SHAPE_WEIGHT = 0.05
"""How much one time of well-known rows changes what they are thought to cost beside others."""
_MAX_SURPRISE = 1.5
_SEEDED_COUNT = 8
"""As many rounds as a time measured at the load is worth."""
_PRIOR_ACCEPTANCE = 0.7
_PRIOR_WEIGHT = 2.0
_PRIOR_GAIN = 0.5
"""An unknown draft model is tried for a few rounds before it can be found too slow."""
_GAIN_KEPT = 0.5
_RATE_KEPT = 0.1
"""How much of its forerunner's tokens and time a new reply begins with."""
_COUNTS_KEPT = 0.25
"""How much of its counts a new reply begins with: its text may be copied where none was before."""
_CONFIDENCE_WEIGHT = 4.0
_BUCKETS = 8
_TRIAL_ROUNDS = 3
_TRIAL_WAIT_ROUNDS = 16
_MAX_TRIAL_WAIT_ROUNDS = 128


class VerifyTimes:
    """V(rows) as a level times a shape: the time of a single row, and what more rows cost of it.

    A machine that is slow for a while is so for every number of rows, so times of rows that are
    well known move the level, and times that were measured at different moments still compare.
    Times of others move the shape there and after, and before in proportion to the rows: one slow
    round at six rows would otherwise pass for their cost, and as nothing drafts five tokens then,
    nothing would correct it.
    """

    def __init__(self) -> None:
        self._level_ms = 0.0
        self._shape = [1.0 + _ROW_SLOPE * (rows - 1) for rows in range(MAX_GAMMA + 3)]
        self._count = [0] * len(self._shape)
        self._times = [0.0] * len(self._shape)

    def seed(self, times_ms: Mapping[int, float]) -> None:
        """Begin with measured times; straight lines lie between and after them."""
        if not times_ms:
            return
        # What lies between counts as measured, too: the first pass of a size that was not is
        # a slow one (on a GPU it is set up in it), and must not pass for what that size costs.
        line = _line(sorted(times_ms.items()), len(self._shape))
        self._level_ms = line[1]
        self._shape = [time_ms / self._level_ms for time_ms in line]
        self._count = [_SEEDED_COUNT] * len(self._shape)
        self._update()

    def observe(self, rows: int, time_ms: float) -> None:
        """Learn the time of a round."""
        if self._level_ms == 0.0:
            self._level_ms = time_ms / self._shape[rows]
        count = self._count[rows]
        self._count[rows] += 1
        expected_ms = self._level_ms * self._shape[rows]
        # A slow round (a page fault, another program) tells no more than a slightly slow one.
        surprise = min(time_ms / expected_ms, _MAX_SURPRISE) - 1.0
        if rows == 1:
            self._level_ms *= 1.0 + max(1.0 / (count + 1), _TIME_WEIGHT) * surprise
        else:
            self._level_ms *= 1.0 + _TIME_WEIGHT * count / (count + 2) * surprise
            weight = max(1.0 / (count + 2), _SHAPE_WEIGHT) * surprise
            for other in range(2, len(self._shape)):
                self._shape[other] *= 1.0 + weight * min((other - 1) / (rows - 1), 1.0)
        self._update()

    def is_known(self, rows: int) -> bool:
        """Return whether so many rows were ever measured."""
        return self._count[rows] > 0

    def at(self, rows: int) -> float:
        """Return the time in ms of a verification of so many rows, 1 or more; 0 when unknown."""
        return self._times[rows]

    def added_ms(self, drafted: int) -> float:
        """Return what the last of that many drafted tokens adds.

        The slope over two rows, as single differences are mostly noise.
        """
        return (self._times[drafted + 2] - self._times[drafted]) / 2

    def _update(self) -> None:
        """Make the times, which never fall with more rows; index 0 is not used."""
        highest = 0.0
        for rows in range(1, len(self._times)):
            highest = max(highest, self._level_ms * self._shape[rows])
            self._times[rows] = highest


def _line(known: Sequence[tuple[int, float]], count: int) -> list[float]:
    """Return ``count`` times by rows through the known ones, never falling; index 0 is not used."""
    first_rows, first_ms = known[0]
    last_rows, last_ms = known[-1]
    slope = (last_ms - first_ms) / (last_rows - first_rows) if len(known) > 1 else 0.0
    if slope <= 0.0:
        slope = _ROW_SLOPE * first_ms
    times: list[float] = [0.0]
    for rows in range(1, count):
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


class Rate:
    """Tokens a millisecond of the rounds lately."""

    def __init__(self) -> None:
        self._tokens = 0.0
        self._time_ms = 0.0

    def begin(self) -> None:
        """Begin a reply, whose text may be another."""
        self._tokens *= _RATE_KEPT
        self._time_ms *= _RATE_KEPT

    def observe(self, tokens: int, time_ms: float) -> None:
        self._tokens = _DECAY * self._tokens + tokens
        self._time_ms = _DECAY * self._time_ms + time_ms

    def now(self) -> float:
        """Return the rate; 0 when unknown."""
        return self._tokens / self._time_ms if self._time_ms > 0 else 0.0


class Source:
    """What became of one kind of proposal: discounted counts under a prior."""

    def __init__(self, now: int, kin: "Source | None") -> None:
        """``kin`` has what is known of all sources of this kind; it knows when this one is new."""
        self._kin = kin
        self.rate = Rate()
        self.step_ms = 0.0
        self._fixed_ms = 0.0
        self._timed = 0
        self.is_confident = False
        self.is_measured: bool = kin is not None and kin.is_measured
        self._last_round = now
        self._next_trial = now
        self._trial_wait = _TRIAL_WAIT_ROUNDS
        self._judged = [0.0] * MAX_GAMMA
        self._stood = [0.0] * MAX_GAMMA
        self._bucket_judged = [0.0] * _BUCKETS
        self._bucket_stood = [0.0] * _BUCKETS
        self._won = _PRIOR_GAIN * _PRIOR_WEIGHT
        self._spent_ms = 0.0
        self._tried = _PRIOR_WEIGHT

    def begin(self) -> None:
        """Doubt what was learnt of the last reply, whose text was another; times stay."""
        self.rate.begin()
        for counts in (self._judged, self._stood):
            counts[:] = [_COUNTS_KEPT * count for count in counts]
        self._won = _GAIN_KEPT * self._won + (1 - _GAIN_KEPT) * _PRIOR_GAIN * _PRIOR_WEIGHT
        self._spent_ms *= _GAIN_KEPT
        self._tried = _GAIN_KEPT * self._tried + (1 - _GAIN_KEPT) * _PRIOR_WEIGHT

    def seed(self, step_ms: float) -> None:
        self.step_ms = step_ms
        self._timed = _SEEDED_COUNT
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
            # The first draft of all may be a slow one, so the next ones count for much, too.
            weight = max(1.0 / (self._timed + 1), _TIME_WEIGHT)
            self._timed += 1
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

    def observe_gain(self, accepted: int, added_ms: float, rate: float) -> None:
        """Learn what a round won in tokens, and in which time more than a plain one's.

        One bad round is not a verdict: it costs a token at most, at that many tokens a ms.
        """
        self._won = _DECAY * self._won + accepted
        most_ms = (accepted + 1.0) / rate if rate > 0 else 0.0
        self._spent_ms = _DECAY * self._spent_ms + min(added_ms, most_ms)
        self._tried = _DECAY * self._tried + 1.0
        if self.gain(rate) > 0:
            self._trial_wait = _TRIAL_WAIT_ROUNDS

    def gain(self, rate: float) -> float:
        """Return the tokens that a round wins beyond what its time is worth at tokens a ms."""
        return (self._won - rate * self._spent_ms) / self._tried

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
