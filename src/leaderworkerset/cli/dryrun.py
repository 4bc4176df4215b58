"""The option `--dry-run` of commands that change what the API server has; `--dry-run=server` is kubectl's word for it."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

DRY: Final = " (dry run)"
"""The end of lines that say what would be."""


def dry_run_option(help_text: str) -> Callable[[Command], Command]:
    """Return the option; it arrives as `is_trial`."""
    return click.option(
        "--dry-run", "is_trial", type=click.Choice(["server"]), is_flag=False, flag_value="server",
        callback=lambda _ctx, _parameter, value: value is not None, help=help_text,
    )  # fmt: skip
