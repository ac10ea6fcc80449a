"""What a token says about itself when the pointer rests on it."""

from html import escape

from app.rendering.tokens import TokenInfo

ORIGIN_WORDS = {
    "accepted": "Drafted, and accepted by the target",
    "resampled": "The target's replacement for a rejected draft",
    "bonus": "The target's extra token after a fully accepted draft",
    "plain": "Decoded by the target without a draft",
}


def token_tip(text: str, token: TokenInfo) -> str:
    """Return the tooltip of a token as rich text; everything from the model is escaped."""
    shown = text.replace(" ", "␣").replace("\n", "↵").replace("\t", "⇥")
    lines = [
        f"<b>{escape(shown)}</b>",
        escape(ORIGIN_WORDS.get(token.origin, token.origin)),
    ]
    if token.target_prob is not None:
        lines.append(f"Target probability {_percent(token.target_prob)}")
    if token.draft_prob is not None:
        lines.append(f"Draft probability {_percent(token.draft_prob)}")
    if token.target_prob is not None and token.draft_prob:
        chance = min(1.0, token.target_prob / token.draft_prob)
        lines.append(f"Chance of acceptance {_percent(chance)}")
    return "<p style='white-space:pre'>" + "<br>".join(lines) + "</p>"


def _percent(value: float) -> str:
    if 0.0 < value < 0.001:
        return "< 0.1 %"
    return f"{100.0 * value:.1f} %"
