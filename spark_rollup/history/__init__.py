"""What finished days leave to later audits."""
