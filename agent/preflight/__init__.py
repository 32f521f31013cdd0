"""Preflight: is the agent in the right place, with the right rights? `checks` judge `facts`, in words of `telling`."""
