"""Preflight: is the agent in the right place, with the right rights? `look` gathers facts, `checks` judges them."""
