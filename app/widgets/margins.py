"""The one column that chat, legend, notices and composer keep to."""

TEXT_WIDTH = 760
MARGIN = 24


def side_margin(width: int) -> int:
    """Return the room at each side of the column in a widget of ``width``."""
    return max((width - TEXT_WIDTH) // 2, MARGIN)
