"""What to test streams with. It needs no test framework, and works with all of them.

verifier.py            StepVerifier: what a stream must do, step by step
  steps, chat_steps    what each step takes; script.py: the steps at work
  verification.py      one run: subscriptions.py, clocks.py (virtual time), aftermath.py (what was dropped)
publisher.py           TestPublisher: a source in the test's hand; probe.py: PublisherProbe
well_formed.py         assert_well_formed: the order of events, with a report
contracts.py           check_operator, check_dialect, check_transport: what holds for all of them
  operator_rules.py    the contract of operators, rule by rule; operator_case.py: what they look through
  dialect_contract.py  that of dialects; transport_contract.py: that of transports; report.py
"""

from semflux.testing.aftermath import Aftermath
from semflux.testing.contracts import check_dialect, check_operator, check_transport
from semflux.testing.probe import PublisherProbe
from semflux.testing.publisher import TestPublisher, Violation
from semflux.testing.report import ContractError
from semflux.testing.script import StepFailedError
from semflux.testing.signals import Signal, SignalKind
from semflux.testing.transport_contract import TransportMaker
from semflux.testing.verifier import StepVerifier
from semflux.testing.well_formed import assert_well_formed

__all__ = (
    "Aftermath",
    "ContractError",
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
)
