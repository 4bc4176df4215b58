"""`lws version` and `lws completion`: print the version, and the completion script for a shell."""

import click

import lwsctl


@click.command("version")
def command() -> None:
    """Print the version of lws."""
    click.echo(f"lws {lwsctl.__version__}")


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell. For Bash, add `source <(lws completion bash)` to ~/.bashrc."""
    from click import shell_completion

    build = shell_completion.get_completion_class(shell)
    if build is None:
        raise click.UsageError(f"completion for {shell} is not available")
    root = ctx.find_root()
    click.echo(build(root.command, {}, "lws", "_LWS_COMPLETE").source())
