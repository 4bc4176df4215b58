"""Manages the users of a shared dashboard, who log in with a cluster token. Their actions use this token.

The API server checks the identity of the token's user, and whether the user has permission to read the dashboard
data. These checks are repeated every few minutes. Tokens are stored only in memory. Browsers receive a random session
number.

Users are never locked out, because a new session closes the oldest session of a user with too many sessions.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from msgspec import Struct

from kuberuntime.clock import Clock
from kuberuntime.errors import KubeError
from lwsctl.dashboard.actions import Runner
from lwsctl.dashboard.requestchecks import find_session

LONGEST_SESSION: Final = 8 * 3600.0
"""The time in seconds after which a user must log in again."""

RECHECK: Final = 300.0
"""The interval in seconds between permission checks of a user."""

MOST_SESSIONS: Final = 256
MOST_OF_USER: Final = 8
"""The maximum number of sessions of one user."""

LONGEST_TOKEN: Final = 16_384


class LoginRejectedError(Exception):
    """Raised if the token is rejected. The message contains the reason."""


class Host(Protocol):
    """The cluster, which checks tokens and runs commands with them."""

    async def admit(self, token: str) -> str:
        """Return the user name. Raise `LoginRejectedError` if the user is unknown or has no read permission."""

    def runner(self, token: str) -> Runner | None:
        """Return an object that runs commands as this user, or None if the dashboard is read-only."""


class LoginSession(Struct):
    """A logged-in user. `action_token` is the CSRF token that pages send with each action."""

    user: str
    token: str
    expires_at: float
    checked_at: float
    action_token: str

    def __repr__(self) -> str:
        return f"Visitor({self.user!r})"  # never the token


class LoginSessions:
    """The login sessions of a server, by session ID. `new_secret` returns a new random string."""

    def __init__(self, host: Host, clock: Clock, new_secret: Callable[[], str]) -> None:
        self.host = host
        self._clock = clock
        self._new_secret = new_secret
        self._sessions: dict[str, LoginSession] = {}

    async def open(self, token: str) -> str:
        """Return the ID of a new session, or raise `LoginRejectedError`."""
        if not token or len(token) > LONGEST_TOKEN:
            raise LoginRejectedError("paste a cluster token")
        user = await self.host.admit(token)
        now = self._clock.monotonic()
        self._sessions = {session: login for session, login in self._sessions.items() if now < login.expires_at}
        self._make_room(user)
        session = self._new_secret()
        self._sessions[session] = LoginSession(user, token, now + LONGEST_SESSION, now, self._new_secret())
        return session

    async def find(self, cookies: Sequence[str]) -> LoginSession | None:
        """Return the user of the only session in the cookies if the user still has read permission."""
        session = find_session(cookies)
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
            return visitor  # without a response of the API server, no new data is shown
        visitor.checked_at = now
        return visitor

    def close(self, cookies: Sequence[str]) -> None:
        """Close the session in the cookies, if it exists."""
        self._sessions.pop(find_session(cookies) or "", None)

    def _make_room(self, user: str) -> None:
        """Close the oldest session of a user with too many sessions, or of the user with the most sessions."""
        numbers = Counter(visitor.user for visitor in self._sessions.values())
        if numbers[user] < MOST_OF_USER:
            if len(self._sessions) < MOST_SESSIONS:
                return
            user = max(numbers, key=numbers.__getitem__)
        # Sessions are in login order.
        del self._sessions[next(session for session, visitor in self._sessions.items() if visitor.user == user)]
