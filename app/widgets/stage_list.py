"""The stages of a training, one under the other, and how far the present one is."""

from enum import Enum, auto

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QGridLayout, QLabel, QProgressBar, QVBoxLayout, QWidget

from app.theme import LIGHT, Theme
from app.widgets.elided_label import ElidedLabel
from app.widgets.fonts import derived
from app.widgets.formats import count, short, span
from core.training.events import Progress, Stage

TITLES = {
    Stage.LOAD: "Load the model",
    Stage.GENERATE: "Write text to learn from",
    Stage.READ: "Let the draft read it",
    Stage.TRAIN: "Train the head",
    Stage.EVALUATE: "Measure it",
    Stage.SAVE: "Save it",
}


class Mark(Enum):
    """How a stage stands; the word is for those who do not see the mark."""

    WAITING = auto()
    PRESENT = auto()
    DONE = auto()


class StageMark(QWidget):
    """A ring for what comes, a disc for what is under way, a tick for what is done."""

    def __init__(self) -> None:
        super().__init__()
        self._mark = Mark.WAITING
        self._theme = LIGHT
        self.setFixedSize(18, 18)

    @property
    def mark(self) -> Mark:
        """What is shown."""
        return self._mark

    def set_mark(self, mark: Mark, theme: Theme) -> None:
        """Show ``mark`` in the colours of ``theme``."""
        self._mark, self._theme = mark, theme
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the mark."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        accent = QColor(self._theme.accent)
        circle = QRectF(4, 4, 10, 10)
        if self._mark is Mark.WAITING:
            painter.setPen(QPen(QColor(self._theme.outline), 1.4))
            painter.drawEllipse(circle)
        elif self._mark is Mark.PRESENT:
            painter.setPen(QPen(accent, 1.6))
            painter.drawEllipse(circle.adjusted(-1.5, -1.5, 1.5, 1.5))
            painter.setBrush(accent)
            painter.drawEllipse(circle.adjusted(2, 2, -2, -2))
        else:
            pen = QPen(QColor(self._theme.origins["accepted"].underline_colour), 2)
            pen.setCapStyle(Qt.PenCapStyle.RoundCap)
            painter.setPen(pen)
            painter.drawPolyline([QPointF(4.5, 9.5), QPointF(8, 13), QPointF(14, 5.5)])


class StageList(QWidget):
    """All stages; under them a bar and the numbers of the present one."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._marks: dict[str, StageMark] = {}
        self._titles: dict[str, QLabel] = {}
        self._details: dict[str, ElidedLabel] = {}
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setFixedHeight(6)
        self._numbers = QLabel()
        self._numbers.setProperty("muted", True)
        self._numbers.setWordWrap(True)
        self._numbers.setFont(derived(self.font(), 0.92))
        grid = QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(4)
        grid.setColumnStretch(2, 1)
        for row, (stage, title) in enumerate(TITLES.items()):
            self._marks[stage] = StageMark()
            self._titles[stage] = QLabel(title)
            self._details[stage] = ElidedLabel()
            self._details[stage].setProperty("muted", True)
            grid.addWidget(self._marks[stage], row, 0)
            grid.addWidget(self._titles[stage], row, 1)
            grid.addWidget(self._details[stage], row, 2)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addLayout(grid)
        column.addSpacing(2)
        column.addWidget(self._bar)
        column.addWidget(self._numbers)
        self.clear()

    def clear(self) -> None:
        """No stage has begun."""
        for stage in TITLES:
            self._set(stage, Mark.WAITING)
            self._details[stage].setText("")
            self._show(stage, on=stage != Stage.READ)
        self._bar.show()
        self._numbers.show()
        self._rest("Starting")

    def begin(self, stage: str, detail: str, *, resumed: bool) -> None:
        """A stage begins; those before it are done, and so is any that was under way."""
        if stage not in self._marks:
            return
        before = True
        for each, mark in self._marks.items():
            before = before and each != stage
            if before or mark.mark is Mark.PRESENT:
                self._set(each, Mark.DONE)
        self._set(stage, Mark.PRESENT)
        self._show(stage)
        again = "going on" if resumed else ""
        self._details[stage].setText(", ".join(part for part in (detail, again) if part))
        self._rest("")

    def show_progress(self, progress: Progress, *, waiting: str = "") -> None:
        """Show how far the present stage is; ``waiting`` says that it does not go on now."""
        if progress.total > 0:
            self._bar.setRange(0, 1000)
            self._bar.setValue(round(1000 * min(1.0, progress.done / progress.total)))
        self._numbers.setText(waiting or progress_words(progress))

    def finish(self, words: str, *, complete: bool) -> None:
        """Nothing is under way any more; with ``complete`` every stage is done."""
        for stage, mark in self._marks.items():
            if complete:
                self._set(stage, Mark.DONE)
            elif mark.mark is Mark.PRESENT:
                self._set(stage, Mark.WAITING)
        self._bar.setVisible(not complete)
        self._numbers.setVisible(not complete)
        self._numbers.setText(words)

    def marks(self) -> dict[str, Mark]:
        """How every stage stands."""
        return {stage: mark.mark for stage, mark in self._marks.items()}

    def words(self) -> str:
        """The numbers of the present stage."""
        return self._numbers.text()

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of ``theme``."""
        self._theme = theme
        for mark in self._marks.values():
            mark.set_mark(mark.mark, theme)

    def sizeHint(self) -> QSize:
        """As wide as there is room."""
        return QSize(360, super().sizeHint().height())

    def _set(self, stage: str, mark: Mark) -> None:
        self._marks[stage].set_mark(mark, self._theme)
        title = self._titles[stage]
        title.setFont(derived(self.font(), 1.0, bold=mark is Mark.PRESENT))
        title.setProperty("muted", mark is Mark.WAITING)
        title.setAccessibleName(f"{title.text()}: {mark.name.lower()}")
        title.style().unpolish(title)
        title.style().polish(title)

    def _show(self, stage: str, *, on: bool = True) -> None:
        """A stage that not every training has is shown once it begins."""
        for part in (self._marks[stage], self._titles[stage], self._details[stage]):
            part.setVisible(on)

    def _rest(self, words: str) -> None:
        self._bar.setRange(0, 1000)
        self._bar.setValue(0)
        self._numbers.setText(words)


def progress_words(progress: Progress) -> str:
    """Return the numbers of a stage on one line."""
    if progress.unit == "percent":
        return f"{progress.done} %"
    parts = [f"{count(progress.done)} of {count(progress.total)} {progress.unit}"]
    if progress.tokens_per_second:
        parts.append(f"{short(progress.tokens_per_second)} tok/s")
    if progress.seconds_left is not None:
        parts.append(f"{span(progress.seconds_left)} left")
    return " · ".join(parts)
