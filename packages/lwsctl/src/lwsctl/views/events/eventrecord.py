"""The event type for causes. Pure."""

from datetime import datetime

from msgspec import Struct


class WarningEvent(Struct, frozen=True):
    """An event: the involved object, the message, and its last time."""

    kind: str
    name: str
    uid: str
    reason: str
    message: str
    last: datetime
    related: str
    component: str = ""
    host: str = ""
    is_warning: bool = True
