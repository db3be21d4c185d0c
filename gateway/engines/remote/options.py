"""The options of the adapter for remote vLLM servers: name and meaning of each.

Must not know: HTTP, prompts. Ranges and defaults are those of the settings (`config.settings`).
"""

from __future__ import annotations

from msgspec import Struct


class RemoteOptions(Struct, frozen=True, kw_only=True):
    """Everything the adapter needs, by the names of the settings."""

    # Where the server is, `https://gpu.example.com:8000`, without the path of a route.
    url: str
    # What the server calls its API key. None: it asks for none.
    api_key: str | None
    # File whose first word is the key; read at each start of the engine.
    api_key_file: str | None
    # PEM file of the authorities that may sign the server's certificate. None: those of this machine.
    ca_file: str | None
    # The model that the server serves: a folder, or a name on the Hugging Face hub. Only its tokenizer is loaded.
    model: str
    # Prompt family. None: detected from the model.
    family: str | None
    # Sequences that the server runs together; over all replicas, if there are several.
    max_num_seqs: int
    # Tokens of prompt and output together. None: what the server says.
    max_model_len: int | None
    # Sample as the model card recommends, instead of greedily.
    card_sampling: bool
    # Output tokens that every translation may have, and further ones for each source token.
    output_tokens_base: int
    output_tokens_per_source_token: float
    # About how often the server is to send new text, in seconds. 0: every token.
    delta_interval_s: float
    # Longest silence of the server about one generation, in seconds.
    stall_s: float
