"""The composition: steps wired in one direction, threads, signals."""
