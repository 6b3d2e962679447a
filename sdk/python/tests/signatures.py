"""Judges signatures: JSON lines of [key, message, signature, seed] in hexadecimal come in,
and for each [whether it verifies, the seed's own signature] goes out."""

import json
import sys

from blockdesk import ed25519

for line in sys.stdin:
    key, message, signature, seed = (bytes.fromhex(text) for text in json.loads(line))
    print(json.dumps([ed25519.verify(key, message, signature), ed25519.sign(seed, message).hex() if seed else ""]))
