"""The whole way on the embedded default model: load, send, colours, stop."""

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.compose import real_engine
from app.records import MessageState
from app.settings import Settings
from tests.helpers.window import Bench

LOAD_MS = 120_000


@pytest.mark.real_model
def test_the_default_model_streams_coloured_tokens_and_stops(
    qtbot: QtBot, tmp_path: Path, smollm2_path: Path, prepared_dir: Path
) -> None:
    settings = Settings(
        pair="custom",
        target_path=str(smollm2_path),
        drafter="ngram",
        temperature=0.0,
        max_new_tokens=4000,
    )
    bench = Bench(
        qtbot, tmp_path, settings=settings, load=False, engine_factory=real_engine(prepared_dir)
    )
    qtbot.waitUntil(lambda: bench.app.models.ready, timeout=LOAD_MS)
    bench.send("Count from 1 to 300. Write one number on each line, and nothing else.")
    reply = bench.app.chat.reply
    qtbot.waitUntil(
        lambda: (
            reply.message is not None
            and {"accepted", "plain"} <= {span.origin for span in reply.message.spans}
        ),
        timeout=LOAD_MS,
    )
    bench.window.composer.stopClicked.emit()
    bench.until(lambda: not reply.running)
    stored = bench.thread()[-1]
    assert stored.state == MessageState.STOPPED
    assert sum(span.length for span in stored.spans) == len(stored.text)
    bench.close()
    assert bench.app.stopped_in_time
