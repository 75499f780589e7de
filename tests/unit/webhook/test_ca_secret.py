"""What the CA's Secret holds, as it is written and as it may be found."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta

from webhook.certs import ca as authority
from webhook.certs.ca import CertificateAuthority, joined
from webhook.certs.rotation import CaSecretContents
from webhook.certs.sources import contents, data

NOW = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def ca(name: str = "a") -> CertificateAuthority:
    return authority.create(name, now=NOW, life=DAY)


def coded(text: bytes) -> str:
    return b64encode(text).decode()


def certificates_of(found: CaSecretContents | None) -> list[object]:
    assert found is not None
    return [one.certificate for one in found.signers]


def test_keys_find_their_certificates_in_any_order() -> None:
    one, two = ca("a"), ca("b")
    found = contents(
        {"ca.crt": coded(joined([one.certificate, two.certificate])), "ca.key": coded(two.key_pem() + one.key_pem())}
    )
    assert found is not None
    assert certificates_of(found) == [two.certificate, one.certificate], "the first key is the one in use"
    read = contents(data(found), "2030-01-01T00:00:00Z")
    assert read is not None
    assert (certificates_of(read), read.trusted, read.previous_until) == (certificates_of(found), found.trusted, NOW)


def test_a_key_without_a_certificate_signs_nothing() -> None:
    one = ca()
    found = contents({"ca.crt": coded(joined([one.certificate])), "ca.key": coded(ca().key_pem() + one.key_pem())})
    assert certificates_of(found) == [one.certificate]
    assert contents({"ca.crt": coded(joined([one.certificate])), "ca.key": coded(ca().key_pem())}) is None
