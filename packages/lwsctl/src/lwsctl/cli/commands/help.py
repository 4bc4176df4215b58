"""`lws help`: shows the help of a command, as in kubectl and git."""

import click

from lwsctl.cli.shell.completion import filter_by_prefix


def command_names(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the commands that start with the given prefix."""
    root = ctx.find_root().command
    return filter_by_prefix(root.list_commands(ctx), incomplete) if isinstance(root, click.Group) else []


@click.command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...", shell_complete=command_names)
@click.pass_context
def command(ctx: click.Context, /, words: tuple[str, ...]) -> None:
    """Show the help for lws or for a command. `lws help COMMAND` is equivalent to `lws COMMAND --help`."""
    context = ctx.find_root()
    for word in words:
        if not isinstance(context.command, click.Group):
            raise click.UsageError(f"{context.command_path} has no subcommands; remove {word!r}", context)
        name, verb, _ = context.command.resolve_command(context, [word])
        if verb is not None:
            context = click.Context(verb, context, name, **verb.context_settings)
    click.echo(context.get_help())
