"""The training that runs: its stages, its plots, what it made, and what went wrong."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.theme import Theme
from app.training_records import Phase, TrainedHead
from app.widgets.fonts import derived
from app.widgets.margins import side_margin
from app.widgets.notice_bar import NoticeBar
from app.widgets.scroll import scrolled
from app.widgets.stage_list import StageList
from app.widgets.training_plots import HeadAcceptancePlot, LossPlot, position_bars, rate_bars
from app.widgets.training_result import TrainingResult
from core.training.events import Earlier, Evaluated, Progress

_SIDE_BY_SIDE = 520
"""The column's width in pixels from which the plots stand beside each other."""
_NOTES = 6
"""The most remarks that are shown, the newest last."""
_INTRO_TITLE = "A small head that drafts for your model"
_INTRO = (
    "A multi-token prediction (MTP) head reads what the model computes anyway and guesses the "
    "tokens that come next. The model checks the guesses in one pass, so that its words stay its "
    "own and only the speed changes.",
    "The model first answers many prompts. The head then learns from that text, and is measured "
    "on answers it has not seen. All of it happens on this computer, in a process of its own: "
    "you can go on chatting, more slowly.",
    "You can stop at any time, close the window or lose power. What was made is kept, and the "
    "training goes on from it.",
)


class TrainingRunView(QWidget):
    """Shows one training from its beginning to its end, or what a training is.

    Lives in the window thread; only shows and tells.
    """

    pauseClicked = Signal()
    resumeClicked = Signal()
    stopClicked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.bar = NoticeBar()
        self.stages = StageList()
        self.loss = LossPlot()
        self.acceptance = HeadAcceptancePlot()
        self.result = TrainingResult()
        self._positions = position_bars()
        self._intro_title = QLabel(_INTRO_TITLE)
        self._intro = QWidget()
        self._run = QWidget()
        self._plots = QWidget()
        self._title = QLabel()
        self._pause = QPushButton("Pause")
        self._stop = QPushButton("Stop")
        self._notes = QLabel()
        self._phase = Phase.IDLE
        self._last: Progress | None = None
        self._texts: list[str] = []
        self._build()
        self.show_intro()

    # -- what is shown ------------------------------------------------------------------------

    def show_intro(self) -> None:
        """Nothing was trained yet: say what this is."""
        self._run.hide()
        self.result.hide()
        self._intro.show()

    def begin(self, title: str) -> None:
        """A training begins."""
        self._title.setText(title)
        self._texts.clear()
        self._show_notes()
        self._last = None
        self.stages.clear()
        self.loss.clear()
        self.acceptance.clear()
        self._positions.set_bars(())
        self._positions.show()
        self._plots.hide()
        self.result.hide()
        self.bar.dismiss()
        self._intro.hide()
        self._run.show()

    def set_phase(self, phase: Phase) -> None:
        """Show whether the training runs, waits or ends."""
        self._phase = phase
        at_work = phase is not Phase.IDLE
        self._pause.setVisible(at_work)
        self._stop.setVisible(at_work)
        self._pause.setText("Go on" if phase is Phase.PAUSED else "Pause")
        self._pause.setEnabled(phase in (Phase.RUNNING, Phase.PAUSED))
        self._stop.setText("Stopping…" if phase is Phase.STOPPING else "Stop")
        self._stop.setEnabled(phase in (Phase.RUNNING, Phase.PAUSED))
        if self._last is not None and at_work:
            self.show_progress(self._last)

    def show_stage(self, stage: str, detail: str, *, resumed: bool) -> None:
        """A stage begins."""
        self._last = None
        self.stages.begin(stage, detail, resumed=resumed)

    def show_progress(self, progress: Progress) -> None:
        """Show how far the stage is."""
        self._last = progress
        waiting = {Phase.PAUSED: "Paused", Phase.STOPPING: "Keeping what was made"}
        self.stages.show_progress(progress, waiting=waiting.get(self._phase, ""))
        if progress.loss is not None and self._phase is Phase.RUNNING:
            self._plots.show()
            self.loss.add(progress.step, progress.loss)

    def show_evaluated(self, found: Evaluated) -> None:
        """Show what was measured on the way."""
        self._plots.show()
        self.acceptance.add(found.step, found.length, len(found.acceptance))
        self._positions.set_bars(rate_bars(found.acceptance))

    def show_earlier(self, earlier: Earlier, depth: int) -> None:
        """Show how a training that goes on went before; its head drafts ``depth`` tokens."""
        for step, loss in zip(earlier.loss_steps, earlier.losses, strict=True):
            self.loss.add(step, loss)
        for step, length in zip(earlier.length_steps, earlier.lengths, strict=True):
            self.acceptance.add(step, length, depth)

    def add_note(self, text: str) -> None:
        """Show a remark of the run."""
        if text not in self._texts:
            self._texts = [*self._texts, text][-_NOTES:]
            self._show_notes()

    def finish(self, head: TrainedHead) -> None:
        """The head is made."""
        self.set_phase(Phase.IDLE)
        self.stages.finish("", complete=True)
        self.result.show_head(head)
        self._title.setText("How it went")
        self._positions.set_bars(())  # the card above has them
        self._positions.hide()

    def end(self, words: str) -> None:
        """The training ended before its head was made; ``words`` say how far it is."""
        self.set_phase(Phase.IDLE)
        self.stages.finish(words, complete=False)

    def show_notice(
        self, text: str, actions: Sequence[tuple[str, str]], *, error: bool = False
    ) -> None:
        """Say something above everything else, with its buttons; the first one is expected."""
        self.bar.show_notice(text, actions, error=error, primary=not error)

    def dismiss_notice(self) -> None:
        """Take that away."""
        self.bar.dismiss()

    def notes(self) -> str:
        """The remarks that are shown."""
        return self._notes.text()

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of ``theme``."""
        self._intro_title.setFont(derived(self.font(), 1.35, bold=True))
        self._title.setFont(derived(self.font(), 1.15, bold=True))
        for part in (
            self.bar,
            self.stages,
            self.loss,
            self.acceptance,
            self.result,
            self._positions,
        ):
            part.set_theme(theme)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep to the column of the chat, and put the plots where they fit."""
        super().resizeEvent(event)
        width = self.width()
        side = side_margin(width)
        self._body.setContentsMargins(side, 16, side, 20)
        beside = width - 2 * side >= _SIDE_BY_SIDE
        direction = QBoxLayout.Direction
        self._pair.setDirection(direction.LeftToRight if beside else direction.TopToBottom)

    # -- layout ---------------------------------------------------------------------------------

    def _show_notes(self) -> None:
        self._notes.setText("\n".join(self._texts))
        self._notes.setVisible(bool(self._texts))

    def _on_pause(self) -> None:
        if self._phase is Phase.PAUSED:
            self.resumeClicked.emit()
        else:
            self.pauseClicked.emit()

    def _build(self) -> None:
        self._pause.clicked.connect(self._on_pause)
        self._stop.clicked.connect(self.stopClicked)
        self._stop.setToolTip("Stops the training. What was made is kept, and it can go on later.")
        self._pause.setToolTip("The training waits and keeps its memory.")
        self._build_intro()
        self._build_run()
        content = QWidget()
        outer = QVBoxLayout(content)
        outer.setContentsMargins(0, 8, 0, 0)
        outer.setSpacing(0)
        outer.addWidget(self.bar)
        self._body = QVBoxLayout()
        self._body.setSpacing(16)
        self._body.addWidget(self.result)
        self._body.addWidget(self._run)
        self._body.addWidget(self._intro)
        outer.addLayout(self._body)
        outer.addStretch(1)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(scrolled(content))

    def _build_intro(self) -> None:
        column = QVBoxLayout(self._intro)
        column.setContentsMargins(0, 8, 0, 0)
        column.setSpacing(12)
        self._intro_title.setWordWrap(True)
        self._intro_title.setProperty("heading", True)
        column.addWidget(self._intro_title)
        for text in _INTRO:
            label = QLabel(text)
            label.setWordWrap(True)
            label.setProperty("muted", True)
            column.addWidget(label)

    def _build_run(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(8)
        self._title.setWordWrap(True)
        self._title.setProperty("heading", True)
        head.addWidget(self._title, 1)
        head.addWidget(self._pause, 0, Qt.AlignmentFlag.AlignTop)
        head.addWidget(self._stop, 0, Qt.AlignmentFlag.AlignTop)
        self._notes.setWordWrap(True)
        self._notes.setTextFormat(Qt.TextFormat.PlainText)
        self._notes.setProperty("muted", True)
        self._notes.setFont(derived(self.font(), 0.92))
        right = QVBoxLayout()
        right.setSpacing(8)
        right.addWidget(self.acceptance)
        right.addWidget(self._positions)
        left = QVBoxLayout()
        left.addWidget(self.loss)
        left.addStretch(1)
        self._pair = QBoxLayout(QBoxLayout.Direction.LeftToRight, self._plots)
        self._pair.setContentsMargins(0, 0, 0, 0)
        self._pair.setSpacing(20)
        self._pair.addLayout(left, 1)
        self._pair.addLayout(right, 1)
        column = QVBoxLayout(self._run)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(14)
        column.addLayout(head)
        column.addWidget(self.stages)
        column.addWidget(self._notes)
        column.addWidget(self._plots)
