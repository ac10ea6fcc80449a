"""Hatch build hook: a wheel carries app, core and resources inside the launcher's package.

Modules literally named ``app`` and ``core`` in site-packages would collide with other projects,
so a standard wheel has them under ``paceline/_lib``, which the launcher puts on ``sys.path``.
An editable install exposes the checkout as it is.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUNDLED = ("app", "core", "resources")


class BundleHook(BuildHookInterface[Any]):
    """Adds the bundled folders to standard wheels."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Extend ``build_data`` before the wheel is written; ``version`` is its kind."""
        if version != "standard":
            return
        for name in BUNDLED:
            build_data["force_include"][str(Path(self.root, name))] = f"paceline/_lib/{name}"
