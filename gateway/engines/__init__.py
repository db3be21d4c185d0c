"""Adapters and wrappers of the Engine port. vLLM is imported only when its engine starts."""
