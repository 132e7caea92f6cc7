"""What to test streams with. It needs no test framework, and works with all of them.

verifier.py            StepVerifier: what a stream must do, step by step
  steps, chat_steps    what each step takes; script.py: the steps at work
  verification.py      one run: subscriptions.py, clocks.py (virtual time), aftermath.py (what was dropped)
publisher.py           TestPublisher: a source in the test's hand; probe.py: PublisherProbe
well_formed.py         assert_well_formed: the order of events, with a report
marbles.py             marble_text: what came, as a line of text, and the way back; marble_labels.py: what stands on a marble
  recording.py         record: a stream on a virtual clock, written down; from_marbles: a text as a source
  diagram.py           Diagram: an operator at work; marble_svg.py: marbles as pictures
contracts.py           check_operator, check_dialect, check_transport: what holds for all of them
  operator_rules.py    the contract of operators, rule by rule; operator_case.py: what they look through
  dialect_contract.py  that of dialects; transport_contract.py: that of transports; report.py
strategies/            for hypothesis: streams of events, providers' bytes, cuts, faults
leaks.py               what a test leaves behind; the pytest plugin is `pytest_semflux.py`, beside the package
"""

from semflux.testing.aftermath import Aftermath
from semflux.testing.contracts import check_dialect, check_operator, check_transport
from semflux.testing.diagram import Diagram, operator_svg
from semflux.testing.marble_svg import marble_svg
from semflux.testing.marbles import Marbles, Mark, marble_text
from semflux.testing.probe import PublisherProbe
from semflux.testing.publisher import TestPublisher, Violation
from semflux.testing.recording import from_marbles, record, record_async
from semflux.testing.report import ContractError
from semflux.testing.script import StepFailedError
from semflux.testing.signals import Signal, SignalKind
from semflux.testing.transport_contract import TransportMaker
from semflux.testing.verifier import StepVerifier
from semflux.testing.well_formed import assert_well_formed

__all__ = (
    "Aftermath",
    "ContractError",
    "Diagram",
    "Marbles",
    "Mark",
    "PublisherProbe",
    "Signal",
    "SignalKind",
    "StepFailedError",
    "StepVerifier",
    "TestPublisher",
    "TransportMaker",
    "Violation",
    "assert_well_formed",
    "check_dialect",
    "check_operator",
    "check_transport",
    "from_marbles",
    "marble_svg",
    "marble_text",
    "operator_svg",
    "record",
    "record_async",
)
