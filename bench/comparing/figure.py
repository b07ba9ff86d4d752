# SPDX-License-Identifier: Apache-2.0
"""A figure: our measurement and that of the control in the same minute, and whether ours is good enough.
Ratios and goals are defined so that larger is better."""
import math
import statistics


def at_most(absolute=0.0, times=0.0, plus=None):
    """The largest allowed time or cost, given the control's: the most generous of the arguments counts."""
    def allowed(control):
        return max(absolute, times * control, control + plus if plus is not None else 0.0)
    return allowed


ANY = at_most(math.inf)  # for information: the goal is 0, and always met


def at_least(absolute, part):
    """The smallest allowed rate, given the control's: the more modest of the arguments counts."""
    def wanted(control):
        return min(absolute, part * control)
    wanted.of_rates = True
    return wanted


class Figure:
    """`bound` is one of the above. Each round adds our value and the control's, and further numbers by their
    names."""

    def __init__(self, name, unit, bound):
        self.name, self.unit, self.bound = name, unit, bound
        self.ours, self.control, self.extras = [], [], {}

    def add(self, ours, control, **extras):
        self.ours.append(ours)
        self.control.append(control)
        for name, value in extras.items():
            self.extras.setdefault(name, []).append(value)

    def line(self):
        """The figure as it is printed. The median of the rounds counts."""
        ours, control = statistics.median(self.ours), statistics.median(self.control)
        allowed = self.bound(control)
        ratio, asked = self._better(ours, control), self._better(allowed, control)
        # If the control misses the bound, equalling the control suffices. A missing measurement is not a success.
        goal = min(1.0, asked) if control > 0 else 1.0
        ratios = [self._better(*pair) for pair in zip(self.ours, self.control)]
        extras = {name: _short(statistics.median(values)) for name, values in self.extras.items()}
        return {"figure": self.name, "ours": _short(ours), "control": _short(control), "ratio": _short(ratio),
                "goal": _short(goal), "holds": ratio >= goal, "unit": self.unit,
                "allowed": _short(allowed) if math.isfinite(allowed) else None, "clamped": asked > 1,
                "rounds": len(self.ours), "ours_range": _range(self.ours), "control_range": _range(self.control),
                "ratio_range": _range(ratios), **extras}

    def _better(self, value, control):
        """How many times better than the control the value is."""
        above, below = (value, control) if hasattr(self.bound, "of_rates") else (control, value)
        return above / below if below > 0 else 0.0


def _short(value):
    """Four digits are enough for any measurement."""
    return float(f"{value:.4g}")


def _range(values):
    return [_short(min(values)), _short(max(values))]
