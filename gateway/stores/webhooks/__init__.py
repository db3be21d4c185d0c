"""Adapters of the port behind which events wait for webhooks."""
