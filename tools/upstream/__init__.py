"""The list of upstream issues, and of the classes that our facts rest on."""
