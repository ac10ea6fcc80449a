"""Settings: ranges, the file, and what a damaged file costs (nothing)."""

import json
import os
from dataclasses import asdict, fields
from pathlib import Path

import pytest

from app.settings import Settings, SettingsStore, sampling_params, speculation_params
from core.errors import UserError
from core.requests import SamplingParams, SpeculationParams

CHANGED = Settings(
    pair="custom",
    target_path="/models/größe/target.gguf",
    draft_path="/models/draft.gguf",
    head_path="/models/heads/mine",
    device="cpu",
    precision="int8",
    drafter="ngram",
    gamma=16,
    rule="typical",
    ensemble_weight=0.5,
    typical_epsilon=0.2,
    typical_delta=0.6,
    temperature=0.0,
    top_k=40,
    top_p=0.5,
    min_p=0.1,
    repetition_penalty=1.1,
    presence_penalty=-1.0,
    frequency_penalty=0.5,
    seed=7,
    max_new_tokens=1,
    stop=("\n\n", "END"),
    system_prompt="Sois bref. 日本",
    theme="dark",
    colouring=False,
    font_points=14,
)


@pytest.fixture
def store(tmp_path: Path) -> SettingsStore:
    return SettingsStore(tmp_path / "config" / "settings.json")


def write(store: SettingsStore, content: str | bytes) -> None:
    store.path.parent.mkdir(parents=True, exist_ok=True)
    store.path.write_bytes(content if isinstance(content, bytes) else content.encode())


def test_without_a_file_the_defaults_hold(store: SettingsStore) -> None:
    assert store.load() == Settings()
    assert store.notices == ()


def test_every_choice_survives_a_restart(store: SettingsStore) -> None:
    for field in fields(Settings):
        assert getattr(CHANGED, field.name) != getattr(Settings(), field.name), field.name
    store.save(CHANGED)
    assert store.load() == CHANGED
    assert store.notices == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pair", ""),
        ("pair", None),
        ("target_path", 3),
        ("device", "tpu"),
        ("precision", ["int8"]),
        ("drafter", "magic"),
        ("gamma", 17),
        ("gamma", -1),
        ("gamma", 2.5),
        ("gamma", True),
        ("gamma", "automatic"),
        ("gamma", None),
        ("rule", "guess"),
        ("ensemble_weight", 1.01),
        ("typical_epsilon", -0.1),
        ("typical_delta", True),
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("temperature", "warm"),
        ("temperature", 10**400),
        ("top_k", -1),
        ("top_p", 0.0),
        ("top_p", 1.01),
        ("min_p", 2),
        ("repetition_penalty", 0),
        ("presence_penalty", float("inf")),
        ("frequency_penalty", None),
        ("seed", -1),
        ("seed", "7"),
        ("max_new_tokens", 0),
        ("stop", "END"),
        ("stop", [""]),
        ("stop", [1]),
        ("system_prompt", {}),
        ("theme", "pink"),
        ("colouring", 1),
        ("font_points", 5),
        ("font_points", 49),
        ("font_points", False),
    ],
)
def test_a_bad_value_costs_its_own_field_only_and_is_named(
    store: SettingsStore, name: str, value: object
) -> None:
    write(store, json.dumps({**asdict(CHANGED), name: value}))
    loaded = store.load()
    assert getattr(loaded, name) == getattr(Settings(), name)
    others = [field.name for field in fields(Settings) if field.name != name]
    assert [getattr(loaded, other) for other in others] == [
        getattr(CHANGED, other) for other in others
    ]
    [notice] = store.notices
    assert name in notice
    assert notice.endswith("The default is used.")
    with pytest.raises(UserError, match=name):
        Settings(**{name: value})  # type: ignore[arg-type]


def test_an_unknown_setting_is_reported_and_the_rest_kept(store: SettingsStore) -> None:
    write(store, json.dumps({"gamma": 3, "warp": 9}))
    assert store.load() == Settings(gamma=3)
    assert store.notices == ("The setting 'warp' is not known and was left out.",)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[1]", b"null", b"\xff\xfe\x00", b"[" * 100_000],
    ids=["empty", "cut off", "a list", "null", "not utf-8", "very deep"],
)
def test_a_damaged_file_is_set_aside_not_lost(store: SettingsStore, content: bytes) -> None:
    write(store, content)
    assert store.load() == Settings()
    [kept] = store.path.parent.glob("settings.damaged-*.json")
    assert kept.read_bytes() == content
    assert kept.name in store.notices[0]
    store.save(CHANGED)
    assert store.load() == CHANGED
    assert store.notices == ()


def test_a_file_that_cannot_be_read_leaves_the_defaults(store: SettingsStore) -> None:
    store.path.mkdir(parents=True)
    assert store.load() == Settings()
    assert "could not be read" in store.notices[0]


def test_a_save_that_fails_keeps_the_old_file(store: SettingsStore, monkeypatch) -> None:
    store.save(CHANGED)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("app.storage.files.os.replace", fail)
    with pytest.raises(UserError, match="could not be written: No space left"):
        store.save(Settings())
    assert store.load() == CHANGED
    assert [file.name for file in store.path.parent.iterdir()] == ["settings.json"]


def test_a_folder_that_cannot_be_made_gives_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="could not be written"):
        SettingsStore(tmp_path / "file" / "settings.json").save(Settings())


@pytest.mark.skipif(os.name != "posix", reason="links and modes of POSIX")
def test_a_linked_file_stays_a_link_and_is_private(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "settings.json"
    real.parent.mkdir()
    real.write_text("{}")
    link = tmp_path / "settings.json"
    link.symlink_to(real)
    SettingsStore(link).save(CHANGED)
    assert link.is_symlink()
    assert SettingsStore(real).load() == CHANGED
    assert real.stat().st_mode & 0o077 == 0


def test_the_requests_take_over_every_value() -> None:
    assert sampling_params(CHANGED) == SamplingParams(
        temperature=0.0,
        top_k=40,
        top_p=0.5,
        min_p=0.1,
        repetition_penalty=1.1,
        presence_penalty=-1.0,
        frequency_penalty=0.5,
        seed=7,
    )
    assert speculation_params(CHANGED) == SpeculationParams(
        drafter="ngram",
        gamma=16,
        rule="typical",
        ensemble_weight=0.5,
        typical_epsilon=0.2,
        typical_delta=0.6,
    )


def test_a_file_from_before_the_automatic_gamma_keeps_its_fixed_one(store: SettingsStore) -> None:
    assert Settings().gamma == "auto"
    new = ("ensemble_weight", "typical_epsilon", "typical_delta")
    old = {name: value for name, value in asdict(Settings(gamma=5)).items() if name not in new}
    write(store, json.dumps(old))
    assert store.load() == Settings(gamma=5)
    assert store.notices == ()


def test_an_automatic_gamma_survives_a_restart(store: SettingsStore) -> None:
    store.save(Settings(gamma="auto", rule="ensemble"))
    assert store.load() == Settings(gamma="auto", rule="ensemble")
