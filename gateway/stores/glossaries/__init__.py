"""Adapters of the glossaries' port."""
