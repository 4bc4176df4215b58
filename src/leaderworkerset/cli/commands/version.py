"""`lws version`: print the version."""

import click

import leaderworkerset


@click.command("version")
def command() -> None:
    """Print the version."""
    click.echo(f"lws {leaderworkerset.__version__}")
