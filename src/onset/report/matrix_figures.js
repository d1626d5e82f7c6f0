// Kinds of figures for attention sinks and rigidity: matrices as heat maps, and lines by layer.
// Their data: figure_data.h, sinks_figures.cpp and rigidity_figures.cpp.
"use strict";
(window.onsetKinds = window.onsetKinds || []).push((tools) => {
const {colour, isDark, small, number, plain, axis, layout, chooser} = tools;

// ---- colours: lightness runs one way, from the paper's, and blue and orange differ for every eye

const shareScale = () => (isDark()
  ? [[0, "#1a212b"], [0.25, "#1f4a75"], [0.5, "#2f86b8"], [0.75, "#8cc7cf"], [1, "#fff3c4"]]
  : [[0, "#f1f4f8"], [0.25, "#bcd3ea"], [0.5, "#6a9fd0"], [0.75, "#2f5f9e"], [1, "#14254d"]]);
const signedScale = () => (isDark()
  ? [[0, "#8cc8ff"], [0.25, "#2d5f93"], [0.5, "#1a212b"], [0.75, "#b5531c"], [1, "#ffdfb0"]]
  : [[0, "#173f78"], [0.25, "#8fb4d9"], [0.5, "#f4f5f4"], [0.75, "#f0a35e"], [1, "#7d2503"]]);
const alikeScale = () => signedScale().slice(2).map(([at, tone]) => [2 * at - 1, tone]);

// ---- a slider beside the buttons of page.js

function slider(place, values, chosen, words, choose) {
  if (values.length < 2) return;
  const label = document.createElement("label");
  label.className = "slider";
  const text = document.createElement("span");
  const input = document.createElement("input");
  Object.assign(input, {type: "range", min: 0, max: values.length - 1, step: 1, value: chosen});
  const say = (i) => {
    text.textContent = words(values[i]);
    input.setAttribute("aria-valuetext", words(values[i]));
  };
  input.addEventListener("input", () => { say(Number(input.value)); choose(Number(input.value)); });
  say(chosen);
  label.append(text, input);
  place.append(label);
}

// ---- what the kinds share

const steps = (count) => (count <= 16 ? 1 : count <= 48 ? 5 : count <= 80 ? 10 : 20);
const indexAxis = (title, count, more) => axis(title, Object.assign({dtick: steps(small() ? 2 * count : count), range: [-0.5, count - 0.5], showgrid: false, zeroline: false}, more));

// The massive layers as a band, the ME layer as a line with its name. Lines of a heat map run over
// it, so there they stand at the cells' edges.
function massiveLayers(data, count, edges) {
  if (data.me_layer === null) return {shapes: [], annotations: []};
  const last = data.last_massive_layer === null ? data.me_layer : data.last_massive_layer;
  const line = (x) => ({type: "line", xref: "x", yref: "paper", x0: x, x1: x, y0: 0, y1: 1, line: {color: colour("accent"), width: 1.5, dash: "dot"}, layer: edges ? "above" : "below"});
  const right = data.me_layer > count / 2;
  return {
    shapes: edges
      ? [line(data.me_layer - 0.5), line(last + 0.5)]
      : [{type: "rect", xref: "x", yref: "paper", x0: data.me_layer, x1: last, y0: 0, y1: 1, fillcolor: colour("band"), line: {width: 0}, layer: "below"}, line(data.me_layer)],
    annotations: [{x: data.me_layer - (edges ? 0.5 : 0), y: 1, xref: "x", yref: "paper", text: `<b>ME layer ${data.me_layer}</b>`, showarrow: false,
      xanchor: right ? "right" : "left", yanchor: "bottom", font: {color: colour("accent")}}],
  };
}

// At the right, or on a small screen 52 pixels below a plot that is `height` pixels high.
const bar = (title, height, more) => Object.assign({title: {text: title, side: small() ? "top" : "right"}, thickness: small() ? 8 : 12, outlinewidth: 0, len: 0.9,
  tickfont: {size: small() ? 10 : 12}}, small() ? {orientation: "h", y: -52 / height, yanchor: "top"} : {}, more);

// ---- heads by layer

function heads(data, state) {
  const view = data.views[state.view || 0];
  const layers = view.values.length;
  const count = Math.max(...view.values.map((row) => row.length));
  const z = Array.from({length: count}, (_, h) => view.values.map((row) => (h < row.length ? row[h] : null)));
  const largest = Math.max(...view.values.flat().map((x) => Math.abs(x || 0)), 1e-30);
  const marks = massiveLayers(data, layers, true);
  // Layers without numbers, tinted: else they would look like alpha = 0.
  view.values.forEach((row, l) => {
    if (row.every((x) => x === null)) {
      marks.shapes.push({type: "rect", xref: "x", yref: "paper", x0: l - 0.5, x1: l + 0.5, y0: 0, y1: 1, fillcolor: colour("others"), line: {width: 0}, layer: "below"});
    }
  });
  const window = data.windows.map((w) => (w > 0 ? `<br>window of ${w} tokens` : ""));
  const height = Math.min(Math.max(110 + count * (small() ? 9 : 13), small() ? 340 : 320), 680);
  const inside = height - 140;
  const colours = view.signed
    ? {colorscale: signedScale(), zmin: -largest, zmax: largest, colorbar: bar(view.unit, inside)}
    : {colorscale: shareScale(), zmin: 0, zmax: 1, colorbar: bar(view.unit, inside, {
      tickvals: [0, data.threshold, 0.5, 1].filter((x, i) => i === 1 || Math.abs(x - data.threshold) > 0.08).sort((a, b) => a - b)})};
  return {
    height,
    traces: [{
      type: "heatmap", z, xgap: layers <= 64 ? 1 : 0, ygap: count <= 40 ? 1 : 0, ...colours, hoverongaps: false,
      customdata: z.map((row, h) => row.map((x, l) => `<b>layer ${l}, head ${h}</b><br>${plain(view.name)}: ${number(x)}${window[l]}`)),
      hovertemplate: "%{customdata}<extra></extra>",
    }],
    layout: layout({
      xaxis: indexAxis("layer", layers), yaxis: indexAxis("head", count, {autorange: false}), shapes: marks.shapes, annotations: marks.annotations,
      margin: small() ? {l: 44, r: 8, t: 30, b: 110} : {l: 64, r: 24, t: 30, b: 52},
    }),
  };
}

// ---- cosines between layers or between prompts, of the token beside the baseline

const whole = (triangle) => triangle.map((row, i) => triangle.map((_, j) => (j <= i ? row[j] : triangle[j][i])));
const farthest = 5;  // digits that the data have: 1 - cos below 1e-5 is not told apart

function cosines(data, state) {
  const site = data.sites[state.view || 0];
  const frame = state.frame === undefined ? data.chosen : state.frame;
  const panels = site.panels.map((panel) => ({...panel, z: whole(panel.frames[frame])}));
  const narrow = small();
  const gap = 0.1;
  const share = (1 - gap * (panels.length - 1)) / panels.length;
  const inside = state.width() - (narrow ? 50 : 170);  // without margins and colour bar
  const side = narrow ? inside : Math.min(inside * share, 520);
  const traces = [];
  const more = {annotations: [], shapes: []};
  panels.forEach((panel, p) => {
    const id = p === 0 ? "" : String(p + 1);
    const count = panel.z.length;
    const begin = p * (share + gap);
    const domain = narrow ? {x: [0, 1], y: [1 - begin - share, 1 - begin]} : {x: [begin, begin + share], y: [0, 1]};
    const names = panel.z.map((_, i) => {
      const prompt = panel.prompts ? panel.prompts[i] : i;
      const text = data.prompts && prompt < data.prompts.length ? `: ${plain(data.prompts[prompt])}` : "";
      return `${data.index} ${prompt}${text}`;
    });
    const logs = panel.z.map((row) => row.map((x) => (x === null ? null : -Math.log10(Math.min(Math.max(1 - x, 10 ** -farthest), 1)))));
    traces.push({
      type: "heatmap", z: state.near ? logs : panel.z, xaxis: "x" + id, yaxis: "y" + id, coloraxis: "coloraxis", hoverongaps: false,
      xgap: count <= 40 ? 1 : 0, ygap: count <= 40 ? 1 : 0,
      customdata: panel.z.map((row, i) => row.map((x, j) => `<b>cosine ${x === null ? "undefined" : x.toFixed(5)}</b><br>${names[i]}<br>${names[j]}<br>${plain(panel.title)}`)),
      hovertemplate: "%{customdata}<extra></extra>",
    });
    more["xaxis" + id] = indexAxis(narrow && p + 1 < panels.length ? "" : data.index, count, {domain: domain.x, anchor: "y" + id, constrain: "domain", range: [-0.5, count - 0.5]});
    more["yaxis" + id] = indexAxis(narrow || p === 0 ? data.index : "", count, {domain: domain.y, anchor: "x" + id, scaleanchor: "x" + id, constrain: "domain", range: [count - 0.5, -0.5]});
    more.annotations.push({text: `<b>${plain(panel.title)}</b>`, x: (domain.x[0] + domain.x[1]) / 2, y: domain.y[1], xref: "paper", yref: "paper", xanchor: "center", yanchor: "bottom", showarrow: false, yshift: 4});
    if (data.index === "layer" && data.me_layer !== null) {
      const last = data.last_massive_layer === null ? data.me_layer : data.last_massive_layer;
      more.shapes.push({type: "rect", xref: "x" + id, yref: "y" + id, x0: data.me_layer - 0.5, x1: last + 0.5, y0: data.me_layer - 0.5, y1: last + 0.5,
        line: {color: colour("second"), width: 2, dash: "dot"}});
    }
  });
  const height = narrow ? panels.length * (side + 40) + 118 : side + 90;
  const digits = Array.from({length: farthest + 1}, (_, i) => i);
  more.coloraxis = state.near
    ? {colorscale: alikeScale(), cmin: 0, cmax: farthest, colorbar: bar("1 \u2212 cosine", height - 128, {tickvals: digits, ticktext: digits.map((d) => String(Number((10 ** -d).toFixed(d))))})}
    : {colorscale: signedScale(), cmin: -1, cmax: 1, colorbar: bar("cosine", height - 128, {tickvals: [-1, -0.5, 0, 0.5, 1]})};
  return {height, traces, layout: layout({...more, margin: narrow ? {l: 40, r: 8, t: 28, b: 100} : {l: 60, r: 24, t: 34, b: 56}})};
}

// ---- lines by layer

function lines(data, state) {
  const plot = data.plots[state.view || 0][state.measure || 0];
  const count = plot.series[0].values.length;
  const layers = plot.series[0].values.map((_, l) => l);
  const marks = massiveLayers(data, count, false);
  const traces = plot.series.map((series) => ({
    type: "scatter", mode: series.dash === "solid" ? "lines+markers" : "lines", name: plain(series.name), x: layers, y: series.values,
    line: {color: colour(series.tone), width: series.dash === "solid" ? 2.4 : 1.8, dash: series.dash}, marker: {size: 5},
    text: series.values.map((x, l) => `layer ${l}, ${plain(series.name)}: ${number(x)}`), hovertemplate: "%{text}<extra></extra>",
  }));
  for (const level of plot.levels) {
    traces.push({
      type: "scatter", mode: "lines", name: plain(level.name), x: [-0.6, count - 0.4], y: [level.value, level.value],
      line: {color: colour("soft"), width: 1.4, dash: "3px,3px"}, hovertemplate: `${plain(level.name)}: ${number(level.value)}<extra></extra>`,
    });
  }
  return {
    height: small() ? 420 : 440,
    traces,
    layout: layout({
      xaxis: axis("layer", {dtick: steps(small() ? 2 * count : count), range: [-0.6, count - 0.4]}),
      yaxis: axis(plot.title, plot.logarithmic ? {type: "log"} : plot.range ? {range: plot.range} : {rangemode: "normal"}),
      shapes: marks.shapes, annotations: marks.annotations, legend: {orientation: "h", x: 0, y: 1.08, yanchor: "bottom", bgcolor: "rgba(0,0,0,0)"},
      showlegend: true,
    }),
  };
}

// ---- kinds

const choice = (place, names, label, figure, field, redraw) => {
  figure.state[field] = figure.state[field] || 0;
  chooser(place, names, label, figure.state[field], (i) => { figure.state[field] = i; redraw(); });
};
return {
  heads: {draw: heads, views: () => [], controls: (place, figure, redraw) =>
    choice(place, figure.data.views.map((view) => view.name), "what is shown", figure, "view", redraw)},
  cosines: {
    draw: cosines,
    views: () => [],
    controls: (place, figure, redraw) => {
      figure.state.width = () => figure.element.clientWidth;
      choice(place, figure.data.sites.map((site) => site.name), "site", figure, "view", redraw);
      choice(place, ["Cosine", "1 \u2212 cosine, logarithmic"], "scale", figure, "near", redraw);
      slider(place, figure.data.frames, figure.data.chosen, (layer) => `Layer ${layer}`, (i) => { figure.state.frame = i; redraw(); });
    },
  },
  lines: {draw: lines, views: () => [], controls: (place, figure, redraw) => {
    choice(place, figure.data.first, "site", figure, "view", redraw);
    choice(place, figure.data.second, "measure", figure, "measure", redraw);
  }},
};
});
