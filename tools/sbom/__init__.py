"""Bills of materials, licences and advisories of what is built here."""
