"""Own line icons, drawn in any colour at any resolution."""

from pathlib import Path

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

_FOLDER = Path(__file__).resolve().parents[2] / "resources" / "icons"
_PIXELS = (16, 32, 48)


def icon(name: str, colour: str) -> QIcon:
    """Return ``resources/icons/<name>.svg`` with its lines in ``colour`` (#rrggbb).

    Raises FileNotFoundError when there is no such icon. Needs a running application.
    """
    source = (_FOLDER / f"{name}.svg").read_text(encoding="utf-8").replace("currentColor", colour)
    renderer = QSvgRenderer(QByteArray(source.encode()))
    result = QIcon()
    for size in _PIXELS:
        pixmap = QPixmap(size, size)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        renderer.render(painter, QRectF(0, 0, size, size))
        painter.end()
        result.addPixmap(pixmap)
    return result
