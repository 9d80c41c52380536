"""Licences: what sources write, SPDX expressions, and what is not known."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_beam.base.records import Dropped
from data_beam.config import LicenceConfig
from data_beam.filters.licence import Allowed, LicenceFilter, identifiers, parse
from maxlm.config.schema import ConfigError, build
from tests.data_beam.filters.cases import document


def outcome(licence: str, *allow: str, unknown: str = "drop") -> str:
    """`kept`, or the reason."""
    rule = LicenceFilter(
        build(LicenceConfig, {"allow": allow, "unknown": unknown}, "config.licence"))
    original = dataclasses.replace(document("text"), licence=licence)
    result = rule(original)
    if isinstance(result, Dropped):
        assert result.stage == "licence" and result.detail == repr(licence[:80])
        return result.reason
    assert result is original
    return "kept"


@pytest.mark.parametrize("written, name", [
    ("MIT", "MIT"), ("mit", "MIT"), ("MIT License", "MIT"), ("The MIT License (MIT)", "MIT"),
    ("Apache 2", "Apache-2.0"), ("apache-2.0", "Apache-2.0"), ("Apache 2.0", "Apache-2.0"),
    ("Apache License, Version 2.0", "Apache-2.0"), ("ASL 2.0", "Apache-2.0"),
    ("Apache Software License", "Apache-2.0"), ("Apache 1.1", "Apache-1.1"),
    ("CC BY 4.0", "CC-BY-4.0"), ("CC-BY 4.0", "CC-BY-4.0"), ("cc-by-4.0", "CC-BY-4.0"),
    ("ＣＣ　ＢＹ－ＳＡ　４．０", "CC-BY-SA-4.0"),
    ("CC BY-NC-SA 3.0", "CC-BY-NC-SA-3.0"), ("CC BY-SA-NC 4", "CC-BY-NC-SA-4.0"),
    ("Creative Commons Attribution 4.0 International", "CC-BY-4.0"),
    ("Creative Commons Attribution-ShareAlike 3.0 Unported License", "CC-BY-SA-3.0"),
    ("Attribution-NonCommercial-NoDerivatives 4.0 International", "CC-BY-NC-ND-4.0"),
    ("知识共享署名 4.0", "CC-BY-4.0"),
    ("知识共享 署名-相同方式共享 4.0 国际许可协议", "CC-BY-SA-4.0"),
    ("署名-非商业性使用-禁止演绎 4.0 国际", "CC-BY-NC-ND-4.0"),
    ("知識共享 姓名標示-非商業性-相同方式分享 4.0 國際", "CC-BY-NC-SA-4.0"),
    ("知识共享署名", "CC-BY"), ("CC-BY", "CC-BY"), ("CC BY-SA", "CC-BY-SA"),
    ("CC0", "CC0-1.0"), ("CC0 1.0 Universal", "CC0-1.0"), ("cc-zero", "CC0-1.0"),
    ("https://creativecommons.org/licenses/by-sa/4.0/deed.zh", "CC-BY-SA-4.0"),
    ("http://creativecommons.org/licenses/by/2.5/", "CC-BY-2.5"),
    ("creativecommons.org/publicdomain/zero/1.0/", "CC0-1.0"),
    ("BSD 3-Clause License", "BSD-3-Clause"), ("3-clause BSD", "BSD-3-Clause"),
    ("New BSD License", "BSD-3-Clause"), ("BSD-2-Clause", "BSD-2-Clause"),
    ("GPL", "GPL-1.0-or-later"), ("GPLv3", "GPL-3.0-only"), ("GPL-2.0+", "GPL-2.0-or-later"),
    ("GPL-2.0", "GPL-2.0-only"), ("Apache-2.0+", "Apache-2.0"), ("Apache 2+", "Apache-2.0"),
    ("cc-by-4.0+", "CC-BY-4.0"), ("EPL-1.0+ OR (mit AND GPL-3.0+)",
                                  "EPL-1.0 OR (MIT AND GPL-3.0-or-later)"),
    ("GNU General Public License v2 or later", "GPL-2.0-or-later"),
    ("LGPL 2.1", "LGPL-2.1-only"), ("AGPL-3.0-or-later", "AGPL-3.0-or-later"),
    ("GNU Affero General Public License v3", "AGPL-3.0-only"),
    ("MPL 2.0", "MPL-2.0"), ("木兰宽松许可证 第2版", "MulanPSL-2.0"),
    ("Mulan PSL v2", "MulanPSL-2.0"),
    ("MIT or apache-2.0", "MIT OR Apache-2.0"), ("  MIT  ", "MIT"),
    ("apache-2.0 with llvm-exception", "Apache-2.0 WITH LLVM-exception"),
    ("MIT AND (BSD-3-Clause OR ISC)", "MIT AND (BSD-3-Clause OR ISC)"),
    ("MIT OR LicenseRef-own", "MIT"), ("LicenseRef-scancode-3com-microcode or mit", "MIT"),
    ("DocumentRef-a:LicenseRef-b OR (MIT AND ISC) OR 0BSD", "(MIT AND ISC) OR 0BSD"),
    ("ISC AND (MIT OR (Zlib AND LicenseRef-own))", "ISC AND MIT"),
])
def test_what_sources_write(written, name):
    parsed = parse(written)
    assert (parsed if isinstance(parsed, str | None) else parsed.render()) == name


@pytest.mark.parametrize("written", [
    "", " ", "NOASSERTION", "NONE", "unknown", "proprietary", "All rights reserved", "BSD",
    "Creative Commons", "CC", "CC BY 5.0", "CC-SA-4.0", "MIT/Apache", "MIT AND", "(MIT",
    "MIT OR WTF", "LicenseRef-own", "MIT AND LicenseRef-own", "LicenseRef-a OR LicenseRef-b",
    "MIT OR WTF OR LicenseRef-own", "MIT WITH LicenseRef-own", "WTF+", "+", "MIT++", "Apache-2.0 +",
    "public domain", "版权所有", "公有领域", "LLVM-exception", "MIT WITH Apache-2.0",
    "LicenseRef-scancode-3com-microcode", "(" * 10_000, "MIT OR " * 10_000 + "MIT", "\0",
    "https://creativecommons.org/publicdomain/mark/1.0/", "Permission is hereby granted " * 100,
])
def test_what_nobody_can_know_is_unknown(written):
    assert parse(written) is None
    assert outcome(written, "MIT") == "licence unknown"
    assert outcome(written, "MIT", unknown="quarantine") == "licence quarantined"
    assert outcome(written, "MIT", unknown="keep") == "kept"


@pytest.mark.parametrize("licence, allow, expected", [
    ("MIT", ["MIT"], "kept"), ("MIT", ["mit"], "kept"), ("ISC", ["MIT"], "licence not allowed"),
    ("MIT OR GPL-3.0-only", ["MIT"], "kept"),
    ("MIT AND GPL-3.0-only", ["MIT"], "licence not allowed"),
    ("MIT AND ISC", ["MIT", "ISC"], "kept"),
    ("MIT AND (GPL-3.0-only OR ISC)", ["MIT", "ISC"], "kept"),
    ("MIT AND (GPL-3.0-only OR ISC)", ["ISC"], "licence not allowed"),
    ("Apache-2.0 WITH LLVM-exception", ["Apache-2.0"], "kept"),
    ("Apache-2.0 WITH LLVM-exception", ["Apache-2.0 WITH LLVM-exception"], "kept"),
    ("Apache-2.0", ["Apache-2.0 WITH LLVM-exception"], "licence not allowed"),
    ("GPL-2.0-only WITH Classpath-exception-2.0",
     ["GPL-2.0-only WITH Classpath-exception-2.0"], "kept"),
    ("CC BY 4.0", ["CC-BY-4.0"], "kept"), ("CC-BY-3.0", ["CC-BY-4.0"], "licence not allowed"),
    ("CC-BY-3.0", ["CC-BY"], "kept"), ("CC BY", ["CC-BY"], "kept"),
    ("CC BY", ["CC-BY-4.0"], "licence not allowed"),
    ("CC-BY-NC-4.0", ["CC-BY"], "licence not allowed"),
    ("CC-BY-SA-4.0", ["CC-BY"], "licence not allowed"), ("CC0", ["CC0"], "kept"),
    ("Apache-1.1", ["Apache"], "kept"), ("知识共享署名 4.0", ["CC-BY"], "kept"),
    ("GPL-2.0-or-later", ["GPL-2.0-only"], "licence not allowed"),
])
def test_decisions(licence, allow, expected):
    assert outcome(licence, *allow) == expected


@pytest.mark.parametrize("name, hint", [
    ("MTI", "did you mean 'MIT'?"), ("CC-BY-4", "write 'CC-BY-4.0'"),
    ("Apache 2", "write 'Apache-2.0'"), ("GPL-2.0", "write 'GPL-2.0-only'"),
    ("MIT OR ISC", "list each licence by itself"), ("我的许可", "see https://spdx.org/licenses"),
    ("", "see https://spdx.org/licenses"), ("CC BY-SA", "write 'CC-BY-SA'"),
])
def test_a_typing_error_in_the_list_is_an_error_at_start(name, hint):
    with pytest.raises(ConfigError) as caught:
        outcome("MIT", "ISC", name)
    assert str(caught.value) == f"config.licence.allow[1]: {name!r} is no SPDX identifier; {hint}"


def test_a_policy_without_a_list_is_an_error():
    with pytest.raises(ConfigError, match=r"config\.licence\.allow: is empty"):
        build(LicenceConfig, {"unknown": "keep"}, "config.licence")


def test_names_that_spdx_gives_are_understood_as_themselves():
    for name in identifiers().values():
        parsed = parse(name)
        assert parsed is not None and not isinstance(parsed, str) and parsed.render() == name


def test_one_identifier_in_the_list_admits_that_licence_alone():
    trees = {name: parse(name) for name in identifiers().values()}
    for name in trees:
        allowed = Allowed((name,), "allow")
        assert [other for other, tree in trees.items() if allowed(tree)] == [name]


@given(st.text(max_size=60))
def test_any_text_gets_a_decision(licence):
    assert outcome(licence, "MIT") in ("kept", "licence not allowed", "licence unknown")
