"""What a text is before a model sees it. Pure; must not know engines, meetings, messages."""
