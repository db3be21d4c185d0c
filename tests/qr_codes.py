"""What a phone reads in a picture of a QR code."""

from __future__ import annotations

from io import BytesIO

import zxingcpp
from PIL import Image


def read_qr_code(picture: bytes) -> str:
    """Empty if there is none. picture: a PNG."""
    found = zxingcpp.read_barcodes(Image.open(BytesIO(picture)))
    return found[0].text if found else ""
