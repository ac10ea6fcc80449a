"""Many sequences decoded together: the text of one at a time, and nothing lost on a kill."""

import json
import random

import pytest
import torch
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

from core.errors import UserError
from core.models.lean.model import read_lean_model
from core.models.runners import make_runner
from core.training import lean_batch
from core.training.generate import generate
from core.training.jobs import GenerationSettings, Job, check_layers, make_jobs
from core.training.prompts import Prompt, Split, Suite
from core.training.sampling import choose, uniforms_of
from core.training.shards import MANIFEST, ShardStore
from tests.helpers.tiny import tiny_llama
from tests.helpers.tiny_tokenizers import CHATML, byte_level

VOCAB = 256
ENDS = frozenset({7, 8, 9})


@pytest.fixture(scope="module")
def lean(tmp_path_factory):
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=0.2,
        eos_token_id=None,
        bos_token_id=None,
        tie_word_embeddings=False,
    )
    model = LlamaForCausalLM(config).eval()
    folder = tmp_path_factory.mktemp("lean")
    model.save_pretrained(folder)
    return read_lean_model(folder, config, model.generation_config, lambda _: None)


@pytest.fixture(params=["lean", "eager"])
def model(request, lean, monkeypatch):
    # Text is compared token by token, so keys and values are kept whole.
    monkeypatch.setattr(lean_batch, "multiplies_bfloat16", lambda: False)
    return lean if request.param == "lean" else tiny_llama()


def _jobs(count=9, *, temperatures=(0.0,), seed=3):
    numbers = random.Random(seed)
    prompts = [
        tuple(numbers.randrange(VOCAB) for _ in range(numbers.randrange(1, 90)))
        for _ in range(count)
    ]
    return [
        Job(key=f"p{index}/{number}", prompt_ids=prompt, temperature=temperature)
        for index, prompt in enumerate(prompts)
        for number, temperature in enumerate(temperatures)
    ]


def _settings(**changes):
    values = {"layers": (1, 2), "max_new_tokens": 40, "lanes": 4, "shard_tokens": 200}
    return GenerationSettings(**{**values, **changes})


def _generate(model, jobs, folder, settings, *, stop=lambda: False, **more):
    store = ShardStore(folder, settings.fixed())
    seen = []
    whole = generate(
        model,
        jobs,
        ends=ENDS,
        settings=settings,
        store=store,
        on_progress=seen.append,
        stop=stop,
        **more,
    )
    return whole, store, seen


def _read(folder):
    """Every sequence that counts by its key: ids, prompt length, states."""
    found = {}
    for shard in json.loads((folder / MANIFEST).read_text())["shards"]:
        tensors = load_file(folder / shard["file"])
        starts = tensors["starts"].tolist()
        assert len(starts) == len(shard["keys"]) + 1
        for index, key in enumerate(shard["keys"]):
            assert key not in found
            part = slice(starts[index], starts[index + 1])
            found[key] = (
                tensors["ids"][part].tolist(),
                int(tensors["prompt_lengths"][index]),
                tensors["states"][part],
            )
    return found


def _alone(model, job, settings):
    """The same sequence through a runner, one token at a time."""
    runner = make_runner(model)
    runner.keep_states(settings.layers)
    ids, fed, kept = list(job.prompt_ids), 0, []
    while len(ids) - len(job.prompt_ids) < settings.max_new_tokens:
        logits = runner.forward(ids[fed:], 1)
        kept.append(runner.states)
        fed = len(ids)
        ids.append(int(logits[0].argmax()))
        if ids[-1] in ENDS:
            break
    return ids, torch.cat(kept)


def test_text_and_states_are_those_of_one_sequence_alone(model, tmp_path):
    settings = _settings()
    jobs = _jobs()
    whole, _, _ = _generate(model, jobs, tmp_path, settings)
    found = _read(tmp_path)
    assert whole
    assert found.keys() == {job.key for job in jobs}
    lengths = set()
    for job in jobs:
        ids, states = _alone(model, job, settings)
        got, prompt_length, kept = found[job.key]
        assert got == ids
        assert prompt_length == len(job.prompt_ids)
        assert kept.shape == (len(ids), 2 * states.shape[1] // 2)
        torch.testing.assert_close(kept[:-1].float(), states, atol=0.05, rtol=0.02)
        assert not kept[-1].any()
        lengths.add(len(ids) - prompt_length)
    assert len(lengths) > 2  # some ended by themselves, and lanes were refilled


def test_bfloat16_keys_change_states_only_a_little(lean, tmp_path, monkeypatch):
    monkeypatch.setattr(lean_batch, "multiplies_bfloat16", lambda: True)
    settings = _settings(max_new_tokens=3, two_terms=True)
    jobs = _jobs(6)
    _generate(lean, jobs, tmp_path, settings)
    for job in jobs:
        _, states = _alone(lean, job, settings)
        kept = _read(tmp_path)[job.key][2]
        assert (kept[: len(job.prompt_ids)].float() - states[: len(job.prompt_ids)]).norm() < (
            0.02 * states.norm()
        )


def test_jobs_of_one_prompt_read_it_once_and_draw_their_own_numbers(model, tmp_path):
    jobs = _jobs(3, temperatures=(0.0, 1.0, 1.0, 0.0))
    _generate(model, jobs, tmp_path, _settings())
    found = _read(tmp_path)
    for index in range(3):
        texts = [found[f"p{index}/{number}"][0] for number in range(4)]
        assert texts[0] == texts[3]
        assert texts[0] != texts[1] != texts[2]


def test_text_does_not_depend_on_how_many_lanes_there_are(model, tmp_path):
    jobs = _jobs(7, temperatures=(0.8, 0.8))
    for lanes in (1, 20):
        _generate(model, jobs, tmp_path / str(lanes), _settings(lanes=lanes))
    one, many = _read(tmp_path / "1"), _read(tmp_path / "20")
    assert {key: ids for key, (ids, _, _) in one.items()} == {
        key: ids for key, (ids, _, _) in many.items()
    }


def test_rows_in_several_groups_keep_their_text_when_they_move(lean, tmp_path, monkeypatch):
    monkeypatch.setattr(lean_batch, "multiplies_bfloat16", lambda: False)
    monkeypatch.setattr(lean_batch, "GROUP_ROWS", 3)
    settings = _settings(lanes=11, max_new_tokens=70)
    jobs = _jobs(40)
    _generate(lean, jobs, tmp_path, settings)
    found = _read(tmp_path)
    for job in jobs[::4]:
        assert found[job.key][0] == _alone(lean, job, settings)[0]


def test_a_run_that_was_stopped_goes_on_and_makes_nothing_twice(model, tmp_path):
    settings, jobs = _settings(), _jobs(8, temperatures=(0.0, 0.7))
    calls = iter(range(10_000))
    whole, store, _ = _generate(model, jobs, tmp_path, settings, stop=lambda: next(calls) > 60)
    before = _read(tmp_path)
    assert not whole
    assert 0 < len(before) < len(jobs)
    whole, store, seen = _generate(model, jobs, tmp_path, settings)
    after = _read(tmp_path)
    assert whole
    assert after.keys() == {job.key for job in jobs}
    assert all(torch.equal(before[key][2], after[key][2]) for key in before)
    assert seen[-1].done_jobs == seen[-1].total_jobs == len(jobs) - len(before)
    assert store.tokens == sum(len(ids) - start for ids, start, _ in after.values())


def test_what_is_cut_short_is_kept_as_far_as_it_came(model, tmp_path):
    settings, jobs = _settings(), _jobs(8)
    _generate(model, jobs, tmp_path / "whole", settings)
    calls = iter(range(10_000))
    whole, store, seen = _generate(
        model, jobs, tmp_path / "cut", settings, cut=lambda: next(calls) > 6
    )
    every, cut = _read(tmp_path / "whole"), _read(tmp_path / "cut")
    assert whole
    assert 0 < len(cut) < len(jobs)
    for key, (ids, start, states) in cut.items():
        assert every[key][0][: len(ids)] == ids
        assert len(ids) > start
        torch.testing.assert_close(states[:-1], every[key][2][: len(ids) - 1], atol=0.05, rtol=0.02)
    assert any(len(ids) < len(every[key][0]) for key, (ids, _, _) in cut.items())
    assert seen[-1].tokens == seen[-1].total_tokens == store.tokens
    assert seen[0].tokens > 0


def test_generation_ends_once_enough_tokens_were_made(model, tmp_path):
    whole, store, seen = _generate(model, _jobs(20), tmp_path, _settings(), max_tokens=60)
    assert whole
    assert 60 <= store.tokens < 60 + 4 * 40
    assert seen[-1].tokens == store.tokens
    assert store.waiting_tokens == 0


def test_prompts_that_are_too_long_are_left_out(model, tmp_path):
    jobs = _jobs(6)
    _generate(model, jobs, tmp_path, _settings(max_prompt_tokens=40))
    short = {job.key for job in jobs if len(job.prompt_ids) <= 40}
    assert _read(tmp_path).keys() == short != {job.key for job in jobs}


def test_text_ends_where_the_context_does(lean, tmp_path):
    job = Job(key="long", prompt_ids=tuple(range(20, 250)), temperature=1.0)
    _generate(lean, [job], tmp_path, _settings(max_new_tokens=100))
    ids, _, _ = _read(tmp_path)["long"]
    assert len(ids) <= 257


def test_shards_that_do_not_count_are_removed_and_made_again(model, tmp_path):
    settings, jobs = _settings(), _jobs(6)
    _generate(model, jobs, tmp_path, settings)
    whole = _read(tmp_path)
    # A kill between the renaming of a shard and the manifest, and one in the middle of a write.
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    lost = manifest["shards"].pop()
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    (tmp_path / "shard-00099.safetensors.123.tmp").write_bytes(b"half")
    torn = tmp_path / manifest["shards"][0]["file"]
    torn.write_bytes(torn.read_bytes()[:-1])
    store = ShardStore(tmp_path, settings.fixed())
    assert store.done.isdisjoint({*lost["keys"], *manifest["shards"][0]["keys"]})
    assert {path.name for path in tmp_path.iterdir()} == {
        MANIFEST,
        *(shard.file for shard in store.shards),
    }
    _generate(model, jobs, tmp_path, settings)
    assert {key: ids for key, (ids, _, _) in _read(tmp_path).items()} == {
        key: ids for key, (ids, _, _) in whole.items()
    }


def test_text_made_with_other_settings_is_not_mixed(tmp_path):
    ShardStore(tmp_path, _settings().fixed())
    ShardStore(tmp_path, _settings(lanes=9, shard_tokens=7).fixed())
    with pytest.raises(UserError, match="other settings"):
        ShardStore(tmp_path, _settings(layers=(2,)).fixed())


def test_layers_end_with_the_last_one_and_exist():
    assert check_layers([20, 10], 30) == (10, 20, 30)
    for wrong in ([31], [-1], []):
        with pytest.raises(UserError, match="no states after layer"):
            check_layers(wrong, 30)


def test_jobs_carry_the_chat_template_and_a_fixed_order():
    tokenizer = byte_level(chat_template=CHATML)
    prompts = [
        Prompt(
            id=f"n{index}",
            suite=Suite.CHAT,
            split=Split.TRAIN,
            text=f"Say {index}",
            system="Be brief." if index else None,
        )
        for index in range(5)
    ]
    jobs = make_jobs(tokenizer, prompts, (0.0, 0.7), 4)
    assert jobs == make_jobs(tokenizer, prompts, (0.0, 0.7), 4)
    assert [job.key for job in jobs] != [
        job.key for job in make_jobs(tokenizer, prompts, (0, 1), 5)
    ]
    assert {job.key for job in jobs} == {f"n{i}/{k}" for i in range(5) for k in range(2)}
    text = next(tokenizer.decode(job.prompt_ids) for job in jobs if job.key == "n3/1")
    assert text == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nSay 3<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_choice_follows_the_distribution():
    logits = torch.log(torch.tensor([[0.5, 0.2, 0.2, 0.1]])).expand(4000, -1)
    uniforms = torch.rand(4000, generator=torch.Generator().manual_seed(0))
    drawn = choose(logits, torch.ones(4000), uniforms)
    shares = torch.bincount(drawn, minlength=4) / 4000
    torch.testing.assert_close(shares, torch.tensor([0.5, 0.2, 0.2, 0.1]), atol=0.03, rtol=0)
    cold = choose(logits, torch.full((4000,), 0.5), uniforms)
    assert (cold == 0).float().mean() == pytest.approx(0.25 / 0.34, abs=0.03)
    assert not choose(logits, torch.zeros(4000), uniforms).any()
    assert not torch.equal(uniforms_of(0, "a", 3), uniforms_of(0, "b", 3))
