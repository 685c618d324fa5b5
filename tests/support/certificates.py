"""Certificates that are made anew for tests: signed by themselves or by an authority, right or wrong in one way."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class ServerCertificate:
    """`context` is what a server is made with; `file` is the certificate, or that of who signed it, to be trusted."""

    context: ssl.SSLContext
    file: Path


def certificate(
    folder: Path, *, signed: bool = False, names: tuple[str, ...] = ("localhost", "127.0.0.1"), from_day: int = -1,
    to_day: int = 1, chain: bool = True,
) -> ServerCertificate:  # fmt: skip
    """One that is valid between two days from now; `signed` by an authority, which is sent along with `chain`."""
    key, authority_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    subject = _name("server")
    issuer, signer = (_name("Authority"), authority_key) if signed else (subject, key)
    found = _sign(key, subject, issuer, signer, names, from_day, to_day)
    pem = found.public_bytes(serialization.Encoding.PEM)
    authority = b""
    if signed:
        root = _sign(authority_key, issuer, issuer, authority_key, (), -1, 1)
        authority = root.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    both, trusted = folder / "server.pem", folder / "trusted.pem"
    both.write_bytes(private + pem + (authority if chain else b""))
    trusted.write_bytes(authority or pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    return ServerCertificate(context, trusted)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _sign(
    key: ec.EllipticCurvePrivateKey, subject: x509.Name, issuer: x509.Name, signer: ec.EllipticCurvePrivateKey,
    names: tuple[str, ...], from_day: int, to_day: int,
) -> x509.Certificate:  # fmt: skip
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + from_day * DAY)
        .not_valid_after(now + to_day * DAY)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), critical=False)
    else:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return builder.sign(signer, hashes.SHA256())


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
