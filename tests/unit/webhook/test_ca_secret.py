"""What the CA's Secret holds, as it is written and as it may be found."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from webhook.certs import ca as authority
from webhook.certs.ca import CertificateAuthority, joined
from webhook.certs.ca_secret import CaSecretContents, contents, data

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


GOOD = data(CaSecretContents((_one := ca(),), (_one.certificate,)))
TEXT = st.one_of(st.text(max_size=40), st.binary(max_size=40).map(coded), st.sampled_from(list(GOOD.values())))


@given(st.dictionaries(st.sampled_from(["ca.crt", "ca.key", "x"]), TEXT), st.text(max_size=20))
def test_whatever_is_in_it_it_can_be_used_or_it_cannot(found: dict[str, str], until: str) -> None:
    """It is anybody's to edit who has the right."""
    read = contents(found, until)
    assert (read is not None) == all(found.get(key) == text for key, text in GOOD.items())


@given(st.binary(max_size=200), st.integers(0, 900), st.integers(1, 60))
def test_a_certificate_that_is_torn_is_none(noise: bytes, at: int, length: int) -> None:
    one = ca()
    text, key = joined([one.certificate]), one.key_pem()
    torn = text[:at] + noise + text[at + length :]
    read = contents({"ca.crt": coded(torn), "ca.key": coded(key)})
    assert read is None or [it.key_pem() for it in read.signers] == [key]
