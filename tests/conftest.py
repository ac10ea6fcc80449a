"""What every test stands on: a home of its own, no network, an offscreen Qt, no leftovers."""

import os
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from core.errors import UserError
from core.hub.library import Library, data_root

if TYPE_CHECKING:
    from core.engine import Engine
    from core.models.loader import LoadedPair

GUI_TESTS = Path(__file__).parent / "gui"
THREAD_GRACE_S = 2.0
LOOPBACK = ("localhost", "127.", "::1", "0.0.0.0", "::ffff:127.")

# The models of the person are read, never written; everything else is a home made for this run.
# This happens on import, before a test module or Qt looks at the environment.
REAL_MODELS = Path(os.environ.get("PACELINE_TEST_MODELS") or data_root() / "models").absolute()
ISOLATED_HOME = Path(tempfile.mkdtemp(prefix="paceline-"))


def _isolate(home: Path) -> None:
    folders = {
        "HOME": home,
        "USERPROFILE": home,
        "APPDATA": home / "config",
        "LOCALAPPDATA": home / "data",
        "PACELINE_HOME": home / "paceline",
        "XDG_CONFIG_HOME": home / "config",
        "XDG_DATA_HOME": home / "data",
        "XDG_CACHE_HOME": home / "cache",
        "XDG_STATE_HOME": home / "state",
        "XDG_RUNTIME_DIR": home / "run",
        "HF_HOME": home / "huggingface",
    }
    for name, folder in folders.items():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)  # Qt refuses a runtime folder that others can read
        os.environ[name] = str(folder)
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"


_isolate(ISOLATED_HOME)

# In the background of a shell the signal of Ctrl+C is ignored, and children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No test fails for being slow: a busy machine must not decide.
hypothesis.settings.register_profile(
    "paceline", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("paceline")


def pytest_unconfigure() -> None:
    shutil.rmtree(ISOLATED_HOME, ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what asks for an NVIDIA GPU where there is none."""
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if not on_gpu:
        return
    import torch

    if not torch.cuda.is_available():
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU, and there is none here"))


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Refuse every address but loopback, and fail the test even where the refusal is caught."""
    attempts: list[str] = []

    def refuse(host: object) -> None:
        if isinstance(host, bytes):
            host = host.decode()
        if isinstance(host, str) and host and not host.startswith(LOOPBACK):
            attempts.append(host)
            raise OSError(f"tests have no network, and one asked for {host}")

    connect, connect_ex, getaddrinfo = (
        socket.socket.connect,
        socket.socket.connect_ex,
        socket.getaddrinfo,
    )

    def guarded_connect(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX:
            refuse(address[0])
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        if self.family != socket.AF_UNIX:
            refuse(address[0])
        return connect_ex(self, address)

    def guarded_getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        refuse(host)
        return getaddrinfo(host, *args, **kwargs)

    monkeypatch.setattr(socket.socket, "connect", guarded_connect)
    monkeypatch.setattr(socket.socket, "connect_ex", guarded_connect_ex)
    monkeypatch.setattr(socket, "getaddrinfo", guarded_getaddrinfo)
    yield
    if attempts:
        pytest.fail(f"the test reached for the network: {', '.join(attempts)}")


@pytest.fixture(autouse=True)
def no_leftover_threads(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Fail a window test that leaves a thread of Python's or Qt's running."""
    if not request.path.is_relative_to(GUI_TESTS) and "qapp" not in request.fixturenames:
        yield
        return
    import shiboken6
    from PySide6.QtCore import QThread

    before, started = set(threading.enumerate()), []
    start = QThread.start

    def recording_start(self: QThread, *arguments: Any) -> None:
        started.append(self)
        start(self, *arguments)

    monkeypatch.setattr(QThread, "start", recording_start)
    yield
    left = [thread.name for thread in threading.enumerate() if _outlives(thread, before)]
    left += [
        type(thread).__name__
        for thread in started
        if shiboken6.isValid(thread) and not thread.wait(int(THREAD_GRACE_S * 1000))
    ]
    if left:
        pytest.fail(f"threads were left running: {', '.join(left)}")


def _outlives(thread: threading.Thread, before: set[threading.Thread]) -> bool:
    # A dummy stands for a thread that Python did not start; Qt's are looked for by themselves.
    foreign = isinstance(thread, threading._DummyThread) or type(thread).__name__ == "TMonitor"
    if thread in before or foreign:
        return False
    thread.join(THREAD_GRACE_S)
    return thread.is_alive()


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """The embedded default model's file; `make test` has fetched it before."""
    return _ready_model("smollm2-135m")


@pytest.fixture(scope="session")
def qwen_pair_paths() -> tuple[Path, Path]:
    """Target and draft of the Qwen pair, which is fetched by ``paceline models get``."""
    return _ready_model("qwen2.5-coder-1.5b"), _ready_model("qwen2.5-coder-0.5b")


def _ready_model(model_id: str) -> Path:
    try:
        return Library(REAL_MODELS).path(model_id)
    except UserError as error:
        pytest.skip(f"{error} (looked in {REAL_MODELS})")


@pytest.fixture(scope="session")
def prepared_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for prepared copies, shared by the tests of one run that load a real model."""
    return tmp_path_factory.mktemp("prepared")


@pytest.fixture(scope="session")
def smollm2(smollm2_path: Path, prepared_dir: Path) -> "LoadedPair":
    """The default model in int8, loaded once for all tests that only read it."""
    from tests.helpers.loading import load_models

    return load_models(smollm2_path, None, prepared_dir, precision="int8")


@pytest.fixture(scope="session")
def qwen(qwen_pair_paths: tuple[Path, Path], prepared_dir: Path) -> "tuple[Engine, LoadedPair]":
    """An engine with the Qwen pair in int8, and the pair it loaded, once for all tests on it."""
    from core.cancel import CancelToken
    from core.engine import Engine
    from core.models import loader
    from core.requests import LoadRequest

    loaded: list[LoadedPair] = []
    load_pair = loader.load_pair

    def recording(*arguments: Any, **options: Any) -> "LoadedPair":
        loaded.append(load_pair(*arguments, **options))
        return loaded[-1]

    target, draft = map(str, qwen_pair_paths)
    engine = Engine(prepared_dir=prepared_dir)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "load_pair", recording)
        request = LoadRequest(target=target, draft=draft, device="cpu", precision="int8")
        engine.load(request, lambda progress: None, CancelToken())
    return engine, loaded[0]
