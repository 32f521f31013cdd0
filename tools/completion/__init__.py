"""Shell completion, generated from the parsers, so that the programs need no library for it.

A generator such as shtab would put its own code, under its own licence, into each script.
"""
