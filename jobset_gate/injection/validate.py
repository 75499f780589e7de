"""Everything that is wrong with a JobSet's gate, at once, with field paths (A2, A3)."""

from jobset_gate.injection import config_rules, limits, order_rules, template_rules
from jobset_gate.objects.field_error import FieldError, format_value
from jobset_gate.objects.unstructured import Json, config_of
from jobset_gate.podgroups import barrier_compat
from jobset_gate.settings import Settings

DEFAULT: Settings = Settings()


def field_errors(new: Json, old: Json | None = None, *, settings: Settings = DEFAULT) -> list[FieldError]:
    """What forbids a CREATE (`old` None) or an UPDATE; [] for a JobSet without a config.

    An UPDATE is blamed only for what the old object did not have already: a JobSet that was made while the webhook
    was off must stay editable. What is larger than the bounds is refused for that, before any rule looks at it.
    """
    too_large = limits.exceeded(new, old)
    if too_large:
        return too_large
    if old is None:
        return template_rules.metadata(new) or _of_itself(new, None, settings)
    found = config_rules.changes(new, old) + template_rules.changes(new, old)
    standing = _of_itself(new, old, settings)
    if standing:
        known = {_identity(it) for it in _of_itself(old, old, settings)}
        found += [it for it in standing if _identity(it) not in known]
    return found


def _of_itself(jobset: Json, old: Json | None, settings: Settings) -> list[FieldError]:
    """What is wrong with an object whatever it was before; `old` only says that it is no longer being made."""
    given = config_of(jobset)
    if not given.present:
        return []
    found = [*given.violations, *config_rules.annotations(jobset), *template_rules.reserved(jobset, old)]
    if old is None and given.conflict is not None:
        found.append(given.conflict)
    config = given.parsed.usable
    if config is None:
        return found
    found += config_rules.targets(jobset, config, given.path)
    found += template_rules.platform(jobset, config)
    found += order_rules.never_starts(jobset, config)
    found += order_rules.never_ends(jobset, config, settings.barrier)
    found += barrier_compat.barrier_conflicts(jobset, config, settings.groups)
    if old is None:
        found += template_rules.unmarked(jobset, config)
        found += template_rules.empty(jobset, config)
    return found


def _identity(violation: FieldError) -> tuple[str, str, str]:
    return violation.path, format_value(violation.value), violation.message
