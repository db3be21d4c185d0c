"""The bundled model: where it is, and how it is assembled of a pretrained base and our adapter.

folder: the assembled model of this installation; the only module that others need, and the only one without numpy.
assembly: the steps. base, adapter: what it is made of. gguf, tensors, tokenizer: the formats.
"""
