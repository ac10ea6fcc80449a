"""What the lists of the settings panel offer, with a line on each entry."""

from app.names import DRAFTER_NAMES, RULE_NAMES, titled
from app.records import Choice
from core.requests import Device, DrafterKind, Precision, Rule

OWN_FILES = Choice("custom", "Own files", "a GGUF file or a folder of safetensors")
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
_DRAFTERS = {
    DrafterKind.HYBRID: "Repeats where the text repeats, else an MTP head or the draft model.",
    DrafterKind.MODEL: "A small model of the same family runs ahead.",
    DrafterKind.NGRAM: "Looks up what followed the same words before.",
    DrafterKind.MTP: "A head trained for this model guesses several tokens.",
    DrafterKind.EARLY_EXIT: (
        "The target's own first layers run ahead; seldom pays in a model not trained for it."
    ),
    DrafterKind.OFF: "Nothing is drafted, one token a round.",
}
DRAFTERS = tuple(
    Choice(kind, titled(DRAFTER_NAMES[kind]), words) for kind, words in _DRAFTERS.items()
)
_RULES = {
    Rule.EXACT: "The reply is what the target alone would have written.",
    Rule.BLOCK: "Exact as well; judges a draft as a whole and accepts more.",
    Rule.TARGET_PROB: (
        "Accepts a token as often as the target likes it; leans towards what both like."
    ),
    Rule.TYPICAL: "Accepts whatever the target finds likely enough, so drafts stand longer.",
    Rule.ENSEMBLE: "Drafted tokens follow a mixture of target and draft.",
}
RULES = tuple(
    Choice(rule, titled(RULE_NAMES[rule]) + (" (lossy)" if rule.lossy else ""), words)
    for rule, words in _RULES.items()
)
THEMES = (
    Choice("system", "As the system"),
    Choice("light", "Light"),
    Choice("dark", "Dark"),
)
