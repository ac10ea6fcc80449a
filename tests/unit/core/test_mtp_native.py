"""The MTP layers that a checkpoint brings along, as transformers reads them."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import MellumConfig, MellumForCausalLM
from transformers.cache_utils import MtpCache
from transformers.modeling_layers import MtpModel

from core.cancel import CancelToken
from core.engine import Engine
from core.requests import DrafterKind, LoadRequest
from tests.helpers.checkpoints import save_folder
from tests.helpers.tiny import ids, request, rounds, run
from tests.helpers.tiny_tokenizers import byte_level

PROMPT = tuple(range(30, 50))


@pytest.fixture(params=["full_attention", "sliding_attention"])
def checkpoint(request, tmp_path):
    """A tiny mixture of experts with one MTP layer in its weights."""
    torch.manual_seed(0)
    tokenizer = byte_level()
    config = MellumConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        moe_intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        num_experts=4,
        num_experts_per_tok=2,
        max_position_embeddings=512,
        num_mtp_layers=1,
        layer_types=["full_attention", request.param],
        mtp_layer_types=[request.param],
        sliding_window=8,
        initializer_range=0.3,
    )
    model = MellumForCausalLM(config).eval()
    folder = save_folder(tmp_path / "native", model, tokenizer)
    layer = MtpModel(model, 1)
    for parameter in layer.layers.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    own = {
        f"mtp.{name}": weight for name, weight in layer.layers.state_dict(prefix="layers.").items()
    }
    weights = folder / "model.safetensors"
    save_file({**load_file(weights), **own}, weights, metadata={"format": "pt"})
    return folder


def _load(folder):
    engine = Engine(prepared_dir=folder.parent / "prepared")
    wanted = LoadRequest(target=str(folder), device="cpu", precision="float32")
    return engine, engine.load(wanted, lambda progress: None, CancelToken())


def _option(loaded):
    return next(option for option in loaded.drafters if option.kind == DrafterKind.MTP)


def test_a_checkpoints_own_layer_drafts_and_changes_nothing(checkpoint):
    engine, loaded = _load(checkpoint)
    assert loaded.head == "the model's own on native"
    assert _option(loaded).available
    plain = ids(run(engine, request(PROMPT, drafter="off", max_new_tokens=20)))
    for gamma in (1, 3):
        for prompt in (PROMPT, PROMPT[:5], PROMPT):
            events = run(engine, request(prompt, drafter="mtp", gamma=gamma, max_new_tokens=20))
            assert prompt != PROMPT or ids(events) == plain
            assert sum(r.proposed for r in rounds(events)) > 0


@torch.no_grad()
def test_the_first_proposal_is_what_transformers_drafts(checkpoint):
    engine, _ = _load(checkpoint)
    events = run(engine, request(PROMPT, drafter="mtp", gamma=1, max_new_tokens=2))
    first = rounds(events)[0]
    proposed = [
        *(t.id for t in first.tokens if t.origin == "accepted"),
        *(t.id for t in first.rejected),
    ]
    model = MellumForCausalLM.from_pretrained(checkpoint).eval()
    layer = MtpModel.from_pretrained(model, device_map={"": "cpu"}).eval()
    states = model(torch.tensor([PROMPT[:-1]]), output_hidden_states=True).hidden_states[-1]
    drafted, _, _ = layer(
        input_ids=torch.tensor([PROMPT[1:]]),
        last_hidden_states=states,
        attention_mask=None,
        position_ids=torch.arange(1, len(PROMPT))[None],
        mtp_cache=MtpCache(config=model.config.get_mtp_config()),
    )
    assert proposed == [int(drafted[0, 0])]


def test_layers_that_cannot_run_are_refused_at_the_load(checkpoint):
    path = checkpoint / "config.json"
    values = json.loads(path.read_text())
    # Then there are no rotations for the layer, as no layer of the model is of this type.
    types = {"layer_types": ["full_attention"] * 2, "mtp_layer_types": ["sliding_attention"]}
    path.write_text(json.dumps({**values, **types}))
    engine, loaded = _load(checkpoint)
    assert not _option(loaded).available
    assert "transformers does not read" in _option(loaded).reason
    assert len(ids(run(engine, request(PROMPT, drafter="off", max_new_tokens=3)))) == 3


def test_a_checkpoint_without_the_layers_that_it_names_says_so(checkpoint):
    weights = checkpoint / "model.safetensors"
    kept = {name: w for name, w in load_file(weights).items() if not name.startswith("mtp.")}
    save_file(kept, weights, metadata={"format": "pt"})
    assert json.loads((checkpoint / "config.json").read_text())["num_nextn_predict_layers"] == 1
    _, loaded = _load(checkpoint)
    assert not _option(loaded).available
    assert "not in its checkpoint" in _option(loaded).reason
