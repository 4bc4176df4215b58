"""The header of every page: the cluster, the user, and whether the picture is live. Pure."""

from msgspec import Struct

from leaderworkerset.dashboard.markup import Safe, tag


class ClusterIdentity(Struct, frozen=True, kw_only=True):
    """The names of a cluster, and of the user of the dashboard; empty names are not shown.

    `login` is the path of the page on which a user logs out.
    """

    cluster: str = ""
    context: str = ""
    user: str = ""
    login: str = ""
    version: str = ""


def header(about: ClusterIdentity, namespace: str, *, allows_actions: bool) -> Safe:
    """Return the header; a script keeps the live sign current."""
    rights = "may act" if allows_actions else "read-only"
    user = f"{about.user} ({rights})" if about.user else rights
    facts = {
        "cluster": about.cluster,
        "context": "" if about.context == about.cluster else about.context,
        "namespace": namespace or "all",
        "user": tag("a", user, href=about.login, title="Log out") if about.login else user,
        "version": about.version,
    }
    entries = [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items() if value]
    return tag(
        "header",
        tag("a", "lws", href=".", class_="brand"),
        tag("dl", entries, class_="where"),
        tag(
            "p",
            "◐ connecting",
            id="pulse",
            class_="pulse",
            title="Whether this page is current, and when the server last answered",
        ),
        class_="top",
    )
