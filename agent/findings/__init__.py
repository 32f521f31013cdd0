"""Verdicts over time: findings opened, refreshed, escalated, resolved. Pure."""
