"""The settings that are tested, and the places where tests replace a part of the shipped product."""
