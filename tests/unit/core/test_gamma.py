"""The automatic draft length makes the most tokens per second, and is 0 where drafting costs."""

import random
from dataclasses import replace

import pytest

from core.decoding.gamma import AutoGamma, FixedGamma
from core.drafting.base import Draft
from core.engine import Engine
from tests.helpers import tiny
from tests.helpers.tiny import byte_tokenizer, ids, request, rounds, run


class World:
    """A simulated pair: flat or sloping verification, a step cost, and an acceptance rate."""

    def __init__(self, *, step_ms, slope, acceptance, seed=0):
        self.step_ms = step_ms
        self.slope = slope
        self.acceptance = acceptance
        self.random = random.Random(seed)
        self.tokens = 0
        self.time_ms = 0.0

    def verify_ms(self, rows):
        return 50.0 * (1.0 + self.slope * (rows - 1)) * self.random.uniform(0.95, 1.05)

    def judge(self, confidences):
        for position, confidence in enumerate(confidences):
            if self.random.random() >= confidence:
                return position
        return len(confidences)

    def spend(self, accepted, draft_ms, verify_ms):
        self.tokens += accepted + 1
        self.time_ms += draft_ms + verify_ms

    @property
    def rate(self):
        return self.tokens / self.time_ms

    def confidence(self):
        """Half of the tokens are easy and half are hard, around the mean."""
        spread = 0.8 * min(self.acceptance, 1.0 - self.acceptance)
        return self.acceptance + self.random.choice((-spread, spread))

    def play(self, controller, count):
        """Rounds of a draft model that knows how sure it is."""
        for _ in range(count):
            gamma = min(controller.next(), controller.limit("model"))
            drafted, survival, steps = [], 1.0, 0
            while gamma:
                steps += 1
                sure = self.confidence()
                survival *= controller.acceptance("model", sure)
                if not controller.worth_judging("model", survival, len(drafted)):
                    break
                drafted.append(sure)
                if len(drafted) == gamma or not controller.worth_drafting(
                    "model", survival, len(drafted)
                ):
                    break
            self.finish(controller, "model" if steps else "", drafted, drafted, steps)

    def play_blind(self, controller, count):
        """Rounds of a source that proposes as many tokens as it is asked for, at no cost."""
        for _ in range(count):
            gamma = min(controller.next(), controller.limit("ngram-3"))
            drafted = [self.acceptance] * gamma
            self.finish(controller, "ngram-3" if gamma else "", drafted, (), 0)

    def finish(self, controller, source, drafted, confidence, steps):
        accepted = self.judge(drafted)
        draft_ms, verify_ms = steps * self.step_ms, self.verify_ms(len(drafted) + 1)
        self.spend(accepted, draft_ms, verify_ms)
        draft = Draft(
            tuple(range(len(drafted))), source=source, confidence=tuple(confidence), steps=steps
        )
        controller.observe(draft, accepted, draft_ms, verify_ms)


def rate(make, world, play="play", count=1500):
    simulated = World(**world)
    getattr(simulated, play)(make(), count)
    return simulated.rate


WORLDS = [
    {"step_ms": 2.0, "slope": 0.01, "acceptance": 0.9},
    {"step_ms": 5.0, "slope": 0.05, "acceptance": 0.7},
    {"step_ms": 25.0, "slope": 0.10, "acceptance": 0.8},
    {"step_ms": 25.0, "slope": 0.10, "acceptance": 0.5},
    {"step_ms": 40.0, "slope": 0.20, "acceptance": 0.3},
]


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_automatic_comes_close_to_the_best_fixed_length(world):
    best = max(rate(lambda g=g: FixedGamma(g), world) for g in range(9))
    assert rate(AutoGamma, world) > 0.93 * best


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_automatic_is_never_much_slower_than_plain(world):
    assert rate(AutoGamma, world, count=200) > 0.93 * rate(lambda: FixedGamma(0), world)


@pytest.mark.parametrize("acceptance", [0.02, 0.5, 0.9, 0.98])
@pytest.mark.parametrize("slope", [0.01, 0.1, 0.3])
def test_free_proposals_get_about_the_best_length_too(acceptance, slope):
    world = {"step_ms": 0.0, "slope": slope, "acceptance": acceptance}
    best = max(rate(lambda g=g: FixedGamma(g), world, "play_blind") for g in range(17))
    assert rate(AutoGamma, world, "play_blind") > 0.93 * best


def test_a_drafter_that_always_misses_is_switched_off_and_rarely_tried():
    world = World(step_ms=25.0, slope=0.1, acceptance=0.0)
    controller = AutoGamma()
    world.play(controller, 60)
    before = world.time_ms
    world.play(controller, 300)
    assert world.time_ms - before < 1.07 * 300 * 50.0
    assert "costs more time" in controller.belief().reason


def test_a_drafter_that_becomes_good_is_taken_up_again():
    world = World(step_ms=10.0, slope=0.05, acceptance=0.0)
    controller = AutoGamma()
    world.play(controller, 100)
    assert controller.limit("model") == 0
    world.acceptance = 0.95
    world.tokens, world.time_ms = 0, 0.0
    world.play(controller, 400)
    assert world.rate > 1.5 / 50.0


def test_one_slow_round_is_no_verdict():
    world = World(step_ms=5.0, slope=0.02, acceptance=0.9)
    controller = AutoGamma()
    world.play(controller, 50)
    controller.next()
    slow = Draft((1, 2), source="model", confidence=(0.9, 0.9), steps=2)
    controller.observe(slow, 0, 900.0, 5000.0)
    assert controller.limit("model") > 0


def test_what_is_believed_is_told_in_plain_values():
    world = World(step_ms=5.0, slope=0.02, acceptance=0.9)
    controller = AutoGamma()
    assert controller.belief() is None
    world.play(controller, 100)
    belief = controller.belief()
    assert belief.source == "model"
    assert belief.draft_ms == pytest.approx(5.0)
    assert belief.verify_ms[0] == pytest.approx(50.0, rel=0.1)
    assert list(belief.verify_ms) == sorted(belief.verify_ms)
    assert belief.acceptance[0] == pytest.approx(0.9, abs=0.1)
    assert belief.chosen > 0
    assert belief.reason


@pytest.fixture(scope="module")
def target():
    return tiny.tiny_llama()


@pytest.mark.parametrize("drafter", ["model", "ngram", "hybrid"])
def test_automatic_lengths_do_not_change_the_reply(target, drafter):
    prompt = (1, 2, 3, 1, 2, 3, 1, 2)
    plain = Engine.from_parts(target=target, tokenizer=byte_tokenizer())
    expected = ids(run(plain, request(prompt, drafter="off", max_new_tokens=80)))
    for draft in (target, tiny.noisy(target), tiny.anti(target)):
        engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), draft=draft)
        for _ in range(2):
            events = run(engine, request(prompt, drafter=drafter, gamma="auto", max_new_tokens=80))
            assert ids(events) == expected


def test_the_length_shown_is_the_length_used_and_carries_over_between_replies(target):
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), draft=tiny.anti(target))
    wanted = request(gamma="auto", max_new_tokens=80)
    first = rounds(run(engine, wanted))
    second = rounds(run(engine, wanted))
    lookup = rounds(run(engine, request((1,), drafter="ngram", gamma="auto", max_new_tokens=4)))
    assert all(round_.gamma == round_.proposed for round_ in first + second + lookup)
    assert all(round_.belief is not None for round_ in second)
    assert sum(r.proposed for r in second) < sum(r.proposed for r in first) + 4


def test_a_drafter_without_a_source_that_always_misses_is_switched_off():
    controller = AutoGamma()
    asked = []
    for _ in range(60):
        asked.append(controller.next())
        draft = Draft((1,) * asked[-1])
        controller.observe(draft, 0, 0.1, 50.0 + 5.0 * len(draft.ids))
    assert asked[1] > 0
    assert sum(asked[30:]) <= 9


def test_a_hard_reply_after_an_easy_one_is_judged_by_its_own_speed():
    """The speed of a reply that was copied must not be what the next one has to beat."""
    world = World(step_ms=20.0, slope=0.03, acceptance=0.98)
    controller = AutoGamma()
    world.play_blind(controller, 200)
    assert world.rate > 4 / 50.0
    world.acceptance = 0.7
    controller.begin()
    world.tokens, world.time_ms = 0, 0.0
    world.play(controller, 100)
    assert world.rate > 1.1 / 50.0


def test_a_copied_reply_after_another_one_does_not_begin_with_slow_drafts():
    """A draft model that beats plain decoding costs speed where text is copied for nothing."""
    controller = AutoGamma()
    for _ in range(40):
        controller.next()
        controller.observe(Draft((1,) * 4, source="ngram-8"), 4, 0.1, 60.0)
    for _ in range(4):
        controller.next()
        draft = Draft((1,) * 4, source="model", confidence=(0.95,) * 4, steps=4)
        controller.observe(draft, 4, 100.0, 60.0)
    assert not controller.worth_drafting("model", 0.9, 3)
    controller.begin()
    assert not controller.worth_drafting("model", 0.9, 3)


def test_a_draft_model_is_judged_by_its_own_rounds_too():
    """Between copied passages it drafts, and ending its round early brings none of them nearer."""
    controller = AutoGamma()
    for _ in range(40):
        controller.next()
        controller.observe(Draft((1,) * 4, source="ngram-8"), 4, 0.1, 60.0)
        controller.next()
        draft = Draft((1,), source="model", confidence=(0.95,), steps=1)
        controller.observe(draft, 1, 20.0, 52.0)
    # A step and a row make about a token in 23 ms, 0.043 a ms: less than all rounds make together
    # (0.053), more than halfway between those and the model's own (0.028).
    assert controller.worth_drafting("model", 1.0, 2)


@pytest.mark.parametrize("seed", range(8))
def test_some_bad_luck_does_not_switch_a_good_drafter_off(seed):
    world = World(step_ms=20.0, slope=0.03, acceptance=0.8, seed=seed)
    controller = AutoGamma()
    for _ in range(3):
        controller.begin()
        world.play(controller, 60)
        assert controller.limit("model") > 0


def test_a_new_kind_of_match_begins_with_what_is_known_of_its_kin():
    controller = AutoGamma()
    for _ in range(100):
        controller.next()
        controller.observe(Draft((1,) * 8, source="ngram-2"), 8, 0.1, 50.0)
    assert controller.limit("ngram-5") > controller.limit("model")


def test_what_a_draft_costs_as_a_whole_is_no_part_of_a_step():
    gamma = AutoGamma()
    for _ in range(30):
        gamma.next()
        # A draft model's pass of 60 ms, and two steps of 1 ms of the head that goes on from it.
        draft = Draft((1, 2, 3), source="mtp", confidence=(0.9,) * 3, steps=3, fixed_ms=60.0)
        gamma.observe(draft, 2, 62.0, 100.0)
    assert gamma.belief().draft_ms == pytest.approx(1.0)


def test_a_draft_that_comes_all_at_once_goes_on_where_one_by_one_would_stop():
    def worth(draft, survival):
        gamma = AutoGamma()
        for _ in range(30):
            gamma.next()
            gamma.observe(draft, 1, 60.0, 100.0)
        return gamma.worth_drafting("mtp", survival, 1)

    stepwise = Draft((1, 2, 3), source="mtp", confidence=(0.9,) * 3, steps=3)
    at_once = Draft((1, 2, 3), source="mtp", confidence=(0.9,) * 3, steps=1, fixed_ms=60.0)
    assert not worth(stepwise, 0.3)
    assert worth(at_once, 0.3)


def test_the_whole_cost_still_turns_a_source_off():
    gamma = AutoGamma()
    draft = Draft((1, 2), source="mtp", confidence=(0.9,) * 2, steps=1, fixed_ms=300.0)
    gamma.next()
    gamma.observe(Draft(()), 0, 0.0, 100.0)
    for _ in range(30):
        gamma.next()
        gamma.observe(draft, 1, 300.0, 100.0)
    assert gamma.belief().chosen == 0


def test_a_pause_is_not_charged_beyond_the_whole_and_its_steps():
    gamma = AutoGamma()
    draft = Draft((1, 2, 3), source="mtp", confidence=(0.9,) * 3, steps=3, fixed_ms=20.0)
    for _ in range(10):
        gamma.next()
        gamma.observe(draft, 3, 22.0, 100.0)
    before = gamma.belief()
    for _ in range(5):
        gamma.next()
        gamma.observe(Draft(()), 0, 0.0, 100.0)
    gamma.next()
    gamma.observe(replace(draft, fixed_ms=500.0), 3, 502.0, 100.0)
    assert gamma.belief().draft_ms == pytest.approx(before.draft_ms)
    assert gamma.belief().chosen == before.chosen > 0


def test_the_first_round_of_a_pair_measures_plain_decoding():
    controller = AutoGamma()
    assert controller.next() == 0
    controller.observe(Draft(()), 0, 0.0, 50.0)
    assert controller.next() > 0
    seeded = AutoGamma()
    seeded.seed({1: 50.0}, {})
    assert seeded.next() > 0


def test_a_size_that_was_slow_the_first_time_is_tried_again():
    shape = {"step_ms": 2.0, "slope": 0.03, "acceptance": 0.97}
    world = World(**shape)
    controller = AutoGamma()
    for drafted, time_ms in ((0, 50.0), (3, 54.0), (3, 54.0), (5, 170.0)):
        controller.next()
        ids = (1,) * drafted
        draft = Draft(ids, source="model", confidence=(0.97,) * drafted, steps=drafted)
        controller.observe(draft, drafted, 2.0 * drafted, time_ms)
    world.play(controller, 300)
    best = max(rate(lambda g=g: FixedGamma(g), shape, count=300) for g in (6, 8, 10))
    assert world.rate > 0.93 * best


def test_a_machine_that_grows_slow_makes_no_rows_dear():
    controller = AutoGamma()
    for rows, time_ms in [(1, 50.0)] * 10 + [(4, 54.0)] * 20 + [(4, 80.0)] * 40:
        controller.next()
        draft = Draft((1,) * (rows - 1), source="ngram-3")
        controller.observe(draft, len(draft.ids), 0.1, time_ms)
    believed = controller.belief().verify_ms
    assert believed[3] == pytest.approx(80.0, rel=0.05)
    assert believed[0] > 60.0


def test_a_new_reply_soon_learns_that_its_matches_are_worse_than_the_last_ones():
    def believed(*, new_reply):
        controller = AutoGamma()
        World(step_ms=0.0, slope=0.05, acceptance=0.99).play_blind(controller, 60)
        if new_reply:
            controller.begin()
        for _ in range(6):
            controller.next()
            controller.observe(Draft((1,), source="ngram-3"), 0, 0.1, 52.5)
        return controller.belief().acceptance[0]

    assert believed(new_reply=True) < 0.8 * believed(new_reply=False)
