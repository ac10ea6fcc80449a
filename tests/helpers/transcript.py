"""Messages for the transcript, and what it shows of them."""

from app.records import Message, MessageState
from app.widgets.message import MessageWidget
from app.widgets.transcript import TranscriptView


def user(text: str = "Hello", message_id: int = 1) -> Message:
    return Message(message_id, 1, None, "user", text, 0.0)


def reply(text: str = "", message_id: int = 2, **values: object) -> Message:
    return Message(message_id, 1, 1, "assistant", text, 0.0, **values)


def streaming(message_id: int = 2) -> Message:
    return reply(message_id=message_id, state=MessageState.STREAMING)


def widget_of(view: TranscriptView, message_id: int = 2) -> MessageWidget:
    widget = view.message_widget(message_id)
    assert widget is not None
    return widget


def text_of(view: TranscriptView, message_id: int = 2) -> str:
    views = widget_of(view, message_id).body.views
    return "\n".join(each.toPlainText() for each in views if not each.isHidden())
