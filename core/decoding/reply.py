"""Rounds of ids to rounds of text: what is shown, stored and counted of one reply."""

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from core.decoding.detok import Decoder, Detokenizer
from core.decoding.loop import Decided, RoundIds
from core.decoding.stops import Scan, StopScanner
from core.events import Round, Token
from core.metrics import GenerationMetrics, MetricsAccumulator


@dataclass(slots=True)
class _Pending:
    """A round that waits until none of its text can belong to a stop string."""

    round_ids: RoundIds
    elapsed_ms: float
    texts: list[str] = field(default_factory=list)


class ReplyAssembler:
    """Gives tokens their text, cuts at stop strings and counts what is left.

    A round is held back while the end of its text may be the beginning of a stop string, so
    that every token keeps its own text and colour. Nothing after a stop string is shown or counted.
    """

    def __init__(
        self,
        *,
        tokenizer: Decoder,
        stop: tuple[str, ...],
        metrics: MetricsAccumulator,
        started: float,
    ) -> None:
        self._tokenizer = tokenizer
        self._detokenizer = Detokenizer(tokenizer)
        self._scanner = StopScanner(stop)
        self._metrics = metrics
        self._started = started
        self._pending: deque[_Pending] = deque()
        self._texts: list[str] = []
        self._rounds = 0
        self.stopped = False
        """Whether a stop string ended the reply; nothing may be added after it."""

    @property
    def text(self) -> str:
        """What the rounds given out so far add up to."""
        return "".join(self._texts)

    def metrics(self) -> GenerationMetrics:
        """Return the numbers of the rounds given out so far."""
        return self._metrics.snapshot()

    def add(self, round_ids: RoundIds) -> Iterator[Round]:
        """Take the next round and yield the rounds that may now be shown."""
        elapsed_ms = 1000.0 * (time.perf_counter() - self._started)
        self._pending.append(_Pending(round_ids, elapsed_ms))
        for position, token in enumerate(round_ids.tokens, start=1):
            text = self._detokenizer.feed(token.id)
            if round_ids.reason is not None and position == len(round_ids.tokens):
                text += self._detokenizer.flush()
            yield from self._take(self._scanner.feed(text))
            if self.stopped:
                return

    def flush(self) -> Iterator[Round]:
        """Yield what is still held back at the end of the reply."""
        if not self.stopped:
            yield from self._take(self._scanner.flush())

    def _take(self, scan: Scan) -> Iterator[Round]:
        texts = deque(scan.texts)
        while self._pending:
            oldest = self._pending[0]
            while texts and len(oldest.texts) < len(oldest.round_ids.tokens):
                oldest.texts.append(texts.popleft())
            if len(oldest.texts) < len(oldest.round_ids.tokens):
                break
            yield self._shown(self._pending.popleft())
        if scan.matched:
            self.stopped = True
            if self._pending and self._pending[0].texts:
                yield self._shown(self._pending[0])
            self._pending.clear()

    def _shown(self, pending: _Pending) -> Round:
        ids = pending.round_ids
        tokens = tuple(
            _token(decided, text) for decided, text in zip(ids.tokens, pending.texts, strict=False)
        )
        cut = len(tokens) < len(ids.tokens)
        accepted = min(ids.accepted, len(tokens))
        round_ = Round(
            index=self._rounds,
            gamma=ids.gamma,
            belief=ids.belief,
            proposed=accepted if cut else ids.proposed,
            accepted=accepted,
            tokens=tokens,
            rejected=() if cut else tuple(_token(d, self._text_alone(d.id)) for d in ids.rejected),
            draft_ms=ids.draft_ms,
            verify_ms=ids.verify_ms,
            round_ms=ids.round_ms,
            elapsed_ms=pending.elapsed_ms,
            context_length=ids.context_length - (len(ids.tokens) - len(tokens)),
        )
        self._rounds += 1
        self._texts.extend(pending.texts)
        self._metrics.add(round_)
        return round_

    def _text_alone(self, token_id: int) -> str:
        return self._tokenizer.decode(
            [token_id], skip_special_tokens=False, clean_up_tokenization_spaces=False
        )


def _token(decided: Decided, text: str) -> Token:
    return Token(
        id=decided.id,
        text=text,
        origin=decided.origin,
        target_prob=decided.target_prob,
        draft_prob=decided.draft_prob,
    )
