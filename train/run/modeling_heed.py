# The attention of a language model that Heed trained, for Hugging Face's Transformers 5: `heed export --code` writes this file.
# Weights of keys are a polynomial f of the score, y_i = sum_j f(s_ij) v_j / (sum_j f(s_ij) + epsilon), with s_ij = scale m(q_i) . m(k_j)
# and a map m of queries and keys. Heed computes the same by sums over keys, in time linear in the length; here it is written out.
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS


def mapped(x, kind):
    """Queries or keys [B, H, T, D] as the weights see them."""
    if kind == "positive":  # linear attention: elu(x) + 1
        return torch.nn.functional.elu(x) + 1
    if kind == "standard":  # fastmax: mean 0 and variance 1 over the features
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    return x


def heed_attention(module, query, key, value, attention_mask, **_):
    """Attention of queries [B, H, Tq, D] to keys and values [B, Hk, Tk, D]: the output [B, Tq, H, D], and the weights."""
    settings = module.config.heed_attention
    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scores = settings["scale"] * mapped(query, settings["map"]) @ mapped(key, settings["map"]).transpose(-1, -2)
    weights = torch.zeros_like(scores)
    for coefficient in reversed(settings["coefficients"]):
        weights = weights * scores + coefficient
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(scores.shape[-1] - scores.shape[-2] + 1)
    if attention_mask is not None:  # 0 where a key is seen
        hidden = hidden | (attention_mask[..., : scores.shape[-1]] != 0)
    weights = weights.masked_fill(hidden, 0)
    total = weights.sum(-1, keepdim=True) + settings["epsilon"]
    weights = weights / total.masked_fill(total == 0, 1)  # a row of padding sees no key
    return (weights @ value).transpose(1, 2).contiguous(), weights


ALL_ATTENTION_FUNCTIONS.register("heed", heed_attention)
ALL_MASK_ATTENTION_FUNCTIONS.register("heed", ALL_MASK_ATTENTION_FUNCTIONS["eager"])


class HeedLlamaConfig(LlamaConfig):
    """A LLaMA with heed_attention: map, coefficients, scale and epsilon."""

    model_type = "heed_llama"


class HeedGpt2Config(GPT2Config):
    """A GPT-2 with heed_attention: map, coefficients, scale and epsilon."""

    model_type = "heed_gpt2"


class HeedLlamaForCausalLM(LlamaForCausalLM):
    """A LLaMA with Heed's attention."""

    config_class = HeedLlamaConfig

    def __init__(self, config):
        config._attn_implementation = "heed"
        super().__init__(config)


class HeedGpt2ForCausalLM(GPT2LMHeadModel):
    """A GPT-2 with Heed's attention."""

    config_class = HeedGpt2Config

    def __init__(self, config):
        config._attn_implementation = "heed"
        super().__init__(config)
