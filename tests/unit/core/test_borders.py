"""The borders between the parts, and what no file may name."""

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
QT = ("PySide6", "pyqtgraph")
HEAVY = ("torch", "transformers", "accelerate", "bitsandbytes")

FORBIDDEN = [
    ("core", ("app", *QT)),
    ("app/widgets", ("app.storage", "app.controllers", "app.engine", "core.engine")),
    ("app/storage", QT),
]


def _modules(folder: str) -> list[Path]:
    found = sorted((ROOT / folder).rglob("*.py"))
    assert found, f"{folder} has no modules: the test would prove nothing"
    return found


def _imports(nodes: Iterator[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "."
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _runs_on_import(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below ``node`` without function bodies and type-checking blocks."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield child
        yield from _runs_on_import(child)


def _names(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def _breaches(source: str, packages: tuple[str, ...]) -> list[str]:
    return [name for name in _imports(ast.walk(ast.parse(source))) if _names(name, packages)]


@pytest.mark.parametrize(("folder", "packages"), FORBIDDEN)
def test_no_module_imports_across_a_border(folder: str, packages: tuple[str, ...]) -> None:
    found = {
        str(path.relative_to(ROOT)): breaches
        for path in _modules(folder)
        if (breaches := _breaches(path.read_text(encoding="utf-8"), packages))
    }
    assert found == {}


def test_no_module_of_the_window_imports_torch_when_it_is_imported() -> None:
    found = {}
    for path in _modules("app"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = [name for name in _imports(_runs_on_import(tree)) if _names(name, HEAVY)]
        if names:
            found[str(path.relative_to(ROOT))] = names
    assert found == {}


@pytest.mark.parametrize(
    "source",
    [
        "import app",
        "import app.storage.db as db",
        "from app import storage",
        "from app.storage import db",
        "def f():\n    import app",
        "if True:\n    from app.storage.db import Database",
    ],
)
def test_every_way_to_write_a_forbidden_import_is_caught(source: str) -> None:
    assert _breaches(source, ("app",))
    assert not _breaches(source.replace("app", "apples"), ("app",))


def test_an_import_inside_a_function_does_not_run_on_import() -> None:
    tree = ast.parse("def f():\n    import torch\nclass A:\n    import numpy")
    assert list(_imports(_runs_on_import(tree))) == ["numpy"]


@pytest.mark.parametrize(
    ("package", "absent"),
    [("app", HEAVY), ("app.storage", QT), ("core", ("app", *QT))],
)
def test_importing_a_part_loads_nothing_from_beyond_its_border(
    package: str, absent: tuple[str, ...]
) -> None:
    """Imports every module of the part in a fresh interpreter, so that detours count too."""
    program = (
        "import importlib, pkgutil, sys\n"
        f"package = importlib.import_module({package!r})\n"
        "for found in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "    importlib.import_module(found.name)\n"
        f"print(*(name for name in {absent!r} if name in sys.modules))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == ""


# In pieces, so that this file does not name what it forbids.
FORBIDDEN_TEXT = [
    "py" + r"pi\.(org|python\.org)",
    "python" + r"hosted\.org",
    "registry" + r"\.npmjs",
    r"deb(ian)?\.debian" + r"\.org",
    "/wo" + r"rk/",
    "/ro" + r"ot/",
    "/ho" + r"me/(?!me\b)\w",  # "me" is nobody
    "/tm" + r"p/(?!\.X11-unix)",
    "/op" + r"t/(wheels|pypi)",
]


def _tracked_texts() -> Iterator[tuple[str, str]]:
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listing.returncode != 0:
        pytest.skip("this copy is not a git checkout, so nothing says which files are tracked")
    for name in filter(None, listing.stdout.split("\0")):
        path = ROOT / name
        if path.is_file():
            try:
                yield name, path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue  # not a text


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git to know the tracked files")
def test_no_tracked_text_names_a_package_registry_or_a_path_of_one_machine() -> None:
    pattern = re.compile("|".join(FORBIDDEN_TEXT))
    found = [
        f"{name}: {match.group()}"
        for name, text in _tracked_texts()
        for match in pattern.finditer(text)
    ]
    assert found == []
