"""The refusals that all patches share."""

from localkube.apiserver.model.refusal import Refusal


def unfit(why: str) -> Refusal:
    """Build the refusal of a well-formed patch that does not fit the object."""
    return Refusal(422, "Invalid", f"the server rejected our request due to an error in our request: {why}", {})
