"""Certificates without a process, as virtual time cannot wait for one."""

from leaderworkerset.webhooks import certificateworker


async def answer_here(question: bytes) -> bytes:
    """Answer a question about certificates in this process."""
    return certificateworker.respond(question)
