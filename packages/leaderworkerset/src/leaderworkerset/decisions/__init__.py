"""The façade of what acts: the decisions, programs and records that commands use, and nothing else.

Each name is defined elsewhere in this package. Commands import `leaderworkerset.api`, `leaderworkerset.install` and this
package only, so that everything else can change without them.
"""
