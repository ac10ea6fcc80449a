"""The log file keeps what happened and not what was said."""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import logs
from app.logs import LogFile, describe, summary
from core.errors import UserError

log = logging.getLogger("paceline.test")


@pytest.fixture
def log_file(tmp_path: Path) -> Iterator[LogFile]:
    file = LogFile(tmp_path)
    yield file
    file.close()


def raised(error: Exception, cause: Exception | None = None) -> Exception:
    try:
        raise error from cause
    except Exception as caught:  # noqa: BLE001
        return caught


def test_lines_are_written_with_their_place_and_debug_is_left_out(log_file: LogFile) -> None:
    log.info("model loaded")
    log.debug("prompt: my secret")
    text = log_file.tail()
    assert "INFO MainThread paceline.test: model loaded" in text
    assert "secret" not in text


def test_debug_lines_are_written_when_asked_for(tmp_path: Path) -> None:
    file = LogFile(tmp_path, debug=True)
    log.debug("prompt: written")
    assert "prompt: written" in file.tail()
    file.close()


def test_closing_gives_the_root_logger_back(tmp_path: Path) -> None:
    root = logging.getLogger()
    before = (list(root.handlers), root.level)
    LogFile(tmp_path).close()
    assert (list(root.handlers), root.level) == before


@pytest.mark.parametrize(
    "error",
    [
        ValueError("my secret prompt"),
        KeyError("my secret prompt"),
        UnicodeDecodeError("utf-8", b"my secret prompt", 0, 1, "my secret prompt"),
        Exception("my secret prompt"),
    ],
)
def test_an_exception_is_logged_with_its_place_but_not_the_values_it_met(
    log_file: LogFile, error: Exception
) -> None:
    log.error("failed", exc_info=raised(error))
    text = log_file.tail()
    assert type(error).__name__ in text
    assert "test_logs.py" in text
    assert "in raised" in text
    assert "secret" not in text


def test_the_message_of_an_error_about_code_is_kept() -> None:
    assert summary(RuntimeError("shapes [1, 2] and [3]")) == "RuntimeError: shapes [1, 2] and [3]"
    assert summary(UserError("No model.", "Choose one.")) == "UserError: No model. Choose one."
    assert summary(FileNotFoundError(2, "No such file", "/somewhere/letter")) == (
        "FileNotFoundError: No such file"
    )


def test_causes_are_described_too() -> None:
    text = describe(raised(RuntimeError("outer"), raised(ValueError("my secret"))))
    assert text.index("RuntimeError: outer") < text.index("which came of")
    assert "ValueError" in text
    assert "secret" not in text


def test_a_circle_of_causes_ends() -> None:
    first, second = raised(RuntimeError("a")), raised(RuntimeError("b"))
    first.__cause__, second.__cause__ = second, first
    assert describe(first).count("RuntimeError") == 2


def test_access_tokens_are_masked(log_file: LogFile) -> None:
    log.warning("refused hf_abcDEF123456 and Authorization: Bearer abc.def-123")
    text = log_file.tail()
    assert "hf_abc" not in text
    assert "abc.def" not in text
    assert "***" in text


def test_the_home_folder_is_not_named(monkeypatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path(__file__).parent)
    assert str(Path(__file__).parent) not in describe(raised(RuntimeError("x")))


def test_libraries_that_log_every_request_are_kept_quiet(log_file: LogFile) -> None:
    logging.getLogger("httpx").info("GET https://example.org/private")
    assert "private" not in log_file.tail()


def test_the_file_rotates_and_old_ones_are_dropped(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(logs, "MAX_LOG_BYTES", 2000)
    file = LogFile(tmp_path)
    for number in range(400):
        log.info("line %d", number)
    file.close()
    names = sorted(entry.name for entry in tmp_path.iterdir())
    assert names == ["paceline.log", "paceline.log.1", "paceline.log.2", "paceline.log.3"]
    assert sum(entry.stat().st_size for entry in tmp_path.iterdir()) <= 4 * 2000
    if os.name == "posix":
        assert {stat.S_IMODE(entry.stat().st_mode) for entry in tmp_path.iterdir()} == {0o600}


def test_text_that_has_no_utf8_form_does_not_break_logging(log_file: LogFile) -> None:
    log.info("half \ud83d of a character")
    assert "half" in log_file.tail()
