"""One arithmetic: puts, offsets, entries and sequence numbers count different things; no other package relates them."""
