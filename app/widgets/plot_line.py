"""A line of a live plot that costs little to repaint."""

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from app.qtmodels.ring import Floats


class PlotLine(QGraphicsItem):
    """A line over the whole picture of its plot.

    What pyqtgraph does for every repaint of a curve, to know where it lies and how broad its pen
    is, the plot that sets the range knows already.
    """

    def __init__(self) -> None:
        super().__init__()
        self._picture = QRectF()
        self._path = QPainterPath()
        self._pen = QPen()
        self._smooth = False
        self._points: tuple[Floats, Floats] = (np.empty(0), np.empty(0))

    def set_pen(self, pen: QPen, *, smooth: bool = False) -> None:
        """Draw with ``pen``, its width in pixels; ``smooth`` with soft edges."""
        self._pen, self._smooth = pen, smooth
        self.update()

    def set_picture(self, picture: QRectF) -> None:
        """Set what the plot shows, in its own units."""
        if picture != self._picture:
            self.prepareGeometryChange()
            self._picture = picture

    def set_points(self, x: Floats, y: Floats) -> None:
        """Draw a line through the points."""
        self._points = (x, y)
        self._path = pg.arrayToQPath(x, y, finiteCheck=False)
        self.update()

    def set_steps(self, edges: Floats, y: Floats) -> None:
        """Draw ``y[i]`` from ``edges[i]`` to ``edges[i + 1]``."""
        self._points = (edges, y)
        self._path = pg.arrayToQPath(edges.repeat(2)[1:-1], y.repeat(2), finiteCheck=False)
        self.update()

    def points(self) -> tuple[Floats, Floats]:
        """What was set last."""
        return self._points

    def boundingRect(self) -> QRectF:
        """The whole picture: the line may be anywhere in it."""
        return self._picture

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        """Paint the line."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, self._smooth)
        painter.setPen(self._pen)
        painter.drawPath(self._path)
