"""Notifications of the kernel as hints in a mailbox. Says what to read, never what is there."""
