"""Text of a target for another model to learn from: a draft, or a head that sits on the draft."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from core.errors import BugError, UserError
from core.models.loader import LoadedModel
from core.models.mtp.host import describe_host
from core.models.pairing import check_pair
from core.models.runner import Runner
from core.models.runners import make_runner
from core.training.data import TextData
from core.training.events import Kept, Progress, Stage
from core.training.jobs import GenerationSettings
from core.training.loading import load_alone
from core.training.places import Places, disk_use, find_places, held
from core.training.report import Report
from core.training.request import TrainRequest, read_both
from core.training.shards import Generated, ShardStore
from core.training.text_stage import make_text

_SHARD_TOKENS = 32_768


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorText:
    """Where a target's text is, and what is left of the target once it is unloaded.

    ``unembedding`` [vocabulary, hidden] float32 is its head.
    """

    places: Places
    name: str
    tokenizer: Any
    unembedding: torch.Tensor

    def check_reader(self, reader: LoadedModel) -> None:
        """Raise UserError where a model has other tokens than the text."""
        width = len(self.unembedding)
        verdict = check_pair(self.tokenizer, reader.tokenizer, width, reader.vocab_size)
        if not verdict.compatible:
            raise UserError(
                f"{reader.name} cannot draft for {self.name}. {verdict.reason}",
                "Choose another draft.",
            )


def make_author_text(
    request: TrainRequest, report: Report, *, states: int = 1, model_bytes: int | None = None
) -> AuthorText:
    """Load the target of a request, let it answer the prompts and unload it again.

    ``states`` of each token, and ``model_bytes`` instead of a head, are what all of the run will
    keep on the disk. Raises UserError and Cancelled.
    """
    prompts = read_both(request)  # bad data is refused before minutes go into loading
    target = load_alone(request.load, request.home, report)
    runner = make_runner(target.model)
    settings = GenerationSettings(
        layers=(runner.layers,),
        max_new_tokens=request.max_new_tokens,
        lanes=request.lanes,
        seed=request.seed,
        two_terms=False if request.fast else None,
    )
    described = describe_host(runner, name=target.name)
    places = find_places(request, described, settings, *prompts)
    report.emit(
        disk_use(
            request, described, states, places, prompts=len(prompts[0]), model_bytes=model_bytes
        )
    )
    with held(places):
        make_text(request, target, settings, prompts, places, report)
    return AuthorText(
        places=places,
        name=target.name,
        tokenizer=target.tokenizer,
        unembedding=runner.unembedding(range(runner.width)).clone(),
    )


def read_again(
    source: Path, goal: Path, runner: Runner, layers: Sequence[int], report: Report
) -> Path:
    """Let another model read a folder of text and keep its states of it; return ``goal``.

    What was read before is not read again. Raises UserError and Cancelled, with all kept.
    """
    with TextData(source) as text:
        settings = {"layers": list(layers), "text": source.name}
        store = ShardStore(goal, settings)
        done = store.done
        missing = [index for index in range(len(text)) if text.keys[index] not in done]
        total = sum(text.lengths[index] for index in missing)
        report.begin(Stage.READ, source.name, resumed=bool(done))
        runner.keep_states(layers)
        read = 0
        for index in missing:
            if report.stopped():
                break
            ids = text.ids(index).tolist()[: runner.context_limit]
            runner.crop(0)
            runner.forward(ids[:-1], 1)
            states = runner.states
            if states is None:
                raise BugError("The runner was asked to keep states and has none.")
            store.add(
                Generated(
                    key=text.keys[index],
                    ids=tuple(ids),
                    prompt_length=min(text.prompt_lengths[index], len(ids)),
                    temperature=text.temperatures[index],
                    states=states.to("cpu", torch.bfloat16),
                )
            )
            read += len(ids)
            report.progress(Progress(stage=Stage.READ, done=read, total=total))
            if store.waiting_tokens >= _SHARD_TOKENS:
                store.flush()
        store.flush()
        runner.keep_states(())
        runner.crop(0)
        report.emit(Kept(kind="text", path=str(goal), tokens=store.tokens))
    report.check()
    return goal
