"""What the tests of the whole window share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from tests.helpers.fake_engine import FakeEngine
from tests.helpers.window import Bench, MakeBench


@pytest.fixture
def make_bench(qtbot: QtBot, tmp_path: Path) -> Iterator[MakeBench]:
    """Makes programs over one folder, and closes every one of them."""
    made: list[Bench] = []

    def make(engine: FakeEngine | None = None, **options: object) -> Bench:
        bench = Bench(qtbot, tmp_path, engine, **options)
        made.append(bench)
        return bench

    yield make
    for bench in made:
        bench.close()
