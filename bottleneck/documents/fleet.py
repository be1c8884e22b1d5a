"""A fleet's result in each format: the matrix of its pairs, and what the slow ones share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from bottleneck import __version__
from bottleneck.analysis.phrases import cap_text
from bottleneck.documents import fleet_together, html, markdown
from bottleneck.documents.document import (
    Block,
    Column,
    Heat,
    HeatCell,
    Points,
    Table,
    Text,
    columns,
    points,
)
from bottleneck.documents.fleet_together import LONGEST_NAME, name_of
from bottleneck.documents.html import Group
from bottleneck.fleet.culprit import SLOW
from bottleneck.fleet.records import Culprit, Findings, Fleet, Node, Pair
from bottleneck.fleet.result import Result
from bottleneck.gate.judged import Judgement, Ruling, State
from bottleneck.text.safe import safe
from bottleneck.text.units import percent_text, rate_text, seconds_text, size_text

MOST_LINES = 12
MOST_SERVERS, MOST_CLIENTS = 8, 16
"""Size of the matrix on a terminal; a page and the JSON have more."""


def pair_text(pair: Pair) -> str:
    """Returns `pc1 with nas2`."""
    return f"{safe(pair.client, LONGEST_NAME)} with {safe(pair.server, LONGEST_NAME)}"


def first_text(texts: Iterable[str], between: str = ", ") -> str:
    """Returns the first three of a list: `nas1, nas2, nas3 and 3 more`."""
    items = list(texts)
    rest = f" and {len(items) - 3} more" if len(items) > 3 else ""
    return between.join(items[:3]) + rest


def headline(result: Result) -> str:
    """Returns the answer in one line."""
    if result.together is not None:
        return fleet_together.headline(result.together)
    culprits, undecided = result.culprits, result.undecided_suspects
    if culprits:
        return f"Bottleneck: {first_text(map(_culprit_text, culprits))}"
    if undecided:
        nodes = (undecided[0].node, *undecided[0].alternatives)
        return f"Bottleneck: not identified, {' or '.join(map(name_of, nodes))}"
    if not result.findings:
        return "Bottleneck: not identified (no copy was measured)"
    if result.common:
        first = result.common[0]
        pairs = f"{first.agreeing_pairs} of {first.measured_pairs} pairs"
        return f"Bottleneck: {cap_text(first.verdict)}, the same for {pairs}"
    finding = result.findings[0]
    if count := len(finding.unexplained):
        if suspect := _suspect(result, finding):
            return f"Bottleneck: not identified, {name_of(suspect)} is suspected"
        return f"Bottleneck: not identified, no shared host explains {_pairs(count, 'slow ')}"
    usual, limit = rate_text(finding.usual_bytes_per_second), SLOW * finding.usual_bytes_per_second
    below = any(rate < limit for rate in result.rates[finding.copy].values())
    pairs = "no pair with a faster link" if below else "no pair"
    measured = {pair for rates in result.rates.values() for pair in rates}
    if len(result.missing) >= len(measured):
        total = _pairs(len(measured) + len(result.missing))
        return f"Bottleneck: not identified, only {len(measured)} of {total} could be measured"
    gaps = f" ({_pairs(len(result.missing))} not measured)" if result.missing else ""
    gaps += f" ({len(result.unread)} not readable)" if result.unread else ""
    return f"No fault found: {pairs} is slower than {percent_text(SLOW)} of {usual}{gaps}"


def _suspect(result: Result, finding: Findings) -> Node | None:
    """Returns the only node that all unexplained slow pairs pass, if they are several, and that
    a faster pair passes too."""
    passed = [set(result.fleet.nodes(each)) for each in finding.unexplained]
    shared = set.intersection(*passed) if len(passed) > 1 else set()
    fast = set(result.rates[finding.copy]) - set(finding.slow)
    nodes = {each for pair in fast for each in result.fleet.nodes(pair)}
    return shared.pop() if len(shared) == 1 and shared <= nodes else None


def _pairs(count: int, kind: str = "") -> str:
    return f"{count} {kind}pair{'s' * (count != 1)}"


def _culprit_text(culprit: Culprit) -> str:
    limit = f" ({cap_text(culprit.verdict)})" if culprit.verdict else ""
    return f"{name_of(culprit.node)}{limit}"


def sentences(result: Result) -> Iterator[str]:
    """Yields the facts behind the headline, one sentence each."""
    if result.together is not None:
        yield from fleet_together.sentences(result.together)
    if not result.findings:
        return
    finding = result.findings[0]
    usual = rate_text(finding.usual_bytes_per_second)
    for each in (*result.culprits[:MOST_LINES], *result.undecided_suspects[:MOST_LINES]):
        yield _culprit_sentence(each, finding)
    for one in result.common:
        servers = first_text(safe(each, LONGEST_NAME) for each in one.servers)
        yield (
            f"{one.agreeing_pairs} of {one.measured_pairs} pairs of {servers} name the same limit: "
            f"{cap_text(one.verdict)}. The usual rate is {usual}."
        )
    if result.at_most:
        yield (
            f"{_pairs(len(result.at_most), 'slow ')} had no time for a whole copy (use a larger "
            "--budget): the rate is that of a copy without the client's disk."
        )
    if finding.unexplained:
        pairs = first_text(map(pair_text, finding.unexplained), "; ")
        if suspect := _suspect(result, finding):
            yield (
                f"Slow pairs: {pairs}. All are pairs of {name_of(suspect)}, which has a faster "
                "pair too. To decide, measure the slow pairs again."
            )
        else:
            yield f"Slow pairs that no shared host explains: {pairs}."


def _culprit_sentence(culprit: Culprit, finding: Findings) -> str:
    usual = rate_text(finding.usual_bytes_per_second)
    name = name_of(culprit.node)
    text = (
        f"{len(culprit.slow)} of {culprit.measured} measured pairs of {name} reach about "
        f"{rate_text(culprit.bytes_per_second)}; the usual rate is {usual}."
    )
    if culprit.verdict is not None:
        text += f" {culprit.agreeing} of them name: {cap_text(culprit.verdict)}."
    if culprit.opposed:
        text += f" {culprit.opposed} of them name a limit of another part."
    if culprit.alternatives:
        others = " or ".join(map(name_of, culprit.alternatives))
        text += f" {others.capitalize()} explains them as well."
    if culprit.measure is not None:
        text += f" To decide, measure {pair_text(culprit.measure)}."
    elif culprit.alternatives:
        text += " No other pair would decide between them."
    return text


def blocks(result: Result) -> Iterator[Block]:
    """Yields the answer, the culprits and the matrix of the headline's copy, for a terminal."""
    yield Text(headline(result), "strong")
    yield from (Text(each, hanging="  ") for each in sentences(result))
    yield from details(result)
    if result.findings and result.together is None:
        yield matrix(result, MOST_CLIENTS, MOST_SERVERS)


def details(result: Result) -> Iterator[Block]:
    """Yields tables of the clients at once and of the culprits, and what is missing."""
    yield from fleet_together.blocks(result.together)
    table = Table(
        "Shared limits",
        columns("node", "rate", "slow pairs", "limited by", "copies", "confidence", right="1 2"),
    )
    for each in result.culprits[:MOST_LINES]:
        table.add(
            name_of(each.node),
            rate_text(each.bytes_per_second),
            f"{len(each.slow)} of {each.measured}",
            cap_text(each.verdict) if each.verdict else "-",
            ", ".join(result.copies_of(each)),
            f"{each.confidence:.2f}",
        )
    table.left_out = len(result.culprits) - len(table.rows)
    if table.rows:
        yield table
    gaps = [f"{pair_text(pair)}: {reason}" for pair, reason in sorted(result.missing.items())]
    hosts = {host for pair in result.missing for host in pair}
    gaps += [f"{host}: no report" for host in result.unmeasured_hosts if host not in hosts]
    gaps += [f"{safe(each)} (collect it again)" for each in result.unread]
    yield from points("Not measured", gaps, MOST_LINES, 200)
    if result.missing:
        pair = min(result.missing)
        yield Text(
            "What to do: mend these, then measure them again: `bottleneck diagnose "
            f"//{safe(pair.server, LONGEST_NAME)}/SHARE --json FILE` on "
            f"{safe(pair.client, LONGEST_NAME)}, FILE in the folder of the reports, or `bottleneck "
            "fleet ... --resume`.",
            hanging="  ",
        )


def matrix(result: Result, most_clients: int, most_servers: int) -> Table:
    """Returns rates of the headline's copy, clients of slow pairs first, slow pairs marked."""
    finding = result.findings[0]
    rates, slow = result.rates[finding.copy], set(finding.slow)
    clients, servers = _worst_first(result.fleet, finding)
    across = servers[:most_servers]
    table = Table(
        f"{finding.copy}: rates of {_pairs(finding.measured)}",
        (Column("client"), *(Column(safe(each, 16), right=True) for each in across)),
        note=f"* slower than {percent_text(SLOW)} of the usual rate "
        f"({rate_text(finding.usual_bytes_per_second)}); -: not measured",
    )
    for client in clients[:most_clients]:
        pairs = (Pair(client, each) for each in across)
        cells = (_cell(rates.get(pair), pair in slow) for pair in pairs)
        table.add(safe(client, LONGEST_NAME), *cells)
    table.left_out = len(clients) - len(table.rows)
    return table


def _cell(rate: float | None, slow: bool) -> str:
    return "-" if rate is None else f"{rate_text(rate)}{' *' if slow else '  '}"


def _worst_first(fleet: Fleet, finding: Findings) -> tuple[list[str], list[str]]:
    count = Counter(node for pair in finding.slow for node in fleet.nodes(pair))
    ordered = sorted(fleet.hosts, key=lambda node: -count[node])
    return (
        [node.name for node in ordered if node.kind == "client"],
        [node.name for node in ordered if node.kind == "server"],
    )


def nodes_by_pair(finding: Findings) -> dict[Pair, list[Node]]:
    """Returns the nodes that are named for each slow pair."""
    slow: dict[Pair, list[Node]] = {}
    for each in finding.culprits:
        for pair in each.slow:
            slow.setdefault(pair, []).append(each.node)
    return slow


def judgement(result: Result) -> Judgement:
    """Returns a case for each pair, critical where it is slow, for JUnit and Nagios."""
    state: State = "critical" if result.culprits else "ok" if result.is_decided else "unknown"
    if state != "critical" and result.together is not None:
        state = max(state, fleet_together.state(result.together), key=_STATES.index)
    return Judgement(state, headline(result), tuple(_cases(result)), None, None)


_STATES: tuple[State, ...] = ("ok", "unknown", "critical")


def _cases(result: Result) -> Iterator[Ruling]:
    yield from fleet_together.cases(result.together)
    for finding in result.findings[:1]:
        nodes, slow = nodes_by_pair(finding), set(finding.slow)
        threshold = SLOW * finding.usual_bytes_per_second
        for pair, rate in sorted(result.rates[finding.copy].items()):
            name = f"{pair_text(pair)}: {finding.copy}"
            cause = ", ".join(map(name_of, nodes.get(pair, ()))) or "not identified"
            state: State = "critical" if pair in slow else "ok"
            text = rate_text(rate) + (f", limited by {cause}" if state == "critical" else "")
            metric = f"{pair.client}.{pair.server}"
            limit = f"{threshold:.0f}:" if pair in slow or rate >= threshold else ""
            yield Ruling(name, metric, state, text, rate, "bytes_per_second", "", limit)
    for pair, reason in sorted(result.missing.items()):
        yield Ruling(pair_text(pair), f"{pair.client}.{pair.server}", "unknown", reason)
    for each in result.unread:
        file, _, reason = each.partition(": ")
        yield Ruling(safe(file), "unread", "unknown", reason)


def ticket(result: Result) -> str:
    """Returns one page of Markdown."""
    paragraphs = [Text(each) for each in sentences(result)]
    lines = [
        f"# {markdown.inline(headline(result))}",
        "",
        f"copy-bottleneck/ticket/fleet, version {__version__}.",
        "",
        *markdown.section("Evidence", paragraphs),
        *markdown.section("Details", details(result)),
    ]
    if result.findings:
        table = matrix(result, MOST_CLIENTS, MOST_SERVERS)
        note, table.note = table.note, ""
        lines += [*markdown.section(table.title, [table]), *markdown.paragraph(note)]
    return "\n".join(lines).rstrip() + "\n"


def page(result: Result) -> str:
    """Returns the HTML page with the matrix as a heat map, the pairs of culprits framed."""
    sections = [Group("Details", tuple(details(result)), "details")]
    if result.findings:
        sections.insert(0, Group("Pairs", (*_heat(result), matrix(result, 200, 60)), "pairs"))
    skipped = tuple(points("", result.skipped, 200, 300))
    sections.append(Group("Files that were skipped", skipped, "skipped"))
    top = {
        "title": headline(result),
        "origin": f"{len(result.fleet.clients)} clients, {len(result.fleet.servers)} servers",
        "named": bool(result.culprits),
        "headline": headline(result),
        "rest": " ".join(list(sentences(result))[:3]),
        "figures": None,
        "ending": "" if result.status == "complete" else f"Partial results: {result.status}",
        "advice": (),
        "version": __version__,
    }
    return html.page(sections, top)


def _heat(result: Result) -> Iterator[Block]:
    finding = result.findings[0]
    clients, servers = _worst_first(result.fleet, finding)
    clients, servers = clients[: html.MOST_HEAT_ROWS], servers[: html.MOST_HEAT_COLUMNS]
    slow, rates = nodes_by_pair(finding), result.rates[finding.copy]
    cells = tuple(
        HeatCell(row, column, rate, "", Pair(client, server) in slow)
        for row, client in enumerate(clients)
        for column, server in enumerate(servers)
        if (rate := rates.get(Pair(client, server))) is not None
    )
    heat = Heat(
        cells,
        "client",
        "server",
        lambda index: safe(clients[int(index)], 16),
        lambda index: safe(servers[int(index)], 12),
        framed="limited by a shared node",
    )
    note = f"{finding.copy} of each pair; clients and servers of slow pairs come first."
    if len(cells) < finding.measured:
        note += f" {len(cells)} of {finding.measured} pairs are shown."
    yield Text(note)
    if cells:
        yield heat


def plan_blocks(
    fleet: Fleet,
    rounds: Sequence[Sequence[Pair]],
    each_seconds: float,
    limit: int,
    copy_bytes: int,
    load_lines: Sequence[str] = (),
) -> Iterator[Block]:
    """Yields the timetable for a person and its load; load_lines: further lines of the load."""
    tests = sum(map(len, rounds))
    width = max(map(len, rounds), default=0)
    yield Text(f"{tests} tests in {len(rounds)} rounds, up to {limit} tests in all", "strong")
    clients, servers = len(fleet.clients), len(fleet.servers)
    total, one = seconds_text(len(rounds) * each_seconds), seconds_text(each_seconds)
    load = (
        f"{clients} clients, {servers} servers: {clients * servers} pairs.",
        f"At most {width} tests at the same time, one for each client, server and uplink.",
        f"Duration: at most {total}, {one} for each test.",
        f"Test files: at most {size_text(copy_bytes)} on each client and share, then removed.",
    )
    yield Points("Load", (*load, *load_lines))
    table = Table("Timetable", columns("round", "starts after", "pairs", right="0 1"))
    for index, each in enumerate(rounds[:MOST_CLIENTS]):
        pairs = ", ".join(map(pair_text, each[:4])) + (
            f", +{len(each) - 4}" if len(each) > 4 else ""
        )
        table.add(str(index + 1), seconds_text(index * each_seconds) if index else "0 s", pairs)
    table.left_out = len(rounds) - len(table.rows)
    yield table
