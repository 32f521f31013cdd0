"""Preflight: is the agent in the right place, with the right rights? `gather` collects facts, `checks` judges them."""
