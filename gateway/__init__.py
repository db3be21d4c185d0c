"""Live meeting translation over WebSockets."""

__version__ = "0.1.0"
