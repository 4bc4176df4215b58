"""`lws schema`: the JSON Schema of our kinds, for editors."""

import click

from leaderworkerset.cli.errors import UsageError


@click.command("schema")
@click.argument("kinds", nargs=-1, metavar="[KIND]...")
def command(kinds: tuple[str, ...]) -> None:
    """Print the JSON Schema of manifests, of all kinds or of some, for editors that complete and check YAML.

    It is that of this version's definitions, asks no cluster, and says which fields there are: a misspelled one is an error.
    """
    import msgspec

    from leaderworkerset.api import descriptions
    from leaderworkerset.cli.views import editorschema
    from leaderworkerset.kinds.managed import MANAGED
    from leaderworkerset.operator.operatorcrd import operator_crd

    definitions = [*MANAGED.described_definitions(descriptions.OWN_ONLY), operator_crd()]
    named = {definition["spec"]["names"]["kind"]: definition for definition in definitions}
    if unknown := [kind for kind in kinds if kind not in named]:
        raise UsageError(f"no kind {unknown[0]} here; there are {', '.join(named)}")
    click.echo(msgspec.json.encode(editorschema.schema(named[kind] for kind in kinds or named)))
