"""Live meeting translation over WebSockets."""

__version__ = "1.0.0"
