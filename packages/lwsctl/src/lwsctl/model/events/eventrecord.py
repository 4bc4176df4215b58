"""Defines the event type that causes use. Pure."""

from datetime import datetime

from msgspec import Struct


class WarningEvent(Struct, frozen=True):
    """An event with the involved object, the message, and its last time."""

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
