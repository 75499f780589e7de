"""Whether an API server would trust what is served: the same answer as a connection would give, and why not."""

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from webhook.certs import ca as authority
from webhook.certs import serving
from webhook.certs.ca import KeyPair, joined
from webhook.certs.serving import ServingCertificate

NOW = datetime(2040, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
HOST = "gate.ns.svc"
CA = authority.create("a", now=NOW, life=365 * DAY)
OTHER = authority.create("b", now=NOW, life=365 * DAY)
OLD = authority.create("c", now=NOW - 400 * DAY, life=365 * DAY)
SLOT = ServingCertificate(CA.issue([HOST, "gate.ns"], now=NOW, life=7 * DAY))


def verdict(*cas: authority.CertificateAuthority, slot: ServingCertificate) -> str | None:
    bundle = joined(one.certificate for one in cas)
    return serving.untrusted_reason(slot.context, slot.chain, {"zz": bundle}, HOST, NOW)


def test_all_configurations_must() -> None:
    good, bad = joined([CA.certificate]), joined([OTHER.certificate])
    message = serving.untrusted_reason(SLOT.context, SLOT.chain, {"a": good, "b": bad}, HOST, NOW)
    assert (
        message
        == f"b: its caBundle does not verify the serving certificate for {HOST}: unable to get local issuer certificate"
    )


def test_nonsense_in_a_bundle_is_passed_over_as_api_servers_do() -> None:
    broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    text = b"nonsense\n" + broken + joined([CA.certificate])
    assert serving.untrusted_reason(SLOT.context, SLOT.chain, {"zz": text}, HOST, NOW) is None
    message = serving.untrusted_reason(SLOT.context, SLOT.chain, {"zz": broken}, HOST, NOW)
    assert message == "zz: its caBundle holds no certificate that is valid now"


def test_an_expired_ca_trusts_nothing() -> None:
    slot = ServingCertificate(_forever(OLD))
    assert verdict(OLD, slot=slot) == "zz: its caBundle holds no certificate that is valid now"
    message = verdict(OLD, OTHER, slot=slot)
    assert message is not None
    assert "unable to get local issuer" in message


def _forever(ca: authority.CertificateAuthority) -> KeyPair:
    """A certificate that, against the rules, outlives its CA."""
    return _signed("x", ca.certificate.subject, ca.key, [HOST])


def _signed(name: str, issuer: x509.Name, by: ec.EllipticCurvePrivateKey | None, hosts: list[str]) -> KeyPair:
    """As another tool may make it: self-signed where there is no CA, and with few extensions."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - 500 * DAY)
        .not_valid_after(NOW + 500 * DAY)
    )
    if hosts:
        names = x509.SubjectAlternativeName([x509.DNSName(one) for one in hosts])
        builder = builder.add_extension(names, critical=False)
    made = builder.sign(by or key, hashes.SHA256())
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyPair(made.public_bytes(Encoding.PEM), text)


def test_a_certificate_that_is_its_own_ca() -> None:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    pair = _signed(HOST, subject, None, [HOST])
    slot = ServingCertificate(pair)
    assert serving.untrusted_reason(slot.context, slot.chain, {"zz": pair.chain}, HOST, NOW) is None


def test_a_common_name_is_no_host_name() -> None:
    """API servers have not looked at it for years."""
    slot = ServingCertificate(_signed(HOST, CA.certificate.subject, CA.key, []))
    message = verdict(CA, slot=slot)
    assert message is not None
    assert "Hostname mismatch" in message
