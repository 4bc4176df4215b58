"""Parses image names like container runtimes. The functions are pure."""

import re
from typing import Final

LONGEST_IMAGE: Final = 512

_COMPONENT: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
IMAGE: Final = re.compile(
    r"(?:(?:[a-zA-Z0-9][a-zA-Z0-9.-]*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?/)?"
    rf"{_COMPONENT}(?:/{_COMPONENT})*(?::\w[\w.-]{{0,127}})?(?:@[a-z0-9+._-]+:[0-9a-fA-F]{{32,}})?"
)
"""The pattern of image references that container runtimes accept.

It is unambiguous, so matching takes linear time.
"""


def is_reference(image: str) -> bool:
    """Return whether a container runtime can parse the image name.

    >>> is_reference("ghcr.io/org/name:v1"), is_reference("org/my name"), is_reference("Org/Name")
    (True, False, False)
    """
    return len(image) <= LONGEST_IMAGE and IMAGE.fullmatch(image) is not None
