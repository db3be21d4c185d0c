"""Stands in for LibreTranslate's package, so that its own tests ask a gateway, unchanged."""
