"""Grafana boards: what they show is data here; `build` turns it into committed JSON."""
