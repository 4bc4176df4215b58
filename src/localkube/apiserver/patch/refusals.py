"""The refusals that all patches share."""

from localkube.apiserver.model.refusal import RefusalError


def unfit(why: str) -> RefusalError:
    """Build the refusal of a well-formed patch that does not fit the object."""
    return RefusalError(422, "Invalid", f"the server rejected our request due to an error in our request: {why}", {})
