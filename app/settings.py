"""What the person chose, kept between starts in one JSON file."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every choice of the settings panel and the window.

    ``pair`` is a pair id of the catalog, or "custom" for ``target_path`` / ``draft_path``.
    ``gamma`` 0 decodes plainly. ``seed`` None draws a fresh one for every reply.
    """

    pair: str = "smollm2-135m"
    target_path: str = ""
    draft_path: str = ""
    device: str = "auto"
    precision: str = "auto"
    drafter: str = "hybrid"
    gamma: int = 5
    rule: str = "exact"
    temperature: float = 0.7
    top_k: int = 0
    top_p: float = 0.95
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int | None = None
    max_new_tokens: int = 1024
    stop: tuple[str, ...] = ()
    system_prompt: str = ""
    theme: str = "system"
    colouring: bool = True
    font_points: int = 0
    """0 follows the system."""
