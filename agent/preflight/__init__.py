"""Preflight: is the agent in the right place, with the right rights? `facts` reads what several of the `checks` go by, `telling` says."""
