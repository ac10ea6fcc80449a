"""The drop-down list with a second line under each entry."""

from pytestqt.qtbot import QtBot

from app.records import Choice
from app.widgets.choice_box import ChoiceBox

LONG = "A second line that is so long that a narrow list has to break it into three or more lines."


def test_rows_are_as_high_as_their_words_whatever_width_the_box_had_before(qtbot: QtBot) -> None:
    box = ChoiceBox()
    qtbot.addWidget(box)
    box.resize(900, 30)
    box.set_choices([Choice(str(number), f"Entry {number}", LONG) for number in range(3)])
    view, model = box.view(), box.model()
    view.doItemsLayout()
    wide = view.visualRect(model.index(1, 0)).height()
    box.resize(200, 30)
    box.show()
    box.showPopup()
    narrow = view.visualRect(model.index(1, 0)).height()
    assert narrow > wide
    assert view.visualRect(model.index(1, 0)).top() == narrow
    box.hidePopup()
