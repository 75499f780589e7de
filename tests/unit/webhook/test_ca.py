"""The CA and its certificates: for what, for which hosts, for how long."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from tests.fakes.present import present
from webhook.certs import ca as authority
from webhook.certs.ca import is_due, is_signed_by, is_valid, joined
from webhook.certs.rotation import CaSecretContents
from webhook.certs.sources import contents, data

NOW = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
HOST = "gate.ns.svc"


def leaf_of(
    ca: authority.CertificateAuthority, *hosts: str, life: timedelta = 7 * DAY, now: datetime = NOW
) -> x509.Certificate:
    return ca.issue(hosts or [HOST], now=now, life=life).certificates[0]


@pytest.fixture
def ca() -> authority.CertificateAuthority:
    return authority.create("a", now=NOW, life=365 * DAY)


def test_a_strict_verifier_accepts_it_for_its_host_alone(ca: authority.CertificateAuthority) -> None:
    """By the rules of the public web, which are stricter than an API server's."""
    verifier = PolicyBuilder().store(Store([ca.certificate])).time(NOW)
    leaf = leaf_of(ca)
    assert verifier.build_server_verifier(x509.DNSName(HOST)).verify(leaf, [])[0] == leaf
    with pytest.raises(VerificationError):
        verifier.build_server_verifier(x509.DNSName("other.ns.svc")).verify(leaf, [])


def test_the_certificate_serves_and_signs_nothing(ca: authority.CertificateAuthority) -> None:
    extensions = leaf_of(ca).extensions
    assert not extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert list(extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert ca.certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.path_length == 0
    for key in (ca.certificate.public_key(), leaf_of(ca).public_key()):
        assert isinstance(key, ec.EllipticCurvePublicKey)
        assert isinstance(key.curve, ec.SECP256R1)
    hosts = leaf_of(ca, "10.0.0.1", "::1", "a.b").extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert [type(one).__name__ for one in hosts.value] == ["IPAddress", "IPAddress", "DNSName"]


def test_a_certificate_never_outlives_its_ca(ca: authority.CertificateAuthority) -> None:
    leaf = leaf_of(ca, life=30 * DAY, now=NOW + 360 * DAY)
    assert leaf.not_valid_after_utc == ca.certificate.not_valid_after_utc


@pytest.mark.parametrize(
    ("life", "slack"), [(DAY, timedelta(minutes=5)), (timedelta(seconds=100), timedelta(seconds=10))]
)
def test_clocks_may_differ_by_a_little(ca: authority.CertificateAuthority, life: timedelta, slack: timedelta) -> None:
    leaf = leaf_of(ca, life=life)
    assert NOW - leaf.not_valid_before_utc == slack
    assert is_valid(leaf, NOW - slack)
    assert not is_valid(leaf, NOW - slack - timedelta(seconds=1))
    assert is_valid(leaf, NOW + life)
    assert not is_valid(leaf, NOW + life + timedelta(seconds=1))


def test_it_is_due_when_two_thirds_of_its_life_are_over(ca: authority.CertificateAuthority) -> None:
    leaf = leaf_of(ca, life=9 * DAY)
    assert not is_due(leaf, NOW + 5.9 * DAY)
    assert is_due(leaf, NOW + 6 * DAY)


def test_a_ca_is_known_by_its_own_key_only(ca: authority.CertificateAuthority) -> None:
    """Names alone prove nothing: the other CA has the same one."""
    other = authority.create("a", now=NOW, life=DAY)
    assert is_signed_by(leaf_of(ca), ca.certificate)
    assert not is_signed_by(leaf_of(other), ca.certificate)
    assert authority.load(ca.certificate, ca.key_pem()) is not None
    assert authority.load(ca.certificate, other.key_pem()) is None
    assert authority.load(ca.certificate, b"nonsense") is None
    pair = ca.issue([HOST], now=NOW, life=DAY)
    assert authority.load(pair.certificates[0], pair.key) is None, "no CA"
    text = rsa.generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    assert authority.load(ca.certificate, text) is None


# --- Its Secret ------------------------------------------------------------------------------------------------------


def coded(text: bytes) -> str:
    return b64encode(text).decode()


def certificates_of(found: CaSecretContents | None) -> list[object]:
    return [one.certificate for one in present(found).signers]


def test_keys_find_their_certificates_in_any_order() -> None:
    one, two = (authority.create(name, now=NOW, life=DAY) for name in "ab")
    found = contents(
        {"ca.crt": coded(joined([one.certificate, two.certificate])), "ca.key": coded(two.key_pem() + one.key_pem())}
    )
    assert found is not None
    assert certificates_of(found) == [two.certificate, one.certificate], "the first key is the one in use"
    read = present(contents(data(found), "2030-01-01T00:00:00Z"))
    assert (certificates_of(read), read.trusted, read.previous_until) == (certificates_of(found), found.trusted, NOW)


def test_a_key_without_a_certificate_signs_nothing() -> None:
    one, other = (authority.create("a", now=NOW, life=DAY) for _ in range(2))
    found = contents({"ca.crt": coded(joined([one.certificate])), "ca.key": coded(other.key_pem() + one.key_pem())})
    assert certificates_of(found) == [one.certificate]
    assert contents({"ca.crt": coded(joined([one.certificate])), "ca.key": coded(other.key_pem())}) is None
