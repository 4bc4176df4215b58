"""One event about an object, as causes read it. Pure."""

from datetime import datetime

from msgspec import Struct


class WarningEvent(Struct, frozen=True):
    """One event: the regarded object, the message, and when it happened last."""

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
