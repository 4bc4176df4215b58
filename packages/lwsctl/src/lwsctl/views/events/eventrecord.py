"""An event, in the form that causes use. Pure."""

from datetime import datetime

from msgspec import Struct


class WarningEvent(Struct, frozen=True):
    """An event: the involved object, the message, and when it last occurred."""

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
