"""The users of a shared dashboard: each logs in with a token of the cluster, and acts with it.

The API server checks the token of a user: who the user is, and whether the user may read what the dashboard shows. This is
repeated every few minutes. Tokens are kept in memory only. Browsers get the random number of a session.

Every user gets in: a further session ends the oldest session of a user who has many.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from msgspec import Struct

from kuberuntime.clock import Clock
from kuberuntime.errors import KubeError
from lwsctl.dashboard.actions import Runner
from lwsctl.dashboard.requestchecks import session_in

LONGEST_VISIT: Final = 8 * 3600.0
"""Seconds after which a user must log in again."""

RECHECK: Final = 300.0
"""Seconds after which the rights of a user are checked again."""

MOST_SESSIONS: Final = 256
MOST_OF_USER: Final = 8
"""The maximum number of sessions of one user."""

LONGEST_TOKEN: Final = 16_384


class LoginRejectedError(Exception):
    """Raised for a token that is not accepted; the text gives the reason."""


class Host(Protocol):
    """The cluster that checks tokens, and runs commands with them."""

    async def admit(self, token: str) -> str:
        """Return the name of the user; raise `LoginRejectedError` if there is none, or if it may not read enough."""

    def runner(self, token: str) -> Runner | None:
        """Return what runs commands as this user; None if the dashboard only reads."""


class LoginSession(Struct):
    """A user who is logged in. `action` is the secret of the pages for actions."""

    user: str
    token: str
    expires_at: float
    checked_at: float
    action: str

    def __repr__(self) -> str:
        return f"Visitor({self.user!r})"  # never the token


class LoginSessions:
    """The sessions of one server by number; `new_secret` returns a new random text."""

    def __init__(self, host: Host, clock: Clock, new_secret: Callable[[], str]) -> None:
        self.host = host
        self._clock = clock
        self._new_secret = new_secret
        self._sessions: dict[str, LoginSession] = {}

    async def enter(self, token: str) -> str:
        """Return the number of a new session; raise `LoginRejectedError`."""
        if not token or len(token) > LONGEST_TOKEN:
            raise LoginRejectedError("paste a cluster token")
        user = await self.host.admit(token)
        now = self._clock.monotonic()
        self._forget(now)
        self._make_room(user)
        session = self._new_secret()
        self._sessions[session] = LoginSession(user, token, now + LONGEST_VISIT, now, self._new_secret())
        return session

    async def find(self, cookies: Sequence[str]) -> LoginSession | None:
        """Return the visitor of the only session that cookies name, if the user may still read."""
        session = session_in(cookies)
        now = self._clock.monotonic()
        if session is None or (visitor := self._sessions.get(session)) is None or now >= visitor.expires_at:
            return None
        if now < visitor.checked_at + RECHECK:
            return visitor
        try:
            visitor.user = await self.host.admit(visitor.token)
        except LoginRejectedError:
            self._sessions.pop(session, None)
            return None
        except KubeError:
            return visitor  # without an answer of the API server nothing new is shown either
        visitor.checked_at = now
        return visitor

    def leave(self, cookies: Sequence[str]) -> None:
        """End the session that cookies name, if there is one."""
        self._sessions.pop(session_in(cookies) or "", None)

    def _make_room(self, user: str) -> None:
        """End the oldest session of a user who has too many, or of the user with most sessions if there are too many."""
        numbers = Counter(visitor.user for visitor in self._sessions.values())
        if numbers[user] < MOST_OF_USER:
            if len(self._sessions) < MOST_SESSIONS:
                return
            user = max(numbers, key=numbers.__getitem__)
        # Sessions are in the order of their logins.
        del self._sessions[next(session for session, visitor in self._sessions.items() if visitor.user == user)]

    def _forget(self, now: float) -> None:
        for session in [session for session, visitor in self._sessions.items() if now >= visitor.expires_at]:
            del self._sessions[session]
