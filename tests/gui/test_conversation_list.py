"""The conversations at the left of the window."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import pytest
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtWidgets import QLineEdit, QMenu
from pytestqt.qtbot import QtBot

from app.qtmodels.conversations import ConversationsModel
from app.records import Conversation
from app.theme import LIGHT
from app.widgets import conversation_list
from app.widgets.conversation_list import ConversationList
from app.widgets.conversation_row import ConversationDelegate

NOW = datetime(2026, 3, 15, 10, 0)


def conversation(number: int, title: str, age: timedelta = timedelta()) -> Conversation:
    used = (NOW - age).timestamp()
    return Conversation(id=number, title=title, created_at=used, updated_at=used)


CHATS = [
    conversation(1, "Hash tables", timedelta(hours=1)),
    conversation(2, "Trip to Bath", timedelta(hours=11)),
    conversation(3, "SQL joins", timedelta(days=3)),
    conversation(4, "Parser", timedelta(days=40)),
]


@pytest.fixture
def chats(qtbot: QtBot) -> ConversationList:
    widget = ConversationList()
    widget.set_theme(LIGHT)
    qtbot.addWidget(widget)
    widget.resize(220, 500)
    widget.show()
    widget.set_conversations(CHATS)
    return widget


def click(chats: ConversationList, qtbot: QtBot, number: int) -> None:
    place = chats.view.visualRect(chats.model.index_of(number)).center()
    qtbot.mouseClick(chats.view.viewport(), Qt.MouseButton.LeftButton, pos=place)


def test_rows_are_grouped_by_when_they_were_last_used() -> None:
    model = ConversationsModel(now=lambda: NOW)
    model.set_conversations(CHATS)
    rows = [model.index(row).data() for row in range(model.rowCount())]
    assert rows == [
        "Today",
        "Hash tables",
        "Yesterday",
        "Trip to Bath",
        "Previous 7 days",
        "SQL joins",
        "Older",
        "Parser",
    ]


def test_a_heading_can_be_neither_chosen_nor_edited() -> None:
    model = ConversationsModel(now=lambda: NOW)
    model.set_conversations(CHATS)
    assert model.flags(model.index(0)) == Qt.ItemFlag.NoItemFlags
    assert not model.setData(model.index(0), "x")


def test_a_chat_from_the_future_counts_as_today() -> None:
    model = ConversationsModel(now=lambda: NOW)
    model.set_conversations([conversation(1, "x", timedelta(days=-5))])
    assert model.index(0).data() == "Today"


def test_a_click_tells_the_conversation_once(chats: ConversationList, qtbot: QtBot) -> None:
    told: list[int] = []
    chats.selected.connect(told.append)
    click(chats, qtbot, 2)
    click(chats, qtbot, 2)
    assert told == [2]


def test_setting_the_current_one_tells_nothing(chats: ConversationList, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(chats.selected, wait=250):
        chats.set_current(3)
        chats.set_conversations(CHATS)
    assert chats.view.currentIndex() == chats.model.index_of(3)


def test_held_arrow_keys_tell_only_where_they_stop(chats: ConversationList, qtbot: QtBot) -> None:
    told: list[int] = []
    chats.set_current(1)
    chats.selected.connect(told.append)
    chats.view.setFocus()
    qtbot.keyClick(chats.view, Qt.Key.Key_Down)
    qtbot.keyClick(chats.view, Qt.Key.Key_Down)
    qtbot.waitUntil(lambda: told == [3])


def test_a_current_one_that_is_not_listed_marks_nothing(chats: ConversationList) -> None:
    chats.set_current(99)
    assert not chats.view.currentIndex().isValid()
    chats.set_current(None)
    assert not chats.view.currentIndex().isValid()


def editor(chats: ConversationList) -> QLineEdit:
    found = [each for each in chats.view.findChildren(QLineEdit) if each.isVisible()]
    assert len(found) == 1
    return found[0]


def test_f2_renames_in_place(chats: ConversationList, qtbot: QtBot) -> None:
    told: list[tuple[int, str]] = []
    chats.renamed.connect(lambda number, title: told.append((number, title)))
    chats.set_current(2)
    chats.view.setFocus()
    qtbot.keyClick(chats.view, Qt.Key.Key_F2)
    field = editor(chats)
    field.setText("  Trip   to Wells ")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: told == [(2, "Trip to Wells")])
    assert chats.model.index_of(2).data() == "Trip to Wells"


def test_an_empty_title_leaves_the_old_one(chats: ConversationList, qtbot: QtBot) -> None:
    index = chats.model.index_of(2)
    with qtbot.assertNotEmitted(chats.renamed):
        assert not chats.model.setData(index, "   ")
        assert not chats.model.setData(index, "Trip to Bath")
        assert not chats.model.setData(QModelIndex(), "x")


def test_delete_asks_first_and_enter_keeps(chats: ConversationList, qtbot: QtBot) -> None:
    told: list[int] = []
    chats.deleted.connect(told.append)
    chats.set_current(3)
    chats.view.setFocus()
    qtbot.keyClick(chats.view, Qt.Key.Key_Delete)
    assert chats._confirm.isVisible()
    assert "SQL joins" in chats._question.text()
    assert chats.focusWidget() is chats._keep
    qtbot.keyClick(chats._keep, Qt.Key.Key_Escape)
    assert not chats._confirm.isVisible()
    assert told == []
    qtbot.keyClick(chats.view, Qt.Key.Key_Delete)
    qtbot.mouseClick(chats._delete, Qt.MouseButton.LeftButton)
    assert told == [3]
    assert not chats._confirm.isVisible()


def test_the_question_goes_when_its_conversation_does(chats: ConversationList) -> None:
    chats.ask_delete(3)
    chats.set_conversations(CHATS[:2])
    assert not chats._confirm.isVisible()


def test_the_menu_offers_rename_and_delete(chats: ConversationList, qtbot: QtBot) -> None:
    place = chats.view.visualRect(chats.model.index_of(1)).center()
    chats.view.customContextMenuRequested.emit(place)
    menu = chats.findChild(QMenu)
    assert isinstance(menu, QMenu)
    assert [action.text() for action in menu.actions()] == ["Rename", "Delete…"]
    menu.actions()[1].trigger()
    menu.close()
    assert chats._confirm.isVisible()


def test_searching_is_told_once_typing_rests(chats: ConversationList, qtbot: QtBot) -> None:
    told: list[str] = []
    chats.searched.connect(told.append)
    qtbot.keyClicks(chats._search, "hash")
    qtbot.waitUntil(lambda: told == ["hash"])
    chats._search.clear()
    qtbot.waitUntil(lambda: told == ["hash", ""])


def test_an_empty_list_says_why(chats: ConversationList) -> None:
    chats.set_conversations([])
    assert chats._empty.isVisible()
    assert "No conversations yet" in chats._empty.text()
    chats._search.setText("zebra")
    chats.set_conversations([])
    assert "zebra" in chats._empty.text()
    chats.set_conversations(CHATS)
    assert not chats._empty.isVisible()


def test_of_five_thousand_conversations_only_what_is_seen_is_measured_and_painted(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = Counter[str]()

    def counted(name: str, owner: type, methods: Sequence[str]) -> None:
        def counting(method: str) -> Callable[..., object]:
            real = getattr(owner, method)

            def call(*arguments: object) -> object:
                counts[method] += 1
                return real(*arguments)

            return call

        # A class of its own: Qt keeps what an object overrides, for as long as the object lives.
        own = type(owner)(name, (owner,), {method: counting(method) for method in methods})
        monkeypatch.setattr(conversation_list, name, own)

    counted("ConversationDelegate", ConversationDelegate, ("sizeHint", "paint"))
    counted("ConversationsModel", ConversationsModel, ("data", "flags"))
    chats = ConversationList()
    qtbot.addWidget(chats)
    chats.resize(220, 500)
    chats.show()
    many = [
        conversation(number, f"Chat {number}", timedelta(hours=number)) for number in range(5_000)
    ]
    counts.clear()
    chats.set_conversations(many)
    chats.set_current(4_000)
    chats.grab()
    assert 0 < counts["paint"] < 100  # the view has room for some 15 rows
    assert counts["data"] > 0
    assert max(counts.values()) < 500, counts


def test_the_new_button_and_the_tooltip_of_a_long_title(
    chats: ConversationList, qtbot: QtBot
) -> None:
    with qtbot.waitSignal(chats.newClicked):
        qtbot.mouseClick(chats._new, Qt.MouseButton.LeftButton)
    tip = chats.model.index_of(1).data(Qt.ItemDataRole.ToolTipRole)
    assert tip.startswith("Hash tables")


def test_that_nothing_is_kept_stays_said_and_an_empty_list_does_not_deny_stored_chats(
    chats: ConversationList,
) -> None:
    chats.set_unkept("Nothing is kept.", unread=True)
    chats.set_conversations(CHATS)
    assert chats._note.isVisible()
    assert chats._note.text() == "Nothing is kept."
    chats.set_conversations([])
    assert chats._note.isVisible()
    assert chats._empty.text() == "The stored conversations could not be opened."
    chats.set_unkept("", unread=False)
    assert not chats._note.isVisible()
    assert chats._empty.text().startswith("No conversations yet")
