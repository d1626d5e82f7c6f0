// The kinds of figures of a training run. Their data: training_figures.cpp.
"use strict";
(window.onsetKinds = window.onsetKinds || []).push((tools) => {
const {colour, colourScale, isDark, small, number, plain, axis, layout} = tools;

const tones = ["first", "second", "ffn", "median", "third", "accent"];
const dashes = ["solid", "dot", "dash", "longdash", "dashdot"];
const above = () => ({orientation: "h", x: 0, y: 1.04, yanchor: "bottom", bgcolor: "rgba(0,0,0,0)"});

// Ticks of an axis that counts from `first` to `last`: whole numbers, a 1, 2 or 5 of a power of ten apart, none beyond.
function wholeTicks(first, last, most) {
  const least = Math.max(1, (last - first) / most);
  const power = 10 ** Math.floor(Math.log10(least));
  const apart = [1, 2, 5, 10].map((x) => x * power).find((x) => x >= least);
  const tickvals = [];
  for (let at = Math.ceil(first / apart) * apart; at <= last; at += apart) tickvals.push(at);
  return {tickmode: "array", tickvals, ticktext: tickvals.map((x) => number(x))};
}
const stepTicks = (first, last) => wholeTicks(first, last, small() ? 5 : 10);
const stepAxis = (steps) => axis("step", Object.assign({rangemode: "tozero"}, stepTicks(0, Math.max(1, ...steps))));

// Ticks of a logarithmic axis: the powers of ten alone, or where the values hold less than two of them 1, 2 and 5 of each.
// Nothing where they hold less than two of these either: such values do not need a logarithm.
function logTicks(values) {
  const positive = values.filter((x) => x > 0);
  if (positive.length === 0) return null;
  const low = Math.min(...positive);
  const high = Math.max(...positive);
  const powers = [];
  for (let p = Math.floor(Math.log10(low)) - 1; p <= Math.ceil(Math.log10(high)) + 1; ++p) powers.push(10 ** p);
  const enough = (ticks) => ticks.filter((x) => x >= low && x <= high).length >= 2;
  const tickvals = [powers, powers.flatMap((x) => [x, 2 * x, 5 * x])].find(enough);
  return tickvals === undefined ? null : {type: "log", tickmode: "array", tickvals, ticktext: tickvals.map((x) => number(x))};
}
const linear = () => ({exponentformat: "power"});

function curves(data) {
  const ticks = data.logarithmic ? logTicks(data.series.flatMap((one) => one.values)) : null;
  const log = ticks !== null;
  const value = (x) => (x === null || (log && !(x > 0)) ? null : x);
  const traces = data.series.flatMap((one, i) => {
    const tone = colour(tones[i % tones.length]);
    const dash = dashes[Math.floor(i / tones.length) % dashes.length];
    const smooth = one.smooth !== null;
    const hover = one.values.map((y, k) => `<b>${plain(one.name)} ${number(y)}</b><br>step ${number(one.steps[k])}` + (smooth ? `<br>running mean ${number(one.smooth[k])}` : ""));
    const values = {
      type: "scatter", mode: one.steps.length === 1 ? "markers" : "lines", name: plain(one.name), legendgroup: one.name, showlegend: !smooth,
      x: one.steps, y: one.values.map(value), text: hover, hovertemplate: "%{text}<extra></extra>",
      line: {color: tone, width: smooth ? 1 : 2.2, dash}, opacity: smooth ? 0.4 : 1, marker: {size: 9, color: tone},
    };
    if (!smooth) return [values];
    return [values, {
      type: "scatter", mode: "lines", name: plain(one.name), legendgroup: one.name, x: one.steps, y: one.smooth.map(value),
      line: {color: tone, width: 2.6, dash}, hoverinfo: "skip",
    }];
  });
  return {
    height: small() ? 340 : 380,
    traces,
    layout: layout({
      xaxis: stepAxis(data.series.flatMap((one) => one.steps)),
      yaxis: axis(plain(data.axis), ticks || linear()),
      showlegend: data.series.length > 1, legend: above(),
    }),
  };
}

const watch = (data, state) => (state.lines ? watchLines(data) : watchMap(data));
const layersOf = (data) => (data.max_abs.length > 0 ? data.max_abs[0].map((_, l) => l) : []);

function watchMap(data) {
  const layers = layersOf(data);
  const values = data.max_abs.flat().filter((x) => x > 0);
  const low = Math.log10(values.length > 0 ? Math.min(...values) : 1);
  const high = Math.max(low + 1, Math.log10(values.length > 0 ? Math.max(...values) : 10));
  const powers = [];
  for (let p = Math.ceil(low); p <= high; ++p) powers.push(p);
  const z = layers.map((l) => data.max_abs.map((column) => (column[l] > 0 ? Math.log10(column[l]) : null)));
  const text = layers.map((l) => data.max_abs.map((column, s) => `<b>|x| ${number(column[l])}</b><br>after layer ${l}, step ${data.steps[s]}` +
    (data.me_layer[s] === null ? "<br>no ME layer" : `<br>ME layer ${data.me_layer[s]}`)));
  const dots = data.steps.map((step, s) => [step, data.me_layer[s]]).filter((dot) => dot[1] !== null);
  const first = data.steps[0];
  const last = data.steps[data.steps.length - 1];
  const half = (last - first || 1) / Math.max(1, data.steps.length - 1) / 2;  // of a column
  return {
    height: small() ? 380 : 460,
    traces: [{
      type: "heatmap", x: data.steps, y: layers, z, text, hovertemplate: "%{text}<extra></extra>", zmin: low, zmax: high, colorscale: colourScale(),
      colorbar: {title: {text: "|x|", side: "top"}, tickvals: powers, ticktext: powers.map((p) => number(10 ** p)), thickness: small() ? 8 : 12, outlinewidth: 0},
    }, {
      type: "scatter", mode: "markers", name: "ME layer", x: dots.map((dot) => dot[0]), y: dots.map((dot) => dot[1]),
      marker: {size: dots.length > (small() ? 20 : 60) ? 5 : 9, color: colour("paper"), line: {color: colour("ink"), width: 1.5}}, hoverinfo: "skip", showlegend: dots.length > 0,
    }],
    layout: layout({
      xaxis: axis("step", Object.assign({showgrid: false, range: [first - half, last + half]}, stepTicks(first, last))),
      yaxis: axis("layer", Object.assign({showgrid: false, range: [-0.5, layers.length - 0.5]}, wholeTicks(0, layers.length - 1, 12))), legend: above(),
    }),
  };
}

function watchLines(data) {
  const layers = layersOf(data);
  // From blue, the first layer, to red, the last.
  const tone = (l) => `hsl(${Math.round(210 - 195 * (layers.length > 1 ? l / (layers.length - 1) : 0))}, 62%, ${isDark() ? 62 : 44}%)`;
  return {
    height: small() ? 380 : 460,
    traces: layers.map((l) => ({
      type: "scatter", mode: data.steps.length === 1 ? "markers" : "lines", name: `layer ${l}`, x: data.steps, y: data.max_abs.map((column) => (column[l] > 0 ? column[l] : null)),
      line: {color: tone(l), width: 2}, marker: {color: tone(l)}, hovertemplate: `layer ${l}, step %{x}: %{y:.5~g}<extra></extra>`,
      showlegend: layers.length <= 8 || l === 0 || l === layers.length - 1,
    })),
    layout: layout({xaxis: stepAxis(data.steps), yaxis: axis("largest |x|", logTicks(data.max_abs.flat()) || linear()), showlegend: true, legend: above()}),
  };
}

return {
  training_curves: {draw: curves, views: () => []},
  training_watch: {draw: watch, views: () => [{field: "lines", names: ["Heat map", "Lines"]}]},
};
});
