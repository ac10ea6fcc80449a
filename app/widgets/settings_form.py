"""The fields of the settings panel, section by section."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from app.records import Choice
from app.settings import MAX_FONT_POINTS, MIN_FONT_POINTS
from app.widgets.fields import (
    CheckField,
    ChoiceField,
    Field,
    PathField,
    SeedField,
    StopField,
    TextField,
)
from app.widgets.fonts import derived
from app.widgets.gamma_field import GammaField
from app.widgets.number_fields import SlidingField, WholeField
from app.widgets.settings_choices import DEVICES, DRAFTERS, PRECISIONS, RULES, THEMES

HEAD_UNKNOWN = "looked for when the models are loaded"
LABEL_PX = 78
_LINES = 3
"""Grid lines a row: the label or the pair of both, a field under its label, a note."""


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled field. ``name`` is the field of Settings; ``above`` puts the label on top."""

    name: str
    label: str
    field: Field
    help: str
    above: bool = False


def model_rows() -> tuple[Row, ...]:
    """Which models."""
    pair = choice(())
    pair.box.setAccessibleName("Model pair")  # the title of the section is its label
    return (
        Row("pair", "", pair, "The target and the draft that go with it.", True),
        Row(
            "target_path",
            "Target",
            PathField("GGUF file or folder"),
            "The large model that decides every token.",
            True,
        ),
        Row(
            "draft_path",
            "Draft",
            PathField("GGUF file or folder (optional)"),
            "The small model that runs ahead; leave it empty to do without.",
            True,
        ),
    )


def device_rows() -> tuple[Row, ...]:
    """Where the models run, and how precise."""
    return (
        Row(
            "precision",
            "Precision",
            choice(PRECISIONS, details=False),
            "The number format of the weights.",
        ),
        Row("device", "Device", choice(DEVICES, details=False), "Where the models run."),
    )


def drafting_rows() -> tuple[Row, ...]:
    """Who drafts, how far ahead, by which rule."""
    return (
        Row("drafter", "Drafter", choice(DRAFTERS), "Who proposes the tokens to be verified."),
        Row(
            "gamma",
            "Gamma",
            GammaField(),
            "How many tokens are drafted in a round. Automatic: as many as make the most tokens "
            "per second, and none where drafting does not pay.",
        ),
        Row(
            "rule",
            "Rule",
            choice(RULES),
            "How drafted tokens are accepted. At temperature 0 every rule takes what the target "
            "likes best.",
        ),
        Row(
            "ensemble_weight",
            "Weight",
            SlidingField(0, 1, usual=(0, 1)),
            "The target's share of the mixture; at 1 the rule is exact, at 0 the draft decides.",
        ),
        Row(
            "typical_epsilon",
            "Epsilon",
            SlidingField(0, 1, usual=(0, 0.5), step=0.01),
            "The highest limit: what the target finds likelier than this is accepted.",
        ),
        Row(
            "typical_delta",
            "Delta",
            SlidingField(0, 1, usual=(0, 1)),
            "How far the limit sinks where the target is unsure; lower accepts more.",
        ),
        Row(
            "head_path",
            "Head",
            PathField(HEAD_UNKNOWN),
            "The folder of a trained head that drafts; empty takes the best one that was made for "
            "these models, and says which.",
            True,
        ),
    )


def sampling_rows() -> tuple[Row, ...]:
    """How the next token is drawn."""
    return (
        Row(
            "temperature",
            "Temperature",
            SlidingField(0, 100, usual=(0, 2)),
            "How freely tokens are drawn; 0 always takes the likeliest.",
        ),
        Row(
            "top_k",
            "Top-k",
            WholeField(0, 1_000_000, special="off"),
            "Only the k likeliest tokens may be drawn.",
        ),
        Row(
            "top_p",
            "Top-p",
            SlidingField(0.01, 1, usual=(0.05, 1)),
            "Only the likeliest tokens that together reach this probability; 1 is off.",
        ),
        Row(
            "min_p",
            "Min-p",
            SlidingField(0, 1, usual=(0, 0.5), step=0.01),
            "Only tokens with this share of the likeliest one's probability; 0 is off.",
        ),
        Row(
            "repetition_penalty",
            "Repetition",
            SlidingField(0.01, 100, usual=(1, 2)),
            "Repetition penalty: above 1 makes tokens already in the text less likely; 1 is off.",
        ),
        Row(
            "presence_penalty",
            "Presence",
            SlidingField(-100, 100, usual=(-2, 2)),
            "Presence penalty: taken once from every token already in the text; 0 is off.",
        ),
        Row(
            "frequency_penalty",
            "Frequency",
            SlidingField(-100, 100, usual=(-2, 2)),
            "Frequency penalty: taken for each time a token is in the text; 0 is off.",
        ),
        Row(
            "seed",
            "Seed",
            SeedField(),
            "The same seed repeats a reply while gamma is fixed; empty draws a new one.",
        ),
    )


def reply_rows() -> tuple[Row, ...]:
    """What is said first, and where a reply ends."""
    system = TextField(lines=4, placeholder="None: the model's own default applies.")
    return (
        Row("system_prompt", "System prompt", system, "What the model is told first.", True),
        Row(
            "max_new_tokens",
            "Max tokens",
            WholeField(1, 1_000_000, step=64),
            "A reply ends at the latest after so many tokens.",
        ),
        Row("stop", "Stop strings", StopField(), "A reply ends before any of these.", True),
    )


def appearance_rows() -> tuple[Row, ...]:
    """How the window looks."""
    return (
        Row("theme", "Theme", choice(THEMES), "Light or dark."),
        Row(
            "font_points",
            "Font size",
            WholeField(MIN_FONT_POINTS - 1, MAX_FONT_POINTS, special="system"),
            "Size of the text in points.",
        ),
        Row(
            "colouring",
            "",
            CheckField("Colour tokens by origin"),
            "Shows which tokens were drafted and which the target spoke.",
            above=True,
        ),
    )


def choice(choices: Sequence[Choice], *, details: bool = True) -> ChoiceField:
    """Return a field that offers ``choices`` and, with ``details``, explains the chosen one."""
    field = ChoiceField(details=details)
    field.box.set_choices(choices)
    return field


class Form(QWidget):
    """Lays rows out: labels left of their fields, or above those that need the width."""

    def __init__(self, rows: Sequence[Row]) -> None:
        super().__init__()
        self._labels: dict[str, QLabel] = {}
        self._rows = {row.name: row for row in rows}
        self._lines = {row.name: _LINES * place for place, row in enumerate(rows)}
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(18, 0, 0, 8)
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(6)
        self._grid.setColumnMinimumWidth(0, LABEL_PX)
        self._grid.setColumnStretch(1, 1)
        for row in rows:
            self._add(row)

    def add_note(self, text: str, after: str) -> None:
        """Put a muted sentence under the row named ``after``."""
        note = QLabel(text)
        note.setWordWrap(True)
        note.setContentsMargins(0, 4, 0, 0)
        note.setProperty("muted", True)
        note.setFont(derived(self.font(), 0.88))
        self._grid.addWidget(note, self._lines[after] + 2, 0, 1, 2)

    def set_row_visible(self, name: str, visible: bool) -> None:
        """Show or hide the row of ``name`` with its label."""
        self._rows[name].field.setVisible(visible)
        if name in self._labels:
            self._labels[name].setVisible(visible)

    def _add(self, row: Row) -> None:
        line = self._lines[row.name]
        row.field.set_help(row.help)
        if row.above:
            self._grid.addWidget(row.field, line + 1, 0, 1, 2)
        else:
            self._grid.addWidget(row.field, line, 1)
        if not row.label:
            return
        label = QLabel(row.label)
        label.setBuddy(row.field.control)
        label.setToolTip(row.help)
        self._labels[row.name] = label
        if row.above:
            label.setContentsMargins(0, 4 if line else 0, 0, 0)
            self._grid.addWidget(label, line, 0, 1, 2)
        else:
            # Beside the first line of its field, which may have a detail below.
            tallest = max(widget.sizeHint().height() for widget in row.field.inputs)
            label.setMinimumHeight(tallest)
            self._grid.addWidget(label, line, 0, Qt.AlignmentFlag.AlignTop)
        for widget in row.field.inputs:
            if not widget.accessibleName():
                widget.setAccessibleName(row.label)
