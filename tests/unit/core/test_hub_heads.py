"""Which heads are on this computer, and how one is named."""

import json
from pathlib import Path

import pytest

from core.errors import UserError
from core.hub import heads
from core.hub.heads import head_folders, local_heads, resolve_head
from core.models.mtp.card import CARD_NAME
from tests.helpers.heads import SHIPPED, saved_head, ship_one_head


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    own = ship_one_head(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    assert head_folders() == (own, heads.SHIPPED_HEADS)
    return own


def _edit(folder: Path, **values: object) -> None:
    card = json.loads((folder / CARD_NAME).read_text())
    (folder / CARD_NAME).write_text(json.dumps({**card, **values}))


def test_the_persons_own_heads_come_before_the_shipped_one(own: Path) -> None:
    saved_head(own / "mine", acceptance_length=1.5)
    (own / "empty").mkdir()
    (own / "file").write_text("")
    mine, *shipped = local_heads()
    assert (mine.name, mine.shipped, mine.path) == ("mine", False, own / "mine")
    assert (mine.host, mine.kind, mine.depth) == ("none", "sequential", 3)
    assert (mine.acceptance_length, mine.damage) == (1.5, "")
    assert mine.size_bytes == sum(p.stat().st_size for p in mine.path.glob("*.safetensors")) > 0
    [ours] = shipped
    assert (ours.name, ours.shipped, ours.damage) == (SHIPPED, True, "")
    assert ours.host.startswith("SmolLM2-135M")
    assert (ours.acceptance_length or 0) > 2


DAMAGE = {
    "no JSON": lambda folder: (folder / CARD_NAME).write_text("{"),
    "no object": lambda folder: (folder / CARD_NAME).write_text("[]"),
    "no text": lambda folder: (folder / CARD_NAME).write_bytes(b"\xff\xfe\x00"),
    "too deep": lambda folder: (folder / CARD_NAME).write_text("[" * 100_000),
    "no host": lambda folder: _edit(folder, host=None),
    "another kind": lambda folder: _edit(folder, kind=["sequential"]),
    "beyond all numbers": lambda folder: _edit(folder, acceptance_length=10**400),
    "a newer card": lambda folder: _edit(folder, format=2),
    "no weights in the card": lambda folder: _edit(folder, weights=None),
    "weights of no name": lambda folder: _edit(folder, weights={"file": "\0", "size_bytes": 1}),
    "no weights": lambda folder: [path.unlink() for path in folder.glob("*.safetensors")],
    "weights cut short": lambda folder: [p.write_bytes(b"") for p in folder.glob("*.safetensors")],
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_head_is_listed_as_such_and_cannot_be_chosen(own: Path, damage) -> None:
    damage(saved_head(own / "broken"))
    saved_head(own / "mine")
    broken, mine, _ = local_heads()
    assert broken.name == "broken"
    assert broken.damage
    assert mine.damage == ""
    for name in ("broken", str(own / "broken"), str(own / "broken" / CARD_NAME)):
        with pytest.raises(UserError, match="The head broken cannot be used: ") as refused:
            resolve_head(name)
        assert "mine" in refused.value.action


def test_a_head_is_found_by_its_name_or_where_it_lies(own: Path, tmp_path: Path) -> None:
    saved_head(own / "mine")
    assert resolve_head("mine") == own / "mine"
    assert resolve_head(SHIPPED) == heads.SHIPPED_HEADS / SHIPPED
    here = saved_head(tmp_path / "mine")
    assert resolve_head("mine") == Path("mine")  # what lies here comes before a name
    for path in (here, here / CARD_NAME):
        assert resolve_head(str(path)) == path


def test_the_persons_own_head_comes_before_a_shipped_one_of_its_name(own: Path) -> None:
    saved_head(own / SHIPPED)
    assert resolve_head(SHIPPED) == own / SHIPPED


def test_a_folder_that_is_no_head_does_not_hide_the_one_of_its_name(
    own: Path, tmp_path: Path
) -> None:
    saved_head(own / "mine")
    (tmp_path / "mine").mkdir()
    assert resolve_head("mine") == own / "mine"


@pytest.mark.parametrize("name", ["nowhere", "./nowhere", "~/nowhere", "here", "here/x.pt", "\0"])
def test_a_head_that_is_not_there_is_refused_with_the_names_of_those_that_are(
    name: str, own: Path, tmp_path: Path
) -> None:
    saved_head(own / "mine")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "x.pt").write_bytes(b"")
    with pytest.raises(UserError, match="There is no head ") as refused:
        resolve_head(name)
    assert f"mine, {SHIPPED}" in refused.value.action


def test_beside_a_head_a_name_is_still_a_name(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(saved_head(tmp_path / "other"))
    with pytest.raises(UserError, match="There is no head called nowhere"):
        resolve_head("nowhere")
    assert resolve_head(CARD_NAME) == Path(CARD_NAME)
