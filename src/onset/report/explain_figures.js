// Kinds of figures for an explanation: gains, energy, neurons, factorial, vocabulary, doses. Their
// data: explain_figures.cpp and explain_experiment_figures.cpp.
"use strict";
(window.onsetKinds = window.onsetKinds || []).push((tools) => {
const {colour, small, number, plain, axis, layout} = tools;

const positive = (x) => (x > 0 ? x : null);
const percent = (x) => (x === null || x === undefined ? "no number" : `${number(100 * x)} %`);
const layerStep = (count) => (count > 40 ? 10 : count > 16 ? 5 : 1);
const logAxis = (title, more) => axis(title, Object.assign({type: "log", exponentformat: "power", dtick: 1}, more));
// Ticks of a logarithmic axis over few powers would be too few: 1, 2, 5 of each.
function logTicks(values) {
  const sizes = values.filter((x) => x > 0);
  const low = Math.min(...sizes);
  const high = Math.max(...sizes);
  if (!(high / low < 300)) return {};
  const tickvals = [];
  for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); ++p) for (const d of [1, 2, 5]) tickvals.push(d * 10 ** p);
  return {tickmode: "array", tickvals, ticktext: tickvals.map(number)};
}

function select(place, names, label, choose) {
  if (names.length < 2) return;
  const box = document.createElement("select");
  box.setAttribute("aria-label", label);
  names.forEach((name, i) => box.append(new Option(name, String(i))));
  box.addEventListener("change", () => choose(Number(box.value)));
  place.append(box);
}

// A dotted line at the explained layer, with its name.
const mark = (layer, count) => ({
  shapes: [{type: "line", xref: "x", yref: "paper", x0: layer, x1: layer, y0: 0, y1: 1, line: {color: colour("accent"), width: 1.5, dash: "dot"}, layer: "below"}],
  annotations: [{x: layer, y: 0.99, xref: "x", yref: "paper", text: `<b>layer ${layer}</b>`, showarrow: false, xanchor: layer > count / 2 ? "right" : "left",
    xshift: layer > count / 2 ? -6 : 6, yanchor: "top", font: {color: colour("accent")}}],
});

// ---- gains by layer

function gains(data, state) {
  const rows = (state.attention || data.ffn_norm.length === 0) ? data.attn_norm : data.ffn_norm;
  const layers = rows.map((row) => row.layer);
  const marks = mark(data.layer, layers.length);
  const tones = ["first", "ffn", "attention", "second"];
  let traces;
  if (state.amplification) {
    const line = (name, field, tone, width) => ({type: "scatter", mode: "lines+markers", name, x: layers, y: rows.map((row) => row[field]),
      line: {color: colour(tone), width}, marker: {size: width + 3}, hovertemplate: `${name}, layer %{x}: %{y:.4~g}<extra></extra>`});
    traces = [line("median of the others", "others_amplification", "second", 2), line("the massive token", "amplification", "first", 3)];
  } else {
    const quantile = (i) => rows.map((row) => positive(row.quantiles[i]));
    const edge = (i, more) => Object.assign({type: "scatter", mode: "lines", x: layers, y: quantile(i), line: {width: 0}, hoverinfo: "skip", showlegend: false}, more);
    traces = [
      edge(1), edge(5, {fill: "tonexty", fillcolor: colour("shade"), showlegend: true, name: "90 % of the gains"}),
      edge(2), edge(4, {fill: "tonexty", fillcolor: colour("shade"), showlegend: true, name: "half of them"}),
      {type: "scatter", mode: "lines", name: "median |w|", x: layers, y: quantile(3), line: {color: colour("median"), width: 2}, hovertemplate: "median |w|, layer %{x}: %{y:.4~g}<extra></extra>"},
    ];
    data.dims.slice(0, 4).forEach((dim, d) => traces.push({
      type: "scatter", mode: "markers", name: `|w| in dim ${dim}`, x: layers, y: rows.map((row) => positive(Math.abs(row.at_dims[d]))),
      marker: {size: 9, color: colour(tones[d]), symbol: ["circle", "diamond", "square", "cross"][d]},
      text: rows.map((row) => `<b>layer ${row.layer}, dim ${dim}: w = ${number(row.at_dims[d])}</b><br>${percent(row.percentiles[d])} of the gains are smaller`),
      hovertemplate: "%{text}<extra></extra>",
    }));
  }
  return {
    traces,
    layout: layout({
      xaxis: axis("layer", {dtick: layerStep(layers.length), range: [-0.6, layers.length - 0.4]}),
      yaxis: state.amplification ? axis("|w x\u0302| / |x\u0302|", {rangemode: "tozero"}) : logAxis("|w|"),
      ...marks,
    }),
  };
}

// ---- energy before and after the gain

function energy(data, state) {
  if (state.dims) return scatter(data.points);
  const line = (name, values, tone, dash, width) => ({
    type: "scatter", mode: "lines+markers", name, x: data.dims, y: values.map((x) => (x === null ? null : 100 * x)), line: {color: colour(tone), width, dash}, marker: {size: width + 3},
    hovertemplate: `${name}: the %{x} largest dims hold %{y:.1f} %<extra></extra>`,
  });
  const last = data.dims[data.dims.length - 1];
  const ticks = data.dims.filter((k, i) => k === last || (k < 0.6 * last && (!small() || i % 2 === 0)));
  const has = (values) => values.some((x) => x !== null);
  const traces = [line("before the gain", data.before, "second", "solid", 3), line("after it", data.after, "first", "solid", 3)];
  if (has(data.others_before)) traces.push(line("others, before", data.others_before, "second", "dot", 1.8), line("others, after", data.others_after, "first", "dot", 1.8));
  return {
    traces,
    layout: layout({
      xaxis: axis("the k largest dims", {type: "log", tickvals: ticks, ticktext: ticks.map(String), tickangle: 0}),
      yaxis: axis("% of the energy", {range: [0, 104]}),
    }),
  };
}

function scatter(points) {
  const at = points.dim.map((_, i) => i);
  const group = (name, chosen, tone, size, labelled) => {
    const picked = at.filter((i) => chosen(points.dim[i]));
    return {
      type: "scatter", mode: labelled ? "markers+text" : "markers", name, x: picked.map((i) => positive(Math.abs(points.gain[i]))), y: picked.map((i) => positive(Math.abs(points.x_hat[i]))),
      text: picked.map((i) => `<b>dim ${points.dim[i]}</b>`), textposition: picked.map((_, k) => ["top center", "bottom center", "middle left", "bottom left"][k % 4]), textfont: {size: small() ? 10 : 12},
      customdata: picked.map((i) => `<b>dim ${points.dim[i]}</b><br>x\u0302 = ${number(points.x_hat[i])}<br>gain = ${number(points.gain[i])}<br>product = ${number(points.x_hat[i] * points.gain[i])}`),
      hovertemplate: "%{customdata}<extra></extra>", marker: {size, color: colour(tone), opacity: labelled ? 1 : 0.55}, cliponaxis: false,
    };
  };
  const massive = (dim) => points.massive.includes(dim);
  const read = (dim) => !massive(dim) && points.most_read.includes(dim);
  return {
    traces: [group("all dims", (dim) => !massive(dim) && !read(dim), "median", 5, false), group("most read by the FFN", read, "second", 10, true), group("massive", massive, "first", 12, true)],
    layout: layout({xaxis: logAxis("gain |w|"), yaxis: logAxis("|x\u0302| before the gain")}),
  };
}

// ---- neurons, experts and heads of one entry

function neurons(data, state) {
  const entry = data.entries[state.entry || 0];
  const several = entry.modules.length > 1;
  const field = state.part === 1 ? (several ? "modules" : "heads") : state.part === 2 ? "heads" : "neurons";
  const bars = entry[field];
  const names = bars.map((part) => plain(part.name));
  const tone = field === "heads" ? "attention" : "ffn";
  const values = bars.map((part) => part.value);
  const low = Math.min(0, ...values);
  const high = Math.max(0, ...values);
  const room = (small() ? 0.34 : 0.14) * (high - low || 1);
  const words = (part) => `<b>${plain(part.name)}: ${number(part.value)}</b>` + (part.share === undefined || part.share === null ? "" : `<br>${percent(part.share)} of what the FFN adds`) +
    (part.gate === undefined ? "" : `<br>gate ${number(part.gate)}, up ${number(part.up)}<br>weight ${number(part.weight)}`);
  return {
    height: Math.max(260, 90 + bars.length * (small() ? 26 : 30)),
    traces: [{
      type: "bar", orientation: "h", y: names, x: values, marker: {color: bars.map((part) => colour(part.name.startsWith("all ") ? "input" : tone))},
      text: bars.map((part) => number(part.value) + (!(Math.abs(part.share) >= 0.01) || small() ? "" : ` (${number(Number((100 * part.share).toFixed(1)))} %)`)), textposition: "outside", cliponaxis: false,
      textfont: {size: small() ? 10 : 12}, customdata: bars.map(words), hovertemplate: "%{customdata}<extra></extra>",
    }],
    layout: layout({
      xaxis: axis(`added to dim ${entry.dim} in layer ${entry.layer}`, {range: [low < 0 ? low - (low < -0.3 * high ? 1.2 : 0.8) * room : 0, high > 0 ? high + room : 0]}),
      yaxis: axis("", {autorange: "reversed", type: "category", dtick: 1}), showlegend: false,
      margin: small() ? {l: 92, r: 8, t: 8, b: 44} : {l: 130, r: 24, t: 34, b: 52},
    }),
  };
}

function neuronControls(place, figure, redraw) {
  const entries = figure.data.entries;
  select(place, entries.map((entry) => entry.title), "entry", (i) => { figure.state.entry = i; redraw(); });
  const several = entries.some((entry) => entry.modules.length > 1);
  tools.chooser(place, several ? ["Neurons", "By expert", "Heads"] : ["Neurons", "Heads"], "part", 0, (i) => { figure.state.part = i; redraw(); });
}

// ---- the factorial experiment

const measures = [
  {name: "largest |x| after the layer", of: (cell) => cell.max_abs, log: true},
  {name: "largest |x| of the token", of: (cell) => cell.token_max_abs, log: true},
  {name: "largest |x| of later layers", of: (cell) => cell.later_max_abs, log: true},
  {name: "perplexity of the text", of: (cell) => (cell.text ? cell.text.perplexity : null), log: true, text: true},
  {name: "sink rate of the text, %", of: (cell) => (cell.text && cell.text.sink_rate !== null ? 100 * cell.text.sink_rate : null), log: false, text: true},
];

function factorial(data, state) {
  const measure = measures[state.measure || 0];
  const levels = [...new Set(data.cells.map((cell) => cell.norm_a))].sort((a, b) => b - a);
  const groups = [...new Set(data.cells.map((cell) => cell.ffn))];
  const find = (a, ffn) => data.cells.find((cell) => cell.norm_a === a && cell.ffn === ffn);
  const label = (ffn) => data.cells.find((cell) => cell.ffn === ffn).label.replace(" ", small() ? "<br>" : " ");
  const gain = (a) => (a === 1 ? "gain as is" : a === 0 ? "gain flattened" : `gain flattened to ${a}`);
  const tones = ["second", "third", "ffn", "first"];
  const value = (a, ffn) => { const cell = find(a, ffn); return cell ? measure.of(cell) : null; };
  const values = data.cells.map(measure.of).filter((x) => x !== null && (!measure.log || x > 0));
  const low = Math.log10(Math.min(...values));
  const high = Math.log10(Math.max(...values));
  const width = 0.8 / levels.length;
  const traces = levels.map((a, i) => ({
    type: "bar", name: gain(a), x: groups.map((_, g) => g - 0.4 + width * (i + 0.5)), width: width * 0.92, y: groups.map((ffn) => value(a, ffn)), marker: {color: colour(tones[i % tones.length])},
    text: groups.map((ffn) => number(value(a, ffn) === null ? null : Number(value(a, ffn).toPrecision(5)))), textposition: "outside", textangle: small() ? -90 : 0, constraintext: "none", cliponaxis: false, textfont: {size: small() ? 10 : 12},
    hovertemplate: groups.map((ffn) => `<b>FFN ${plain(label(ffn).replace("<br>", " "))}, ${gain(a)}</b><br>${measure.name}: ${number(value(a, ffn))}<extra></extra>`),
  }));
  if ((state.measure || 0) === 0) {
    const expected = [];
    levels.forEach((a, i) => groups.forEach((ffn, g) => {
      if (a === 1 || ffn === "as_is") return;
      const y = value(a, "as_is") * value(1, ffn) / value(1, "as_is");
      const interaction = data.interactions.find((one) => one.norm_a === a && one.ffn === ffn);
      if (y > 0) expected.push({x: g - 0.4 + width * (i + 0.5), y, words: `<b>without interaction: ${number(y)}</b><br>interaction ${number(interaction ? interaction.value : null)}`});
    }));
    if (expected.length > 0) traces.push({
      type: "scatter", mode: "markers", name: "without interaction", x: expected.map((e) => e.x), y: expected.map((e) => e.y), text: expected.map((e) => e.words), hovertemplate: "%{text}<extra></extra>",
      marker: {symbol: "line-ew-open", size: small() ? 8 : 24, color: colour("ink"), line: {width: 3}},
    });
  }
  const range = measure.log ? [Math.floor(low - 0.3), high + (small() ? 0.35 : 0.16) * Math.max(1, high - Math.floor(low))] : [0, Math.max(...values, 0) * 1.2 || 1];
  return {
    traces,
    layout: layout({
      xaxis: axis("the FFN of the layer", {tickvals: groups.map((_, g) => g), ticktext: groups.map(label), showgrid: false}),
      yaxis: measure.log ? logAxis(measure.name, {range}) : axis(measure.name, {range}), barmode: "overlay",
    }),
  };
}

// ---- the vocabulary

function vocabulary(data) {
  const edges = data.log10_edges;
  const middle = edges.slice(0, -1).map((edge, i) => (edge + edges[i + 1]) / 2);
  const limit = data.threshold > 0 ? Math.log10(data.threshold) : null;
  const first = Math.max(0, data.counts.findIndex((count) => count > 0) - 1);
  const powers = [];
  for (let p = Math.floor(edges[first]); p <= Math.ceil(edges[edges.length - 1]); ++p) powers.push(p);
  const at = (i) => ` ${number(10 ** edges[i])} and ${number(10 ** edges[i + 1])}`;
  const low = Math.min(edges[first], limit === null ? edges[first] : limit) - 0.1;
  return {
    traces: [{
      type: "bar", x: middle, y: data.counts.map(positive), width: edges.slice(0, -1).map((edge, i) => 0.94 * (edges[i + 1] - edge)),
      marker: {color: middle.map((x) => colour(limit !== null && x > limit ? "first" : "second"))},
      hovertemplate: data.counts.map((count, i) => `<b>${number(count)} entries</b><br>largest |x| between${at(i)}<extra></extra>`),
    }],
    layout: layout({
      xaxis: axis("largest |x| after the layer", {tickvals: powers, ticktext: powers.map((p) => number(10 ** p)), range: [low, Math.max(edges[edges.length - 1], limit || 0) + 0.1]}),
      yaxis: logAxis("vocabulary entries", {range: [-0.3, Math.log10(Math.max(...data.counts, 1)) + 0.25]}), bargap: 0, showlegend: false,
      shapes: limit === null ? [] : [{type: "line", xref: "x", yref: "paper", x0: limit, x1: limit, y0: 0, y1: 1, line: {color: colour("accent"), width: 1.5, dash: "dot"}}],
      annotations: limit === null ? [] : [{x: limit, y: 0.98, xref: "x", yref: "paper", text: "massive above this", showarrow: false, xanchor: "right", xshift: -6, font: {color: colour("accent")}}],
    }),
  };
}

// ---- doses

const readings = [
  {name: "sink rate", of: (condition) => condition.text.layer_sink_rate, range: [-0.03, 1.05]},
  {name: "|k| of the token", of: (condition) => condition.keys.map((key) => key.key_norm), log: true},
  {name: "|v| of the token", of: (condition) => condition.keys.map((key) => key.value_norm), log: true},
  {name: "cosine of later queries with its key", of: (condition) => condition.keys.map((key) => key.query_cosine)},
];

// Bars for sinks and perplexity: side by side, below each other where there is no room.
function dose(data, state) {
  if (state.part === 1) return doseLayers(data, state);
  const conditions = data.conditions;
  const names = conditions.map((condition) => condition.label);
  const shown = small() ? names.map((name) => name.replace("control: ", "control:<br>").replace("set to the ", "set to<br>the ").replace("whole write ", "whole<br>write ")) : names;
  const tones = conditions.map((condition) => colour(condition.dose !== null ? "first" : condition.name === "mean" ? "second" : "input"));
  const bars = (values, format, x, y) => ({
    type: "bar", orientation: "h", x: values, y: names.map((_, i) => i), xaxis: x, yaxis: y, marker: {color: tones}, text: values.map((value) => (value === null ? "" : format(value))),
    textposition: "outside", cliponaxis: false, constraintext: "none", textfont: {size: small() ? 11 : 12},
    hovertemplate: names.map((name, i) => `<b>${plain(name)}</b><br>sink rate of later layers ${percent(conditions[i].rate_behind)}, of all ${percent(conditions[i].text.sink_rate)}<br>perplexity ${number(conditions[i].text.perplexity)}<extra></extra>`),
  });
  const rates = conditions.map((condition) => (condition.rate_behind === null ? null : 100 * condition.rate_behind));
  const losses = conditions.map((condition) => positive(condition.text.perplexity));
  const sizes = losses.filter((y) => y !== null).map(Math.log10);
  const low = sizes.length ? Math.min(...sizes) : 0;
  const high = sizes.length ? Math.max(...sizes) : 1;
  const rows = {tickvals: names.map((_, i) => i), ticktext: shown, range: [names.length - 0.4, -0.6], showgrid: false, zeroline: false};
  const row = small() ? 38 : 34;
  const inner = row * names.length;
  return {
    height: small() ? 2 * inner + 150 : inner + 100,
    traces: [bars(rates, (value) => `${number(Number(value.toPrecision(3)))} %`, "x", "y"), bars(losses, (value) => number(Number(value.toPrecision(4))), "x2", "y2")],
    layout: layout({
      xaxis: axis("sink rate of later layers, %", {domain: small() ? [0, 1] : [0, 0.46], anchor: "y", range: [0, small() ? 130 : 118], tickvals: [0, 25, 50, 75, 100]}),
      xaxis2: logAxis("perplexity", {domain: small() ? [0, 1] : [0.54, 1], anchor: "y2", range: [Math.floor(low), high + (small() ? 0.32 : 0.2) * Math.max(1, high - Math.floor(low))], ...logTicks(losses), tickangle: 0}),
      yaxis: axis("", {...rows, anchor: "x", domain: small() ? [0.58, 1] : [0, 1]}),
      yaxis2: axis("", {...rows, anchor: "x2", domain: small() ? [0, 0.42] : [0, 1], showticklabels: small()}),
      showlegend: false, margin: small() ? {l: 80, r: 8, t: 8, b: 44} : {l: 72, r: 24, t: 34, b: 52},
    }),
  };
}

function doseLayers(data, state) {
  const reading = readings[state.reading || 0];
  const tones = ["first", "ffn", "third", "second", "ink", "median", "input"];
  const layers = reading.of(data.conditions[0]).map((_, l) => l);
  return {
    height: small() ? 480 : 460,
    traces: data.conditions.map((condition, i) => ({
      type: "scatter", mode: "lines+markers", name: plain(condition.label), x: layers, y: reading.of(condition).map((y) => (reading.log ? positive(y) : y)),
      line: {color: colour(tones[i % tones.length]), width: condition.dose === null ? 1.6 : 2.4, dash: condition.dose !== null ? "solid" : condition.name === "mean" ? "dash" : "dot"}, marker: {size: 5},
      hovertemplate: `${plain(condition.label)}, layer %{x}: %{y:.4~g}<extra></extra>`,
    })),
    layout: layout({
      xaxis: axis("layer", {dtick: layerStep(layers.length), range: [-0.6, layers.length - 0.4]}), yaxis: reading.log ? logAxis(reading.name) : axis(reading.name, reading.range ? {range: reading.range} : {}),
      ...mark(data.layer, layers.length), legend: {orientation: "h", x: 0, y: -0.16, yanchor: "top", bgcolor: "rgba(0,0,0,0)"},
    }),
  };
}

function doseControls(place, figure, redraw) {
  select(place, ["response"].concat(readings.map((reading) => `by layer: ${reading.name}`)), "view", (i) => {
    figure.state.part = i === 0 ? 0 : 1;
    figure.state.reading = Math.max(0, i - 1);
    redraw();
  });
}

return {
  gains: {draw: gains, views: (data) => [{field: "amplification", names: ["Gains", "Amplification"]}]
    .concat(data.ffn_norm.length > 0 && data.attn_norm.length > 0 ? [{field: "attention", names: ["Before the FFN", "Before attention"]}] : [])},
  energy: {draw: energy, views: () => [{field: "dims", names: ["Concentration", "Dim by dim"]}]},
  neurons: {draw: neurons, views: () => [], controls: neuronControls},
  factorial: {draw: factorial, views: () => [], controls: (place, figure, redraw) =>
    select(place, measures.filter((measure) => !measure.text || figure.data.cells.some((cell) => cell.text)).map((measure) => measure.name), "measure", (i) => { figure.state.measure = i; redraw(); })},
  vocabulary: {draw: vocabulary, views: () => []},
  dose: {draw: dose, views: () => [], controls: doseControls},
};
});
