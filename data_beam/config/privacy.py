"""Personal data: what is looked for and what is done about it."""

import dataclasses

from data_beam.config.checks import check_idle
from maxlm.config.schema import ConfigError, setting

ACTIONS = ("placeholder", "drop", "keep")
"""`placeholder` puts `[EMAIL]` and the like in its place, `drop` leaves the document out, `keep`
only counts."""


@dataclasses.dataclass(frozen=True)
class PrivacyConfig:
    """Personal data, source code included. Each kind has its action: placeholder, drop, keep."""

    enabled: bool = setting(False, "look for personal data")
    email: str = setting("placeholder", "e-mail addresses: [EMAIL]", choices=ACTIONS)
    phone: str = setting("placeholder", "telephone numbers: [PHONE]", choices=ACTIONS)
    resident_id: str = setting(
        "placeholder", "PRC resident identity numbers: [ID]", choices=ACTIONS)
    ssn: str = setting("placeholder", "US social security numbers: [ID]", choices=ACTIONS)
    card: str = setting("placeholder", "bank cards: [CARD]", choices=ACTIONS)
    ip: str = setting("placeholder", "IP addresses: [IP]", choices=ACTIONS)
    passport: str = setting("placeholder", "passport numbers: [PASSPORT]", choices=ACTIONS)
    plate: str = setting("placeholder", "PRC licence plates: [PLATE]", choices=ACTIONS)
    name: str = setting(
        "placeholder", "names that name_recogniser finds: [NAME]", choices=ACTIONS)
    drop_over: int = setting(
        0, "a document with more than this many items of kinds to drop is dropped; up to so many "
        "become placeholders", minimum=0)
    private_addresses: bool = setting(
        False, "IP addresses of private, loopback and documentation ranges too")
    name_recogniser: str = setting(
        "", "module:function that takes a text and returns a list of (start, end) in characters; "
        "loaded once a worker, empty for none")

    def check(self, path: str) -> None:
        if not self.enabled and self != PrivacyConfig():
            raise ConfigError(f"{path}.enabled: is False, so the other fields of {path} do "
                              "nothing; set it, or leave them at their defaults")
        kinds = [field.name for field in dataclasses.fields(self)
                 if field.metadata["choices"] == ACTIONS]
        if all(getattr(self, kind) != "drop" for kind in kinds):
            check_idle(self, path, "no kind has the action 'drop'", "give it to one",
                       only=("drop_over",))
        if not self.name_recogniser:
            check_idle(self, path, f"{path}.name_recogniser is empty", "name the function",
                       only=("name",))
