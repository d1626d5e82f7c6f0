"""WeMask on Hugging Face transformers: a mask made by `onset mask make`, or a prefix that
`onset mask export` made of it.

    mask = onset_wemask.read_mask("wemask.json")
    with onset_wemask.apply(model, mask):            # hooks; every way of running the model
        model.generate(**inputs)

    prefix = onset_wemask.read_prefix("token-1.safetensors", model)
    model.generate(**prefix.for_generate(ids))       # no mask code: a cache that begins with it
    model(**prefix.for_forward(ids))                 # logits of all tokens behind the first

Needs torch and transformers; a prefix also safetensors. What each field of a mask means:
docs/wemask.md of onset.
"""

import inspect
import json
import os
import struct
import tempfile
import warnings

import torch

MASK_FORMAT = "onset.wemask.1"
PREFIX_FORMAT = "onset.kv_prefix.1"
MASK_FILE = "wemask.json"
MASK_KEYS = {"format", "model", "criterion", "placement", "tokens", "positions", "massive_dims",
             "massive_threshold", "gamma", "from_layer", "to_layer", "k", "rate", "seed",
             "official_compat", "dims"}
CHOSEN_BY_TOKEN = ("activation", "magnitude")


class WeMaskError(ValueError):
    """A mask, a prefix or a call that cannot be used, with the reason."""


# ---- The mask ----


def read_mask(path):
    """The mask of a wemask.json, checked as far as it can be without a model."""
    with open(path, encoding="utf-8") as file:
        mask = json.load(file)
    check_mask(mask, str(path))
    return mask


def check_mask(mask, where="mask"):
    if not isinstance(mask, dict) or mask.get("format") != MASK_FORMAT:
        raise WeMaskError(f"{where}: no mask of format {MASK_FORMAT}")
    for key in sorted(MASK_KEYS.symmetric_difference(mask)):
        raise WeMaskError(f"{where}: key {key!r} is {'missing' if key in MASK_KEYS else 'unknown'}")
    known = {"criterion": ("weight", "activation", "magnitude", "random", "lowest", "given"),
             "placement": ("post_norm", "pre_norm"),
             "tokens": ("first", "massive", "positions")}
    for key, values in known.items():
        if mask[key] not in values:
            raise WeMaskError(f"{where}: {key} is {mask[key]!r}, known are {', '.join(values)}")
    if not (0 <= mask["from_layer"] <= mask["to_layer"] < mask["model"]["layers"]
            and 1 <= mask["k"] <= mask["model"]["hidden"] and 0 <= mask["gamma"] <= 1):
        raise WeMaskError(f"{where}: layers, k or gamma are out of range")
    for layer in range(mask["from_layer"], mask["to_layer"] + 1):
        dims = mask["dims"].get(str(layer))
        if mask["criterion"] in CHOSEN_BY_TOKEN:
            continue
        if not dims or not all(0 <= dim < mask["model"]["hidden"] for dim in dims):
            raise WeMaskError(f"{where}: layer {layer} has no dims, or dims outside the model")


def save_mask_beside(model_dir, mask):
    """Puts the mask as wemask.json beside a saved checkpoint, and warns of what that is not."""
    check_mask(mask)
    if not os.path.isfile(os.path.join(model_dir, "config.json")):
        raise WeMaskError(f"{model_dir}: no saved checkpoint, config.json is missing")
    path = os.path.join(model_dir, MASK_FILE)
    handle, temporary = tempfile.mkstemp(dir=model_dir, prefix=MASK_FILE)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(mask, file, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    warnings.warn(f"{path} is a file of its own: from_pretrained loads the model without the mask "
                  "until apply() is called, and save_pretrained to another folder leaves it behind")
    return path


def load_mask_beside(model_dir):
    """The mask beside a checkpoint; None where there is none."""
    path = os.path.join(model_dir, MASK_FILE)
    return read_mask(path) if os.path.isfile(path) else None


# ---- The model ----


def find_decoder(model):
    """The module that holds the decoder's layers, of a model, a text part or a wrapped model."""
    for module in model.modules():
        layers = getattr(module, "layers", None)
        if not isinstance(layers, torch.nn.ModuleList) or not hasattr(module, "embed_tokens"):
            continue
        if not all(hasattr(layer, "input_layernorm") for layer in layers):
            raise WeMaskError("WeMask does not apply: this family has no norm before attention")
        return module
    raise WeMaskError(f"{type(model).__name__}: no decoder with layers and embed_tokens was found")


def norm_gains(norm):
    """The gains as they multiply, float32: Gemma stores w - 1."""
    gains = norm.weight.detach().float().cpu()
    return 1.0 + gains if type(norm).__name__.startswith("Gemma") else gains


def _hash(values):
    """FNV-1a, 64 bits, of little-endian float32."""
    result = 0xCBF29CE484222325
    for byte in struct.pack(f"<{len(values)}f", *values):
        result = ((result ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{result:016x}"


def shape_of(decoder):
    config = decoder.config
    latent = getattr(config, "kv_lora_rank", None)
    heads = config.num_attention_heads
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
    if latent:
        head_dim = config.qk_nope_head_dim + config.qk_rope_head_dim
    return {"architecture": config.model_type, "layers": len(decoder.layers),
            "hidden": config.hidden_size, "heads": heads,
            "kv_heads": heads if latent else getattr(config, "num_key_value_heads", None) or heads,
            "head_dim": head_dim}


def check_model(print_of_mask, decoder, strict=False):
    """Another shape is an error; other gains are a warning, with `strict` an error."""
    def named(shape):  # GGUF calls Mistral's models llama
        return {**shape, "architecture": shape["architecture"].replace("mistral", "llama")}

    here = shape_of(decoder)
    there = {key: print_of_mask.get(key) for key in here}
    if named(there) != named(here):
        raise WeMaskError(f"made for another model: {there}, this one is {here}")
    gains = [_hash(norm_gains(layer.input_layernorm).tolist()) for layer in decoder.layers]
    if gains != print_of_mask["gains"]:
        message = "made for other norm gains than this model's (a fine-tune, another precision)"
        if strict:
            raise WeMaskError(message)
        warnings.warn(message)


def _arguments(function, args, kwargs):
    """What a call gives, by name."""
    signature = inspect.signature(function)
    bound = signature.bind_partial(*args, **kwargs).arguments
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            bound.update(bound.pop(name, {}))
    return bound


def _cache_name(model):
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def token_positions(given):
    """[B, T]: the place of each token among the attended ones of its sequence, -1 for padding.

    Right in chunks, with a cache, under left padding, and for packed rows whose position_ids begin
    anew.
    """
    tokens = given.get("input_ids")
    if tokens is None:
        tokens = given["inputs_embeds"]
    batch, count = tokens.shape[:2]
    cache = given.get("cache") if given.get("cache") is not None else given.get("past_key_values")
    past = int(cache.get_seq_length()) if cache is not None else 0
    mask = given.get("attention_mask")
    if mask is None:
        mask = torch.ones(batch, past + count, dtype=torch.long, device=tokens.device)
    if not torch.is_tensor(mask) or mask.dim() != 2 or mask.shape[1] != past + count:
        raise WeMaskError(f"the attention mask must be [batch, {past + count}] here, all tokens of "
                          "cache and input: which token is first cannot be told from another form "
                          "(static caches make one; use a dynamic cache)")
    attended = mask[:, past:] > 0
    positions = (mask.long().cumsum(1) - 1)[:, past:]
    given_positions = given.get("position_ids")
    if given_positions is not None and given_positions.dim() == 2:
        given_positions = given_positions.expand(batch, count)
        anew = attended & (given_positions == 0) & (positions > 0)
        packed = anew.any(1, keepdim=True)
        positions = torch.where(packed, given_positions, positions)
    return positions.masked_fill(~attended, -1)


# ---- Hooks ----


class AppliedMask:
    """A mask on a model until remove(), or until the `with` block ends."""

    def __init__(self, model, mask, strict=False):
        check_mask(mask)
        self.mask = mask
        decoder = find_decoder(model)
        check_model(mask["model"], decoder, strict)
        self._positions = None
        self._decoder = decoder
        self._handles = [decoder.register_forward_pre_hook(self._begin, with_kwargs=True)]
        for index in range(mask["from_layer"], mask["to_layer"] + 1):
            dims = mask["dims"].get(str(index))
            hook = _NormHook(self, None if dims is None else torch.tensor(dims))
            self._handles.append(decoder.layers[index].input_layernorm.register_forward_hook(hook))

    def remove(self):
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()

    def _begin(self, decoder, args, kwargs):
        if self.mask["official_compat"]:
            return
        self._positions = token_positions(_arguments(decoder.forward, args, kwargs))

    def rows(self, stream):
        """[B, T] bool: the tokens to mask, of the norm's input [B, T, D]."""
        if self.mask["official_compat"]:
            rows = torch.zeros(stream.shape[:2], dtype=torch.bool, device=stream.device)
            rows[:, 0] = True
            return rows
        if self._positions is None or self._positions.shape != stream.shape[:2]:
            raise WeMaskError("a layer ran outside the decoder's forward: positions are not known")
        positions = self._positions.to(stream.device)
        if self.mask["tokens"] == "first":
            return positions == 0
        if self.mask["tokens"] == "positions":
            return torch.isin(positions, positions.new_tensor(self.mask["positions"]))
        largest = stream[..., self.mask["massive_dims"]].abs().amax(-1)
        return (positions >= 0) & (largest > self.mask["massive_threshold"])


class _NormHook:
    def __init__(self, applied, dims):
        self.applied = applied
        self.dims = dims  # None: the token decides

    def __call__(self, norm, args, normed):
        mask = self.applied.mask
        stream = args[0]
        index = self.applied.rows(stream).nonzero(as_tuple=True)
        if index[0].numel() == 0:
            return None
        dims = self._dims(mask, stream[index], normed[index])
        factor = torch.ones_like(normed[index]).scatter(1, dims, 1.0 - mask["gamma"])
        if mask["placement"] == "post_norm":
            edited = normed[index] * factor
        else:
            edited = norm.forward(stream[index] * factor)
        return normed.index_put(index, edited)

    def _dims(self, mask, stream, normed):  # each [masked tokens, D]
        if self.dims is not None:
            return self.dims.to(normed.device).expand(normed.shape[0], -1)
        size = (stream if mask["criterion"] == "magnitude" else normed).detach().float().abs()
        if mask["official_compat"] and mask["criterion"] == "activation":
            size = size.mean(0, keepdim=True).expand_as(size)
        order = torch.sort(size, dim=1, descending=True, stable=True).indices
        return order[:, :mask["k"]]


def apply(model, mask, strict=False):
    """Runs the model under the mask until .remove(), or as `with apply(model, mask):`."""
    return AppliedMask(model, mask, strict)


# ---- The prefix ----


class Prefix:
    """Keys and values of one masked first token, of a file by `onset mask export`."""

    def __init__(self, model, token_id, mask, states):
        self.token_id = token_id
        self.mask = mask
        self._model = model
        self._decoder = find_decoder(model)
        self._states = states  # of each layer, what its cache keeps: two tensors [1, G, 1, K]

    def cache(self, batch_size=1):
        """A new cache that holds the prefix alone; generation changes it, so make one a call."""
        from transformers import DynamicCache
        cache = DynamicCache(config=self._decoder.config)
        for index, (first, second) in enumerate(self._states):
            weight = self._decoder.layers[index].input_layernorm.weight
            cache.update(*(part.to(weight.device, weight.dtype).expand(batch_size, -1, -1, -1)
                           for part in (first, second)), index)
        return cache

    def arranged(self, input_ids, attention_mask=None):
        """Ids and mask with the first token of each row in column 0, before the padding."""
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        if not bool((attention_mask.sum(1) > 0).all()):
            raise WeMaskError("a row of the batch has no token")
        first = attention_mask.argmax(1, keepdim=True)
        if not bool((input_ids.gather(1, first) == self.token_id).all()):
            raise WeMaskError(f"the prefix is of token {self.token_id}, and a text begins with "
                              "another: export one for each first token")
        if bool((first > 0).any()) and self._has_window():
            raise WeMaskError("with a sliding window transformers counts padding as tokens: "
                              "run texts of one length together, or one at a time")
        ids = input_ids.scatter(1, first, input_ids[:, :1])
        mask = attention_mask.scatter(1, first, attention_mask[:, :1])
        ids[:, 0], mask[:, 0] = self.token_id, 1
        return ids, mask

    def _has_window(self):
        return any(getattr(layer, "is_sliding", False) for layer in self.cache().layers)

    def for_generate(self, input_ids, attention_mask=None):
        """Arguments for model.generate(); it takes from the ids what the cache does not hold."""
        config = self._decoder.config
        rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None)
        if "longrope" in str(rope):
            raise WeMaskError("with longrope generate() drops its cache where a text crosses the "
                              "original context, and the prefix would be lost: use apply()")
        ids, mask = self.arranged(input_ids, attention_mask)
        return {"input_ids": ids, "attention_mask": mask,
                _cache_name(self._model): self.cache(ids.shape[0])}

    def for_forward(self, input_ids, attention_mask=None):
        """Arguments for model(): the tokens behind the first, whose logits come back."""
        ids, mask = self.arranged(input_ids, attention_mask)
        positions = (mask.long().cumsum(1) - 1).clamp(min=0)
        return {"input_ids": ids[:, 1:], "attention_mask": mask, "position_ids": positions[:, 1:],
                _cache_name(self._model): self.cache(ids.shape[0])}


def read_prefix(path, model, strict=True):
    """A prefix for this model. Other norm gains are an error unless `strict` is False: keys and
    values belong to exactly the weights they were made with."""
    from safetensors import safe_open
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
        if metadata.get("format") != PREFIX_FORMAT:
            raise WeMaskError(f"{path}: no prefix of format {PREFIX_FORMAT}")
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    decoder = find_decoder(model)
    check_model(json.loads(metadata["model"]), decoder, strict)
    states = []
    for index, layer in enumerate(decoder.layers):
        if metadata["layout"] == "heads":
            states.append(tuple(tensors[f"layers.{index}.{part}"][None]
                                for part in ("key", "value")))
        else:
            states.append(_latent_state(decoder.config, layer, tensors, index))
    return Prefix(model, int(metadata["token_id"]), json.loads(metadata["wemask"]), states)


def _latent_state(config, layer, tensors, index):
    if not hasattr(layer.self_attn, "expand_kv"):
        raise WeMaskError("this version of transformers keeps no latents in its cache; 5.24 does")
    turned = tensors[f"layers.{index}.k_rope"]  # [1, rope], pairs side by side
    if getattr(config, "rope_interleave", False):  # then the cache keeps them as two halves
        turned = torch.cat([turned[:, 0::2], turned[:, 1::2]], dim=1)
    return tensors[f"layers.{index}.kv_latent"][None, None], turned[None, None]
