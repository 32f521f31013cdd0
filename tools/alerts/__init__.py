"""Alert rules and their promtool tests, rendered from the metadata of detectors and rules."""
