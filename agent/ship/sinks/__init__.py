"""Sinks: where sealed segments go. Optional libraries are imported only by the sink that needs them."""
