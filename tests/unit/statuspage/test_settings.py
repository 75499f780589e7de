"""Switching the page on: off unless a port is given; a page that others could read without TLS is refused at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobset_gate.cli import settings_file
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.serve import controller as service


def read(folder: Path, text: str) -> settings_file.ControllerSection:
    (folder / "settings.yaml").write_text(text)
    return settings_file.read(folder / "settings.yaml").controller


def test_the_file_says_where_and_the_command_line_wins(tmp_path: Path) -> None:
    said = read(
        tmp_path,
        "controller: {pagePort: 8083, pageAddress: '::', pageTlsCert: /tls/tls.crt, pageTlsKey: /tls/tls.key}",
    )
    wanted = service.options(said, page_port=9000, page_address=None)
    assert (wanted.page_port, wanted.page_address) == (9000, "::")
    assert service.options(settings_file.ControllerSection()).page_port == 0
    assert service.options(read(tmp_path, "controller: {pageAddress: 10.0.0.1}")).page_port == 0
    priced = read(tmp_path, "controller: {pagePort: 8083, pagePrices: {nvidia.com/gpu: 2.5}}")
    assert service.options(priced).page_prices == {"nvidia.com/gpu": 2.5}
    assert (wanted.page_tls_cert, wanted.page_tls_key) == (Path("/tls/tls.crt"), Path("/tls/tls.key"))


@pytest.mark.parametrize("price", ["-1", ".inf", ".nan", "cheap"])
def test_a_price_that_is_none_is_refused(tmp_path: Path, price: str) -> None:
    with pytest.raises(CommandError, match="pagePrices"):
        read(tmp_path, f"controller: {{pagePrices: {{nvidia.com/gpu: {price}}}}}")


@pytest.mark.parametrize("text", ["pagePort: 8083, pageAddress: 10.0.0.1", "pagePort: 8083, pageTlsCert: /tls/tls.crt"])
def test_what_would_show_tokens_to_others_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(CommandError, match="the status page") as refused:
        service.options(read(tmp_path, f"controller: {{{text}}}"))
    assert refused.value.code is ExitCode.USAGE
