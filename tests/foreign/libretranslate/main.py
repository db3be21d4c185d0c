"""What LibreTranslate's tests read their options with."""


def get_args() -> None:
    """There are none: the gateway runs already."""
