"""What the CA's Secret holds, as it is written and as it may be found."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from webhook.certs import ca as authority
from webhook.certs.ca import CertificateAuthority, joined
from webhook.certs.ca_secret import CaSecretContents, contents, data
from webhook.certs.serving import self_signed

NOW = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def ca(name: str = "a") -> CertificateAuthority:
    return authority.create(name, now=NOW, life=DAY)


def coded(text: bytes) -> str:
    return b64encode(text).decode()


def certificates_of(found: CaSecretContents | None) -> list[object]:
    assert found is not None
    return [one.certificate for one in found.signers]


def test_what_is_written_is_read_again() -> None:
    one, two, past = ca("a"), ca("b"), ca("c")
    written = CaSecretContents((one, two), (one.certificate, two.certificate, past.certificate), NOW)
    read = contents(data(written), "2030-01-01T00:00:00Z")
    assert certificates_of(read) == [one.certificate, two.certificate]
    assert read is not None
    assert (read.trusted, read.previous_until) == (written.trusted, NOW)
    assert data(read) == data(written)


def test_keys_find_their_certificates_in_any_order() -> None:
    one, two = ca("a"), ca("b")
    found = contents(
        {"ca.crt": coded(joined([one.certificate, two.certificate])), "ca.key": coded(two.key_pem() + one.key_pem())}
    )
    assert certificates_of(found) == [two.certificate, one.certificate], "the first key is the one in use"


def test_a_key_without_a_certificate_signs_nothing() -> None:
    one = ca()
    found = contents({"ca.crt": coded(joined([one.certificate])), "ca.key": coded(ca().key_pem() + one.key_pem())})
    assert certificates_of(found) == [one.certificate]
    assert contents({"ca.crt": coded(joined([one.certificate])), "ca.key": coded(ca().key_pem())}) is None


def test_a_serving_certificate_is_no_ca() -> None:
    pair = self_signed().pair
    assert contents({"ca.crt": coded(pair.chain), "ca.key": coded(pair.key)}) is None


def test_a_time_that_is_none() -> None:
    found = contents(data(CaSecretContents((one := ca(),), (one.certificate,))), "tomorrow")
    assert found is not None
    assert found.previous_until is None


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
