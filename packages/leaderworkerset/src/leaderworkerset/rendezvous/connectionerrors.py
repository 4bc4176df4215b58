"""Lists the reasons why ranks cannot connect, with exit codes, messages, and next steps. The functions are pure.

`lws explain` reads the codes from this table. `rendezvous.sh` has the same codes, and a test compares them.
"""

from enum import IntEnum, unique


@unique
class FailureReason(IntEnum):
    """The reason why a rendezvous failed. The value is the exit code."""

    NO_NAME = 80
    NO_ADDRESS = 81
    CLOSED = 82
    SILENT = 83
    WRONG_SIZE = 84
    NO_DNS = 85
    NO_GROUP = 86
    NO_TOOLS = 87

    @property
    def description(self) -> str:
        """Return a description that is used after the name of a rank."""
        return _TABLE[self][0]

    @property
    def advice(self) -> str:
        """Return the next step for the user."""
        return _TABLE[self][1]


_TABLE = {
    FailureReason.NO_NAME: (
        "its name does not exist",
        "Check that its pod exists, and that the Service is headless and publishes unready addresses",
    ),
    FailureReason.NO_ADDRESS: (
        "its name has no address",
        "Check whether its pod is waiting for a node, an image or a volume",
    ),
    FailureReason.CLOSED: (
        "its port is closed",
        "Check that the program listens on all addresses, not only on 127.0.0.1. If the program loads slowly, increase --timeout",
    ),
    FailureReason.SILENT: (
        "its port does not respond",
        "Check whether a NetworkPolicy, a firewall or a lost node blocks the connection",
    ),
    FailureReason.WRONG_SIZE: (
        "the group size differs from the size that the application expects",
        "Set --size and spec.leaderWorkerTemplate.size to the same number",
    ),
    FailureReason.NO_DNS: (
        "its name cannot be resolved, because no name server responds",
        "On a local cluster, check that its pod exists. On other clusters, check the cluster DNS and NetworkPolicies",
    ),
    FailureReason.NO_GROUP: (
        "the environment variables of a group are not set",
        "Run the command in a pod of a LeaderWorkerSet, and keep the LWS_ variables of the pod",
    ),
    FailureReason.NO_TOOLS: (
        "the image does not contain a required command",
        "Install getent or nslookup. To check ports, also install bash and timeout, or nc. Alternatively, use the Python variant",
    ),
}
