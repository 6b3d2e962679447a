"""Keys, signatures, base58."""

import hashlib
import os
import random
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from blockdesk import Keypair, base58, ed25519

# RFC 8032, 7.1: seed, key, message, signature.
RFC8032 = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb", "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7", "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
    (
        "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42", "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        hashlib.sha512(b"abc").hexdigest(),
        "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704",
    ),
]  # fmt: skip

# The eight points of small order, and the ways to write them that are not canonical.
SMALL_ORDER = [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
]
NOT_CANONICAL = [
    "0100000000000000000000000000000000000000000000000000000000000080",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
]


def times_base(n: int) -> bytes:
    return ed25519._compress(ed25519._times_base(n))


class Ed25519Test(unittest.TestCase):
    def test_native_and_plain_agree(self) -> None:
        """Keys and signatures are the same with and without cryptography."""
        if ed25519.NATIVE is None:
            self.skipTest("cryptography is not installed")
        for size in (0, 1, 32, 1000):
            seed, message = os.urandom(32), os.urandom(size)
            native = ed25519.public_key(seed), ed25519.sign(seed, message)
            with mock.patch.object(ed25519, "NATIVE", None):
                self.assertEqual(native, (ed25519.public_key(seed), ed25519.sign(seed, message)))
            self.assertTrue(ed25519.verify(native[0], message, native[1]))

    def test_rfc_8032_plain(self) -> None:
        with mock.patch.object(ed25519, "NATIVE", None):
            self.test_rfc_8032()

    def test_seed_length(self) -> None:
        for native in (ed25519.NATIVE, None):
            with mock.patch.object(ed25519, "NATIVE", native):
                for size in (0, 31, 33):
                    for call in (lambda: ed25519.public_key(bytes(size)), lambda: ed25519.sign(bytes(size), b"")):
                        self.assertRaisesRegex(ValueError, f"a seed of {size} bytes", call)

    def test_rfc_8032(self) -> None:
        for seed, key, message, signature in RFC8032:
            s, m = bytes.fromhex(seed), bytes.fromhex(message)
            self.assertEqual(ed25519.public_key(s).hex(), key)
            self.assertEqual(ed25519.sign(s, m).hex(), signature)
            self.assertTrue(ed25519.verify(ed25519.public_key(s), m, bytes.fromhex(signature)))

    def test_any_changed_bit_is_refused(self) -> None:
        rng = random.Random(1)
        seed = rng.randbytes(32)
        key, message = ed25519.public_key(seed), b"a message"
        signature = ed25519.sign(seed, message)
        for at in range(0, 512, 7):
            forged = (int.from_bytes(signature, "big") ^ 1 << at).to_bytes(64, "big")
            self.assertFalse(ed25519.verify(key, message, forged), at)
        self.assertFalse(ed25519.verify(key, message + b"!", signature))
        for wrong in (signature[:-1], signature + b"\0", b""):
            self.assertFalse(ed25519.verify(key, message, wrong))
        self.assertFalse(ed25519.verify(key[:-1], message, signature))

    def test_keys_that_prove_nothing(self) -> None:
        # With the identity as key, R = S * B satisfies the equation for every message.
        r = times_base(5)
        for text in SMALL_ORDER + NOT_CANONICAL:
            key = bytes.fromhex(text)
            self.assertFalse(ed25519.valid_key(key), text)
            for message in (b"", b"x", b"pay", b"12345678"):
                self.assertFalse(ed25519.verify(key, message, r + (5).to_bytes(32, "little")), text)

    def test_a_scalar_beyond_the_order(self) -> None:
        seed = bytes(range(32))
        key, signature = ed25519.public_key(seed), ed25519.sign(seed, b"m")
        s = int.from_bytes(signature[32:], "little")
        again = signature[:32] + (s + ed25519.L).to_bytes(32, "little")
        self.assertFalse(ed25519.verify(key, b"m", again))

    def test_a_key_with_a_part_of_small_order(self) -> None:
        # Who adds a point of small order to his key makes signatures that verifiers
        # judge differently: this one takes no such key.
        rng = random.Random(2)
        torsion = ed25519._decompress(bytes.fromhex(SMALL_ORDER[4]))
        assert torsion is not None
        a = rng.randrange(1, ed25519.L)
        mixed = ed25519._compress(ed25519._add(ed25519._times_base(a), torsion))
        self.assertFalse(ed25519.valid_key(mixed))
        for i in range(16):  # every eighth of them satisfies the equation as it is
            r = rng.randrange(1, ed25519.L)
            point = times_base(r)
            h = ed25519._hash(point, mixed, bytes([i]))
            self.assertFalse(ed25519.verify(mixed, bytes([i]), point + ((r + h * a) % ed25519.L).to_bytes(32, "little")))

    def test_a_point_of_small_order_in_the_signature(self) -> None:
        a = 12345
        key = times_base(a)
        for text in SMALL_ORDER:
            point = bytes.fromhex(text)
            h = ed25519._hash(point, key, b"m")
            self.assertFalse(ed25519.verify(key, b"m", point + (h * a % ed25519.L).to_bytes(32, "little")), text)

    def test_a_seed_is_32_bytes(self) -> None:
        for n in (0, 31, 33, 64):
            with self.assertRaises(ValueError):
                ed25519.sign(bytes(n), b"")


class Base58Test(unittest.TestCase):
    def test_vectors(self) -> None:
        for data, text in [
            (b"", ""), (b"\0", "1"), (b"\0\0\x01", "112"), (b"hello world", "StV1DL6CwTryKyV"),
            (bytes.fromhex("516b6fcd0f"), "ABnLTmg"), (bytes.fromhex("ecac89cad93923c02321"), "EJDM8drfXA6uyA"), (bytes(32), "1" * 32),
        ]:  # fmt: skip
            self.assertEqual(base58.encode(data), text)
            self.assertEqual(base58.decode(text), data)

    def test_round_trip(self) -> None:
        rng = random.Random(3)
        for n in range(0, 70):
            data = b"\0" * (n % 3) + rng.randbytes(n)
            self.assertEqual(base58.decode(base58.encode(data)), data)

    def test_refusals(self) -> None:
        for text in ("0", "O", "I", "l", "ab c", "é", "1" * 257):
            with self.assertRaises(ValueError, msg=text):
                base58.decode(text)
        with self.assertRaises(ValueError):
            base58.decode("11", 32)
        self.assertEqual(len(base58.encode(bytes(184))), 184)
        with self.assertRaises(ValueError):
            base58.encode(bytes(185))


class KeypairTest(unittest.TestCase):
    def test_file(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "key.json"
            pair = Keypair.generate()
            pair.save(path)
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
            self.assertEqual(Keypair.from_file(path).address, pair.address)
            with self.assertRaises(FileExistsError):
                pair.save(path)
            numbers = path.read_text()
            self.assertNotIn(numbers[1:20], repr(pair))
            for wrong in ("[]", "{}", "nonsense", numbers.replace("[", "[1, ", 1), "[" + "300," * 63 + "1]", '["a"]'):
                path.write_text(wrong)
                with self.assertRaises(ValueError) as caught:
                    Keypair.from_file(path)
                self.assertNotIn(wrong[1:20], str(caught.exception) if len(wrong) > 40 else "")
            other = Keypair.generate()
            mixed = numbers.strip()[1:-1].split(",")[:32] + [str(b) for b in base58.decode(other.address)]
            path.write_text("[" + ",".join(mixed) + "]")
            with self.assertRaises(ValueError):
                Keypair.from_file(path)


if __name__ == "__main__":
    unittest.main()
