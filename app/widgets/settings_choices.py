"""What the lists of the settings panel offer, with a line on each entry."""

from app.records import Choice
from core.requests import Device, DrafterKind, Precision, Rule

DEVICES = (
    Choice(Device.AUTO, "Automatic", "The GPU where there is one."),
    Choice(Device.CPU, "CPU"),
    Choice(Device.CUDA, "NVIDIA GPU"),
)
PRECISIONS = (
    Choice(Precision.AUTO, "Automatic", "The fastest that suits the device."),
    Choice(Precision.FLOAT32, "float32"),
    Choice(Precision.BFLOAT16, "bfloat16"),
    Choice(Precision.INT8, "int8"),
    Choice(Precision.NF4, "nf4 (4 bit)"),
)
DRAFTERS = (
    Choice(
        DrafterKind.HYBRID,
        "Hybrid",
        "Repeats where the text repeats, else an MTP head or the draft model.",
    ),
    Choice(DrafterKind.MODEL, "Draft model", "A small model of the same family runs ahead."),
    Choice(DrafterKind.NGRAM, "N-gram", "Looks up what followed the same words before."),
    Choice(DrafterKind.MTP, "MTP head", "A head trained for this model guesses several tokens."),
    Choice(
        DrafterKind.EARLY_EXIT,
        "Early exit",
        "The target's own first layers run ahead; seldom pays in a model not trained for it.",
    ),
    Choice(DrafterKind.OFF, "Off", "Plain decoding, one token a round."),
)
RULES = (
    Choice(Rule.EXACT, "Exact", "The reply is what the target alone would have written."),
    Choice(Rule.BLOCK, "Block", "Exact as well; judges a draft as a whole and accepts more."),
    Choice(
        Rule.TARGET_PROB,
        "Target probability (lossy)",
        "Accepts a token as often as the target likes it; leans towards what both like.",
    ),
    Choice(
        Rule.TYPICAL,
        "Typical (lossy)",
        "Accepts whatever the target finds likely enough, so drafts stand longer.",
    ),
    Choice(
        Rule.ENSEMBLE,
        "Ensemble (lossy)",
        "Drafted tokens follow a mixture of target and draft.",
    ),
)
THEMES = (
    Choice("system", "As the system"),
    Choice("light", "Light"),
    Choice("dark", "Dark"),
)
