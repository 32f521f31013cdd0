"""Detectors: dossier -> verdicts. Pure; one module each; registered in `registry`; none imports another."""
