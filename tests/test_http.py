"""HTTP requests: where a key may go and where not."""

from __future__ import annotations

import json
import traceback
from typing import Any

import pytest

from semflux.errors import ConfigurationError
from semflux.frozen import freeze
from semflux.http import (
    HttpRequest,
    Timeouts,
    check_base_url,
    check_header,
    encode_body,
    is_loopback,
    join_url,
    json_request,
    quote_segment,
)
from semflux.secret import Secret


@pytest.mark.parametrize("value", ["a\r\nb", "a\nb", "a\x00", "a\x1b[0m", "a\x7f", "caf\u0107", "\u2028"])
@pytest.mark.parametrize("wrap", [str, Secret])
def test_a_header_value_with_control_characters_or_beyond_latin_1_is_refused(value: str, wrap: Any) -> None:
    """The error names the header; neither it nor its traceback shows the value."""
    secret = "canary" + value
    with pytest.raises(ConfigurationError) as caught:
        HttpRequest(url="https://h", headers=(("x-api-key", wrap(secret)),))
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value.__dict__)
    assert ("'x-api-key'" in shown, "canary" in shown) == (True, False)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a\nb", "\u00e9", "a(b)"])
def test_a_header_name_is_a_token(name: str) -> None:
    """RFC 9110, 5.6.2."""
    with pytest.raises(ConfigurationError, match="a header name is made of letters"):
        check_header(name, "v")


def test_a_header_may_hold_tabs_and_latin_1() -> None:
    """RFC 9110, 5.5."""
    check_header("x-name", "caf\u00e9\tau lait")


@pytest.mark.parametrize(
    "host, expected",
    [
        ("localhost", True),
        ("LOCALHOST.", True),
        ("a.localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("::ffff:10.0.0.1", False),
        ("10.0.0.1", False),
        ("169.254.169.254", False),
        ("127.1", False),
        ("2130706433", False),
        ("0x7f.0.0.1", False),
        ("localhost.example.com", False),
        ("notlocalhost", False),
    ],
)
def test_this_machine_is_told_by_its_spelling(host: str, expected: bool) -> None:
    """Nothing is looked up."""
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    "url, expected",
    [
        ("https://api.example.com/v1/", "https://api.example.com/v1"),
        ("https://api.example.com", "https://api.example.com"),
        ("HTTPS://api.example.com:8443/v1", "https://api.example.com:8443/v1"),
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        (
            "https://r.example.com/openai?api-version=2024-10-21",
            "https://r.example.com/openai?api-version=2024-10-21",
        ),
    ],
)
def test_a_base_url_loses_the_slash_at_its_end(url: str, expected: str) -> None:
    """And is otherwise as it was."""
    assert check_base_url(url) == expected


@pytest.mark.parametrize(
    "url, message",
    [
        ("api.example.com/v1", "write it like https://api.example.com/v1"),
        ("ftp://api.example.com", "needs its scheme and host"),
        ("https://", "needs its scheme and host"),
        ("https://[::1", "is no URL"),
        ("https://h:99999/canary", "is no URL"),
        ("https://h/a b", "a space, a control character or a backslash"),
        ("https://h\\@evil", "a space, a control character or a backslash"),
        ("https://h/\n", "a space, a control character or a backslash"),
        ("https://canary:canary@h/v1", "pass the key as api_key="),
        ("https://canary@h/v1", "pass the key as api_key="),
        ("https://h/v1#canary", "take it out"),
        ("https://h/v1?key=canary", "in its query"),
        ("https://h/v1?api_key=canary", "in its query"),
        ("https://h/v1?x=sk-canary12", "in its query"),
        ("http://api.example.com/v1", "must be https"),
        ("http://10.0.0.1:8000", "must be https"),
    ],
)
def test_a_base_url_that_may_not_be_asked_is_refused(url: str, message: str) -> None:
    """The error says what to do and shows nothing secret."""
    with pytest.raises(ConfigurationError, match=message) as caught:
        check_base_url(url)
    assert (
        "canary" in str(caught.value),
        caught.value.__suppress_context__ or caught.value.__context__ is None,
    ) == (
        False,
        True,
    )


def test_a_path_is_added_before_the_query() -> None:
    """What the base URL says of the query wins."""
    assert [
        join_url("https://h/v1/", "/chat"),
        join_url("https://h/v1?a=1", "/chat", {"a": "2", "b": "x y"}),
        join_url("https://h", "/" + quote_segment("a/b c")),
    ] == ["https://h/v1/chat", "https://h/v1/chat?a=1&b=x+y", "https://h/a%2Fb%20c"]


def test_a_body_is_json_in_utf_8() -> None:
    """Frozen values too."""
    assert (
        encode_body({"a": freeze([1, {"b": "\u00e9"}]), "c": None}) == '{"a":[1,{"b":"é"}],"c":null}'.encode()
    )


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    """And a pair in two halves becomes the character it stands for; UTF-8 has no surrogates."""
    body = {"\ud800": ["\ud83d\ude00", ("x\udc00",), 1]}
    assert json.loads(encode_body(body)) == {"\ufffd": ["\U0001f600", ["x\ufffd"], 1]}


@pytest.mark.parametrize("value", [object(), Secret("canary"), ["\ud800", object()]])
def test_a_body_that_is_no_json_is_refused(value: object) -> None:
    """The error shows nothing of it and is chained to nothing."""
    with pytest.raises(ConfigurationError, match="cannot be written as JSON") as caught:
        encode_body({"canary": value})
    assert ("canary" in str(caught.value), caught.value.__cause__) == (False, None)


def test_a_request_carries_its_own_headers_and_the_users() -> None:
    """The user's replace those of the same name, in any case; what carries a key is a Secret."""
    request = json_request(
        "https://h/v1",
        {"a": 1},
        headers=(("authorization", Secret("Bearer k")), ("x-version", "1")),
        extra_headers={"X-Version": "2", "X-Api-Key": "k2", "accept": "*/*"},
        stream=True,
    )
    assert request == HttpRequest(
        url="https://h/v1",
        headers=(
            ("content-type", "application/json"),
            ("accept", "*/*"),
            ("authorization", Secret("Bearer k")),
            ("x-version", "2"),
            ("x-api-key", Secret("k2")),
        ),
        body=b'{"a":1}',
        method="POST",
    )


def test_a_request_asks_for_a_stream_or_for_json() -> None:
    """By `accept`."""
    accepts = [
        dict(json_request("https://h", {}, headers=(), extra_headers={}, stream=stream).headers)["accept"]
        for stream in (True, False)
    ]
    assert accepts == ["text/event-stream", "application/json"]


def test_the_repr_of_a_request_shows_no_header_query_or_body() -> None:
    """Only where it goes and how large it is."""
    request = HttpRequest(url="https://h/v1?x=canary", headers=(("x-a", "canary"),), body=b"canary")
    assert repr(request) == "HttpRequest(url='https://h/v1', body=<6 bytes>, method='POST')"


def test_the_default_limits_are_those_of_the_security_page() -> None:
    """Bounds that are settable and never silently unlimited, but for the whole."""
    assert Timeouts() == Timeouts(connect=10.0, pool=30.0, first=600.0, idle=300.0, total=None)


def test_plain_http_to_another_machine_takes_a_word() -> None:
    """A server on a trusted network is common for vLLM; the default keeps keys off the wire."""
    with pytest.raises(ConfigurationError, match="plain_http=True"):
        check_base_url("http://vllm.example:8000")
    assert check_base_url("http://vllm.example:8000/", plain_http=True) == "http://vllm.example:8000"
