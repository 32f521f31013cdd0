"""Compares digests of stores with their changelogs, and with each other: `statewarden-rollup verify`."""
