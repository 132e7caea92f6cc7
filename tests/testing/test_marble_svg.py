"""Marbles as pictures: valid, small, the same each time; and operators at work."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from semflux import ChatEventGroup, ChatEventType, ChatStream, Flux
from semflux.testing import Diagram, Marbles, Signal, SignalKind, from_marbles, marble_svg, operator_svg
from semflux.testing.marble_svg import GROUP_COLOURS, ITEM_COLOURS, LINE
from tests.events.samples import SAMPLES, sample

T = ChatEventType
SVG = "{http://www.w3.org/2000/svg}"


def parsed(svg: str) -> ET.Element:
    root = ET.fromstring(svg)
    assert f"{SVG}svg" == root.tag
    return root


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in parsed(svg).iter(f"{SVG}text")]


def marbles(svg: str) -> list[ET.Element]:
    return [each for each in parsed(svg).iter(f"{SVG}rect") if each.get("fill") != "none"]


def x_of(marble: ET.Element) -> float:
    return float(marble.attrib["x"]) + float(marble.attrib["width"]) / 2


def test_a_picture_is_xml_with_a_title_and_a_role() -> None:
    root = parsed(marble_svg(["a", Signal(SignalKind.COMPLETE)], title="Two & more"))
    assert "img" == root.get("role")
    assert "Two & more" == root.findtext(f"{SVG}title")
    assert "a|" == root.findtext(f"{SVG}desc")
    assert {"title", "desc", "path", "rect", "text"} == {each.tag.removeprefix(SVG) for each in root}


def test_it_needs_nothing_else() -> None:
    svg = operator_svg("take(1)", lambda source: source.take(1), "--a--b|")
    assert re.findall(r"https?://[^\"]*", svg) == ["http://www.w3.org/2000/svg"]
    assert "url(" not in svg
    assert " id=" not in svg  # several of them may stand in one page


def test_each_group_of_events_has_its_colour() -> None:
    for type_, event in SAMPLES.items():
        (marble,) = marbles(marble_svg([event]))
        assert GROUP_COLOURS[type_.group] == marble.get("fill")
    assert set(ChatEventGroup) == set(GROUP_COLOURS)
    assert len(set(GROUP_COLOURS.values())) == len(GROUP_COLOURS)


def luminance(colour: str) -> float:
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, two: str) -> float:
    dark, light = sorted([luminance(one), luminance(two)])
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colour", [*GROUP_COLOURS.values(), *ITEM_COLOURS, LINE])
def test_colours_can_be_seen_on_light_and_on_dark_pages(colour: str) -> None:
    """By the measure of WCAG: 3 for what is drawn, 4.5 for text, which on a marble is white."""
    assert contrast(colour, "#ffffff") >= (4.0 if colour == LINE else 4.5)
    assert contrast(colour, "#0d1117") >= (4.0 if colour == LINE else 3.0)


@pytest.mark.parametrize("text", ["<b>&\"'", "\x00\x07\n", "\ud800", "]]>", "日本語", "\u202e", "--"])
def test_any_text_is_escaped(text: str) -> None:
    for svg in (
        marble_svg([text, {text: 1}, sample(T.TEXT_DELTA, text=text)], title=text),
        operator_svg(text, lambda source: source, "a|"),
    ):
        assert parsed(svg.encode().decode()).findtext(f"{SVG}desc") is not None


def test_nothing_long_is_shown() -> None:
    svg = marble_svg([sample(type_, text="s" * 500, data="d" * 500) for type_ in T], limit=99)
    assert "s" * 18 not in svg
    assert "d" * 18 not in svg


def test_a_long_stream_is_shortened() -> None:
    svg = marble_svg(range(1000))
    assert "...(961 more)..." in texts(svg)
    assert 39 == len(marbles(svg))
    assert len(svg) < 12_000
    timed = Marbles.parse("-".join("abcdefghijkl") + "|")
    assert ["a", "...(10 more)...", "l"] == texts(marble_svg(timed, limit=4))


def test_the_same_marbles_are_the_same_bytes() -> None:
    def draw() -> str:
        return operator_svg("buffer(2)", lambda source: source.buffer(2), "--a--b--c--|")

    assert draw() == draw()


def test_marbles_do_not_touch_and_keep_their_order() -> None:
    line = marbles(marble_svg(Marbles.parse("a-'a long text it is'-b-(c d)------e|")))
    edges = [
        (float(each.attrib["x"]), float(each.attrib["x"]) + float(each.attrib["width"])) for each in line
    ]
    assert edges == sorted(edges)
    assert all(before[1] < after[0] for before, after in pairwise(edges))


def test_time_is_one_for_all_lines() -> None:
    """What comes at one time stands in one column; same items have the same colour."""
    svg = operator_svg("filter(odd)", lambda source: source.filter(lambda n: n % 2), "--1--2--3--|")
    one, _, three, odd_one, odd_three = marbles(svg)
    assert (x_of(one), x_of(three)) == (x_of(odd_one), x_of(odd_three))
    assert (one.get("fill"), three.get("fill")) == (odd_one.get("fill"), odd_three.get("fill"))
    assert one.get("fill") != three.get("fill")


def test_pictures_show_items_as_python_does() -> None:
    """Where nothing is to be told apart from dashes."""
    items = [(0, "a"), -1, {"a": 1}, {1, 2}, Flux.empty(), [1], "b"]
    assert ["(0, a)", "-1", "{'a': 1}", "{1, 2}", "Flux", "[1]", "b"] == texts(marble_svg(items))


def test_a_call_that_is_wider_than_the_lines_widens_the_lines() -> None:
    svg = operator_svg("map(" + "n" * 60 + ")", lambda source: source, "1|")
    ends = {path.attrib["d"].split(" ")[0] for path in parsed(svg).iter(f"{SVG}path") if path.get("fill")}
    assert 1 == len(ends)
    assert float(ends.pop()[1:]) > 400


def test_errors_and_cancels_are_named() -> None:
    diagram = Diagram.of("merge_with(b)", lambda a, b: a.merge_with(b), "--a-----b--|", "----8--X(KeyError)")
    assert "--a----!\n----8--X(KeyError)        merge_with(b)\n--a-8--X(KeyError)" == str(diagram)
    assert ["a", "cancel", "8", "KeyError", "merge_with(b)", "a", "8", "KeyError"] == texts(diagram.svg())


# Operators at work


def test_an_operator_without_a_source() -> None:
    diagram = Diagram.of("Flux.just(1, 2)", lambda: Flux.just(1, 2))
    assert "Flux.just(1, 2)\n1 2|" == str(diagram)
    assert ["Flux.just(1, 2)", "1", "2"] == texts(diagram.svg(title="just"))


def test_a_source_may_be_made_for_the_clock_or_be_there() -> None:
    def twice(one: Flux[Any], two: Flux[Any], three: Flux[Any]) -> Flux[Any]:
        return Flux.concat(one, two, three)

    diagram = Diagram.of(
        "concat", twice, Flux.just(1), lambda clock: from_marbles("-2|", clock=clock), Marbles.parse("-3|")
    )
    assert [0.0, 0.0, 2.0] == [line.begin for line in diagram.inputs]
    assert [(0, "1"), (1, "2"), (3, "3"), (4, "|")] == [
        (mark.time, mark.token) for mark in diagram.results[0].marks
    ]


def test_who_comes_later_has_a_line_of_his_own() -> None:
    diagram = Diagram.of(
        "share()", lambda source: source.share(), "--a-----b--c---d|", joins=(0, 5), cancel_at=14
    )
    assert ["--a-----b--c--!        share()", "--a-----b--c--!", "--------b--c--!"] == str(
        diagram
    ).splitlines()
    assert [0.0, 5.0] == [line.begin for line in diagram.results]
    parsed(diagram.svg())


def test_a_source_that_nobody_subscribes_to_is_a_dashed_line() -> None:
    diagram = Diagram.of("switch_if_empty(b)", lambda a, b: a.switch_if_empty(b), "--1--|", "--9--|")
    assert diagram.inputs[1].begin is None
    assert 1 == diagram.svg().count("stroke-dasharray")


def test_it_is_known_again_that_a_source_was_subscribed_to_twice() -> None:
    attempts = iter(["--X(KeyError)", "---a--|"])

    def make(clock: Any) -> Flux[Any]:
        return Flux.defer(lambda: from_marbles(next(attempts), clock=clock))

    diagram = Diagram.of("retry(1)", lambda source: source.retry(1), make)
    assert ["X(KeyError)", "a", "|"] == [mark.token for mark in diagram.inputs[0].marks]
    assert [5.0, 8.0] == [mark.time for mark in diagram.results[0].marks]
    parsed(diagram.svg())


def test_events_keep_their_colour_on_the_way() -> None:
    svg = operator_svg(
        "only(T.TEXT_DELTA)",
        lambda source: ChatStream(source).only(T.TEXT_DELTA),
        "RESP+--TEXT+--TEXT~a--TEXT---RESP-|",
    )
    assert GROUP_COLOURS[ChatEventGroup.TEXT] == marbles(svg)[-1].get("fill")


async def test_a_diagram_in_a_coroutine_is_awaited() -> None:
    diagram = await Diagram.of_async("take(1)", lambda source: source.take(1), "--1--2|")
    assert "--(1 !)        take(1)\n--(1 |)" == str(diagram)
